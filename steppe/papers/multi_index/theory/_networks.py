"""Networks of multi-index: teachers and spoiled interpolators, inner weights, and what Definition 2 asks of them."""

from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.activations import Homogeneous
from steppe.data import orthonormal
from steppe.data._gaussian import check_directions, check_orthonormal
from steppe.data.links import SumOfSingleIndex
from steppe.flattening import Features, features
from steppe.papers.multi_index.theory._population import product_mean
from steppe.training_set import Floats, examples, inputs


class Student(NamedTuple):
    """Inner weights of unit norm and outer weights."""

    W: Floats
    a: Floats


def flatness(student: Student, x: Any, activation: Homogeneous, *, b: Any = None) -> float:
    """Σ q_k |a_k|^p: the least tr ∇²L over rescalings of the neurons, where the student interpolates (Lemma 3)."""
    f = features(student.W, x, activation, b=b)
    return float(f.q @ np.abs(student.a) ** f.p)


def copies(link: SumOfSingleIndex, U: Any, m: int) -> Student:
    """Theorem 4: every direction m/r times, with outer weights cⱼ r/m. The network equals the link.

    >>> from steppe.activations import rectifier
    >>> copies(SumOfSingleIndex(rectifier, (1.0, -2.0)), [[1.0, 0.0], [0.0, 1.0]], 4).a.tolist()
    [0.5, 0.5, -1.0, -1.0]
    """
    rows = check_directions(link, U)
    r, m = len(rows), check.integer("m", m, minimum=1)
    if m % r:
        check.refuse(
            "m", f"a multiple of the number of directions, {r}", m, "Theorem 4 gives each direction the same share."
        )
    share = m // r
    return Student(np.repeat(rows, share, axis=0), np.repeat(np.asarray(link.coefficients) / share, share))


def patched(student: Student, extra: Any, x: Any, y: Any, activation: Homogeneous) -> Student:
    """Lemma 13: the student and the `extra` inner weights, whose outer weights of least norm fit its residuals."""
    points, labels = examples(x, y)
    more = np.asarray(extra, dtype=float)
    left = labels - features(student.W, points, activation).phi @ student.a
    phi = features(more, points, activation).phi
    a, _, rank, _ = np.linalg.lstsq(phi, left, rcond=None)
    if np.linalg.norm(phi @ a - left) > 1e-8 * max(np.linalg.norm(labels), np.finfo(float).tiny):
        rule = f"inner weights whose activations span all {len(points)} examples"
        check.refuse("extra", rule, f"{len(more)} that span {rank}", "Pass more of them, further apart.")
    return Student(np.vstack([student.W, more]), np.concatenate([student.a, a]))


