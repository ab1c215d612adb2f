"""Generators of Gaussian inputs, mixtures and multi-index models, and noise on labels."""

from typing import Any

import numpy as np

from steppe import check
from steppe.data._dataset import Floats, Split
from steppe.data.links import Link


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
    >>> bool((np.sign(x[:, 0]) == y).all())                         # each six standard deviations from 0
    True
    """
    middles, values = np.asarray(centres, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if middles.ndim != 2 or middles.size == 0:
        check.refuse("centres", "of shape (k, d), one row a component", middles.shape, "Reshape it.")
    if values.shape != (len(middles),):
        check.refuse("labels", f"of shape ({len(middles)},), one a component", values.shape, "Give each a label.")
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
    """Gaussian clouds around (±1, ±1, 0, …), y = the product of the two signs: a continuous `xor`."""
    d = check.integer("d", d, minimum=2, remedy="The four centres need two coordinates.")
    centres: Floats = np.zeros((4, d))
    centres[:, :2] = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    return gaussian_mixture(centres, [1, -1, -1, 1], n, spread=spread, test=test, key=key)


def flipped(y: Any, probability: float, *, key: int | np.random.Generator = 0) -> Floats:
    """−yᵢ with the given probability, independently for each i; yᵢ otherwise.

    >>> flipped([1.0, -1.0, 2.0], 1.0).tolist()
    [-1.0, 1.0, -2.0]
    """
    p = check.number("probability", probability, minimum=0.0)
    if p > 1:
        check.refuse("probability", "at most 1", probability, "Pass the fraction of labels to flip.")
    labels = np.asarray(y, dtype=np.float64)
    flips = np.random.default_rng(key).random(labels.shape) < p
    return np.where(flips, -labels, labels)


def perturbed(y: Any, sigma: float, *, key: int | np.random.Generator = 0) -> Floats:
    """yᵢ + N(0, σ²), drawn once; `steppe.dynamics.LabelNoise` draws at each step.

    >>> perturbed([1.0, 2.0], 0.0).tolist()
    [1.0, 2.0]
    """
    sigma = check.number("sigma", sigma, minimum=0.0)
    labels = np.asarray(y, dtype=np.float64)
    noisy: Floats = labels + sigma * np.random.default_rng(key).standard_normal(labels.shape)
    return noisy


def orthonormal(r: int, d: int, *, key: int | np.random.Generator = 0) -> Floats:
    """A uniformly random U (r, d) with orthonormal rows, U Uᵀ = I.

    >>> U = orthonormal(2, 5)
    >>> bool(np.allclose(U @ U.T, np.eye(2)))
    True
    """
    d = check.integer("d", d, minimum=1)
    r = check.integer("r", r, minimum=1)
    if r > d:
        check.refuse("r", f"at most d = {d}", r, "Lower r: at most d rows are orthonormal.")
    Q, R = np.linalg.qr(np.random.default_rng(key).standard_normal((d, r)))
    # QR alone is not uniform: the signs of R's diagonal correct it.
    rows: Floats = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
    return rows


def multi_index(
    link: Link, U: Any, n: int, *, noise: float = 0.0, test: int = 0, key: int | np.random.Generator = 0
) -> Split:
    """x ~ N(0, I), y = link(Ux) + noise · N(0, 1), U (r, d) with orthonormal rows; the `test` examples have no noise.

    >>> from steppe.data.links import Linear
    >>> x, y, _, _ = multi_index(Linear((2.0,)), [[0.0, 1.0]], 3)
    >>> bool((y == 2 * x[:, 1]).all())
    True
    """
    rows = check_directions(link, U)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    noise = check.number("noise", noise, minimum=0.0)
    rng = np.random.default_rng(key)
    x, x_test = rng.standard_normal((n, rows.shape[1])), rng.standard_normal((test, rows.shape[1]))
    y = link(x @ rows.T) + noise * rng.standard_normal(n)
    return Split(x, y, x_test, link(x_test @ rows.T))


def check_directions(link: Link, U: Any) -> Floats:
    """U as float64; raises unless it has orthonormal rows, one for each index of the link."""
    shape = np.shape(U)
    if len(shape) != 2 or shape[0] != link.indices:
        check.refuse("U", f"of shape ({link.indices}, d), one row an index", shape, "Use orthonormal(r, d).")
    return check_orthonormal(U)


def check_orthonormal(U: Any) -> Floats:
    """U (r, d) as float64; raises unless its rows are orthonormal."""
    rows = np.asarray(U, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape:
        check.refuse("U", "of shape (r, d), one row a direction", rows.shape, "Use orthonormal(r, d).")
    if np.max(np.abs(rows @ rows.T - np.eye(len(rows)))) > 1e-10:
        check.refuse("U", "orthonormal, U Uᵀ = I", rows @ rows.T, "Use orthonormal(r, d), or np.linalg.qr.")
    return rows
