"""Random examples of every kind the statements cover: signs, ties, zeros."""

import numpy as np
from hypothesis import strategies as st

SEED = st.integers(0, 2**32 - 1)


def example(seed, *, positive=False, zeros=False, d=None):
    """(x, y) with M ≠ ∅."""
    rng = np.random.default_rng(seed)
    d = d or int(rng.integers(1, 5))
    x = rng.uniform(0.1, 2.0, d) * (1 if positive else rng.choice([-1, 1], d))
    if d > 1 and rng.random() < 0.4:
        x[1] = x[0]
    if zeros and d > 1:
        x[-1] = 0.0
    carrier = x[rng.choice(np.flatnonzero(x))]
    return x, float(np.sign(carrier) * rng.uniform(0.1, 3.0))
