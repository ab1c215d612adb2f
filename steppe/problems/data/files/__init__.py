"""Files of real data: where they are, whether they are whole, how they get there."""