def correlated(m: int, U: Any, nu: float, *, one_sided: bool = False, key: int | np.random.Generator = 0) -> Floats:
    """m unit vectors w with ‖Uw‖ = ν exactly, otherwise uniform: the inner weights of section 6.1.

    For one direction Uw is ν or −ν with equal probability. With `one_sided` Uw ≥ 0 in every coordinate.

    >>> W = correlated(5, [[0.0, 1.0, 0.0]], 0.3)
    >>> np.abs(W[:, 1]).round(12).tolist(), np.linalg.norm(W, axis=1).round(12).tolist()
    ([0.3, 0.3, 0.3, 0.3, 0.3], [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    rows, nu = check_orthonormal(U), _correlation(nu)
    m, (r, d) = check.integer("m", m, minimum=1), rows.shape
    if r == d and nu < 1:
        check.refuse("nu", f"1 where U spans all {d} dimensions", nu, "Pass fewer directions.")
    rng = np.random.default_rng(key)
    inside = _units(rng.standard_normal((m, r)))
    if one_sided:
        inside = np.abs(inside)
    outside = rng.standard_normal((m, d))
    if r == d:
        return inside @ rows
    outside -= outside @ rows.T @ rows
    return nu * inside @ rows + np.sqrt(1 - nu**2) * _units(outside)


def capped(W: Any, U: Any, cap: float) -> Floats:
    """The rows of W, unit vectors, turned away from the span of U where ‖Uw‖ is above `cap`.

    >>> capped([[0.6, 0.8], [0.8, 0.6]], [[1.0, 0.0]], 0.6).round(12).tolist()
    [[0.6, 0.8], [0.6, 0.8]]
    """
    rows, weights, cap = check_orthonormal(U), inputs(W, name="W"), _correlation(cap)
    inside = weights @ rows.T
    lengths = np.linalg.norm(inside, axis=1, keepdims=True)
    along, rest = inside @ rows, weights - inside @ rows
    far = (lengths > cap) & (np.linalg.norm(rest, axis=1, keepdims=True) > 0)
    tiny = np.finfo(float).tiny
    turned = cap * along / np.maximum(lengths, tiny)
    turned += np.sqrt(1 - cap**2) * rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), tiny)
    return np.where(far, turned, weights)


def tilted(U: Any, nu: float, *, key: int | np.random.Generator = 0) -> Floats:
    """An orthonormal basis (d − r, d) of a subspace in which the largest ‖Uv‖ of a unit vector v is ν.

    Inner weights in it meet condition 3 of a bad interpolator (Definition 2). r of the basis vectors are
    ν uⱼ + √(1 − ν²) eⱼ, the others are orthogonal to U; ν = 0 gives the orthogonal complement of Example 1.

    >>> S = tilted([[1.0, 0.0, 0.0, 0.0]], 0.5)
    >>> S.shape, bool(np.allclose(S @ S.T, np.eye(3))), round(float(np.abs(S[:, 0]).max()), 12)
    ((3, 4), True, 0.5)
    """
    rows, nu = check_orthonormal(U), _correlation(nu)
    r, d = rows.shape
    if d < 2 * r:
        check.refuse("U", f"of at most d/2 = {d // 2} rows", r, "Tilting a direction needs another one.")
    # A random rotation of a basis of the complement is never degenerate, however U was drawn.
    complement = np.linalg.svd(rows)[2][r:]
    E = orthonormal(d - r, d - r, key=key) @ complement
    return np.vstack([nu * rows + np.sqrt(1 - nu**2) * E[:r], E[r:]])


def within(m: int, basis: Any, *, key: int | np.random.Generator = 0) -> Floats:
    """m unit vectors, uniform in the span of orthonormal rows.

    >>> within(3, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])[:, 2].tolist()
    [0.0, 0.0, 0.0]
    """
    rows = check_orthonormal(basis)
    m = check.integer("m", m, minimum=1)
    return _units(np.random.default_rng(key).standard_normal((m, len(rows)))) @ rows


def _units(v: Floats) -> Floats:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _correlation(nu: float) -> float:
    nu = check.number("nu", nu, minimum=0.0)
    if nu > 1:
        check.refuse("nu", "from 0 to 1", nu, "It is the length of a projected unit vector.")
    return nu


class Conditions(NamedTuple):
    """What Definition 2 bounds.

    closest: the largest cosine between two inner weights (condition 1);
    alignment: the largest cosine between the span of the inner weights and that of U (condition 3);
    """

    closest: float
    alignment: float


def conditions(W: Any, U: Any) -> Conditions:
    """The numbers of conditions 1 and 3; condition 2 is about `population_loss`.

    >>> conditions([[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0]])          # together they span the plane, which contains U
    Conditions(closest=0.6, alignment=1.0)
    """
    weights, rows = inputs(W, name="W"), check_orthonormal(U)
    if weights.shape[1] != rows.shape[1]:
        check.refuse("W", f"as wide as U, {rows.shape[1]}", weights.shape, "Pass one row for each neuron.")
    lengths = np.linalg.norm(weights, axis=1)
    if (lengths == 0).any():
        check.refuse("W", "without rows of zeros", int((lengths == 0).sum()), "Remove them: they have no direction.")
    cosines = np.clip(weights / lengths[:, None] @ (weights / lengths[:, None]).T, -1.0, 1.0)
    np.fill_diagonal(cosines, -1.0)
    return Conditions(float(cosines.max()), alignment(weights, rows))


def alignment(W: Any, U: Any) -> float:
    """max |u·v| over unit u in the span of W and v in that of U: the largest cosine of a principal angle."""
    basis = span(inputs(W, name="W"))
    return float(np.clip(np.linalg.svd(basis @ check_orthonormal(U).T, compute_uv=False)[:1].sum(), 0.0, 1.0))


def span(W: Floats) -> Floats:
    """An orthonormal basis of the span of the rows, as rows."""
    _, values, rows = np.linalg.svd(W, full_matrices=False)
    # Smaller singular values are rounding.
    return rows[values > 1e-10 * values[0]]


def conditional_covariance(W: Any, U: Any) -> Floats:
    """The covariance I − U P_W Uᵀ of Ux given Wx, for x ~ N(0, I): what the activations do not determine (Lemma 10).

    >>> conditional_covariance([[1.0, 0.0]], [[0.6, 0.8]]).round(12).tolist()        # 1 − 0.6²
    [[0.64]]
    """
    rows = check_orthonormal(U)
    seen = span(inputs(W, name="W")) @ rows.T
    return np.eye(len(rows)) - seen.T @ seen


def spoiled(W: Floats, a: Floats, features: Features, activation: Homogeneous, *, flatness: float) -> Floats:
    """Outer weights a + tv with the same outputs on the examples and Σ q|a + tv|^p = `flatness`, chosen to be bad.

    v maximises E(Σ_k v_k σ(w_k·x))² over Φv = 0 at a given Σ_k q_k^{2/p} v_k²; the sign of t is that of the larger |t|.

    >>> f = Features(np.array([[1.0, 1.0]]), np.array([1.0, 1.0]), 1.0)       # v = (1, −1)
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> np.abs(spoiled(W, np.array([0.5, 0.5]), f, Homogeneous(1.0, 0.0, 1), flatness=2.0)).sum().round(9).item()
    2.0
    """
    reached = float(features.q @ np.abs(a) ** features.p)
    if flatness < reached:
        check.refuse("flatness", f"at least that of a, {reached:g}", flatness, "Pass a larger one.")
    scale = features.q ** (1 / features.p)
    _, values, rows = np.linalg.svd(features.phi / scale, full_matrices=True)
    kernel = rows[int(np.sum(values > 1e-11 * values[0])) :]
    if len(kernel) == 0:
        return a
    K = product_mean(activation, activation, W, W) / scale / scale[:, None]
    v = kernel.T @ np.linalg.eigh(kernel @ K @ kernel.T)[1][:, -1] / scale
    size = [_reach(a, sign * v, features, flatness) for sign in (1.0, -1.0)]
    t = size[0] if size[0] >= size[1] else -size[1]
    return a + t * v


def _reach(a: Floats, v: Floats, features: Features, flatness: float) -> float:
    """The largest t with Σ q|a + tv|^p ≤ flatness, by bisection: the sum is convex in t."""

    def cost(t: float) -> float:
        return float(features.q @ np.abs(a + t * v) ** features.p)

    low, high = 0.0, 1.0
    while cost(high) < flatness:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= flatness else (low, middle)
    return low
