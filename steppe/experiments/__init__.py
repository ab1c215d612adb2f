"""What a paper is made of, and how its figures are reproduced and its claims verified."""
