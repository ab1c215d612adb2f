"""Multi-index models: x ~ N(0, I_d), y = g(Ux) + noise, U orthonormal (r, d)."""

from typing import Any

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats, Split
from steppe.problems.data.links import Link


def orthonormal(r: int, d: int, *, key: int | np.random.Generator = 0) -> Floats:
    """U (r, d) with U Uᵀ = I, uniform among these.

    >>> U = orthonormal(2, 5)
    >>> bool(np.allclose(U @ U.T, np.eye(2)))
    True
    """
    d = check.integer("d", d, minimum=1)
    r = check.integer("r", r, minimum=1)
    if r > d:
        check.refuse("r", f"at most d = {d}", r, "There are no more orthonormal rows than coordinates.")
    Q, R = np.linalg.qr(np.random.default_rng(key).standard_normal((d, r)))
    # Signs of the diagonal make the distribution uniform.
    rows: Floats = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
    return rows


def multi_index(
    link: Link, U: Any, n: int, *, noise: float = 0.0, test: int = 0, key: int | np.random.Generator = 0
) -> Split:
    """n examples with label noise of standard deviation `noise`, and `test` fresh ones without.

    >>> from steppe.problems.data.links import Linear
    >>> x, y, _, _ = multi_index(Linear((2.0,)), [[0.0, 1.0]], 3)
    >>> bool((y == 2 * x[:, 1]).all())
    True
    """
    rows = indices(link, U)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    noise = check.number("noise", noise, minimum=0.0)
    rng = np.random.default_rng(key)
    x, x_test = rng.standard_normal((n, rows.shape[1])), rng.standard_normal((test, rows.shape[1]))
    y = link(x @ rows.T) + noise * rng.standard_normal(n)
    return Split(x, y, x_test, link(x_test @ rows.T))


def indices(link: Link, U: Any) -> Floats:
    """U as float64 with orthonormal rows, one for each index of the link; refused where it is not."""
    shape = np.shape(U)
    if len(shape) != 2 or shape[0] != link.indices:
        check.refuse("U", f"of shape ({link.indices}, d), one row an index", shape, "Use orthonormal(r, d).")
    return orthonormal_rows(U)


def orthonormal_rows(U: Any) -> Floats:
    """U (r, d) as float64; refused where its rows are not orthonormal."""
    rows = np.asarray(U, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape:
        check.refuse("U", "of shape (r, d), one row a direction", rows.shape, "Use orthonormal(r, d).")
    if np.max(np.abs(rows @ rows.T - np.eye(len(rows)))) > 1e-10:
        check.refuse("U", "orthonormal, U Uᵀ = I", rows @ rows.T, "Use orthonormal(r, d), or np.linalg.qr.")
    return rows
