"""Slow and obvious twins of algorithms, which share no code with them."""
