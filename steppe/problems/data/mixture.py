"""Gaussian mixtures: a label for each centre, and noise around it."""

from typing import Any

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats, Split


def gaussian_mixture(
    centres: Any,
    labels: Any,
    n: int,
    *,
    spread: float = 1.0,
    test: int = 0,
    key: int | np.random.Generator = 0,
) -> Split:
    """x = centre_c + spread · N(0, I), y = labels[c], c uniform over the rows of `centres` (k, d).

    >>> x, y, _, _ = gaussian_mixture([[3.0, 0.0], [-3.0, 0.0]], [1.0, -1.0], 100, spread=0.5, key=0)
    >>> bool((np.sign(x[:, 0]) == y).all())                         # six standard deviations apart from 0
    True
    """
    middles, values = np.asarray(centres, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if middles.ndim != 2 or middles.size == 0:
        check.refuse("centres", "of shape (k, d), one row a component", middles.shape, "Reshape it.")
    if values.shape != (len(middles),):
        check.refuse("labels", f"of shape ({len(middles)},), one a component", values.shape, "Give each its label.")
    check.finite("centres", middles)
    check.finite("labels", values)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    spread = check.number("spread", spread, minimum=0.0)
    rng = np.random.default_rng(key)
    component = rng.integers(0, len(middles), n + test)
    x = middles[component] + spread * rng.standard_normal((n + test, middles.shape[1]))
    y = values[component]
    return Split(x[:n], y[:n], x[n:], y[n:])


def xor_mixture(d: int, n: int, *, spread: float = 0.3, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """Four components around (±1, ±1, 0, …), y = the product of the two signs: P_xor with Gaussian clouds."""
    d = check.integer("d", d, minimum=2, remedy="The four centres need two coordinates.")
    centres: Floats = np.zeros((4, d))
    centres[:, :2] = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    return gaussian_mixture(centres, [1, -1, -1, 1], n, spread=spread, test=test, key=key)
