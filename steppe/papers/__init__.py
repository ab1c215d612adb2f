"""One package per paper: specs, compute, draw, claims. Found by their folder, never listed by hand."""
