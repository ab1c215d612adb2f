"""Inner weights with a given correlation to the directions that matter: one by one, or all they span."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.problems.data.multi_index import orthonormal, orthonormal_rows


def correlated(m: int, U: Any, nu: float, *, one_sided: bool = False, key: int | np.random.Generator = 0) -> Floats:
    """m unit vectors w with ‖Uw‖ = ν exactly, otherwise uniform: the inner weights of multi-index, section 6.1.

    For one direction Uw is ν or −ν with equal probability, and with `one_sided` Uw ≥ 0 in every coordinate.

    >>> W = correlated(5, [[0.0, 1.0, 0.0]], 0.3)
    >>> np.abs(W[:, 1]).round(12).tolist(), np.linalg.norm(W, axis=1).round(12).tolist()
    ([0.3, 0.3, 0.3, 0.3, 0.3], [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    rows, nu = orthonormal_rows(U), _correlation(nu)
    m, (r, d) = check.integer("m", m, minimum=1), rows.shape
    if r == d and nu < 1:
        check.refuse("nu", f"1 where U spans all {d} dimensions", nu, "Take fewer directions.")
    rng = np.random.default_rng(key)
    inside = _units(rng.standard_normal((m, r)))
    if one_sided:
        inside = np.abs(inside)
    outside = rng.standard_normal((m, d))
    if r == d:
        return inside @ rows
    outside -= outside @ rows.T @ rows
    W: Floats = nu * inside @ rows + np.sqrt(1 - nu**2) * _units(outside)
    return W


def tilted(U: Any, nu: float, *, key: int | np.random.Generator = 0) -> Floats:
    """An orthonormal basis (d − r, d) of a subspace in which no unit vector has ‖Uv‖ > ν, and some have ν.

    Condition 3 of a bad interpolator (multi-index, Definition 2). r of the basis vectors are ν uⱼ + √(1 − ν²) eⱼ, the
    others orthogonal to U; ν = 0 is the orthogonal complement of Example 1.

    >>> S = tilted([[1.0, 0.0, 0.0, 0.0]], 0.5)
    >>> S.shape, bool(np.allclose(S @ S.T, np.eye(3))), round(float(np.abs(S[:, 0]).max()), 12)
    ((3, 4), True, 0.5)
    """
    rows, nu = orthonormal_rows(U), _correlation(nu)
    r, d = rows.shape
    if d < 2 * r:
        check.refuse("U", f"of at most d/2 = {d // 2} rows", r, "Each direction needs another one to be tilted to.")
    # A rotation of some basis of the complement, so that no draw is degenerate, whatever drew U.
    complement = np.linalg.svd(rows)[2][r:]
    E = orthonormal(d - r, d - r, key=key) @ complement
    return np.vstack([nu * rows + np.sqrt(1 - nu**2) * E[:r], E[r:]])


def within(m: int, basis: Any, *, key: int | np.random.Generator = 0) -> Floats:
    """m unit vectors, uniform in the span of orthonormal rows.

    >>> within(3, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])[:, 2].tolist()
    [0.0, 0.0, 0.0]
    """
    rows = orthonormal_rows(basis)
    m = check.integer("m", m, minimum=1)
    return _units(np.random.default_rng(key).standard_normal((m, len(rows)))) @ rows


def _units(v: Floats) -> Floats:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _correlation(nu: float) -> float:
    nu = check.number("nu", nu, minimum=0.0)
    if nu > 1:
        check.refuse("nu", "from 0 to 1", nu, "It is the length of the projection of a unit vector.")
    return nu
