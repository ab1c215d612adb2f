"""Data generators: frozen descriptions in, arrays of (x, y) out, the same for the same seed."""

from steppe.problems.data.hypercube import Split as Split
from steppe.problems.data.hypercube import xor as xor
