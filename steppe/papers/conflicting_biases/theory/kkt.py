"""KKT points of the risk under a bound on the sharpness (Lemma E.1)."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.examples import Floats, examples
from steppe.papers.conflicting_biases.theory.manifold import example
from steppe.papers.conflicting_biases.theory.risk import risk

# KKT points of: least risk on M under S ≤ 2/η (Lemma E.1, corrected), support by support.

# Sums of squares of a few numbers: what is within this of a bound, relatively, is on it.
_ROUNDING = 1e-12
_MOST_SUPPORTS = 16


@dataclass(frozen=True, eq=False)
class KKT:
    """w ≥ 0 (any signs of its entries give further ones) with its multipliers; `active` where S = 2/η holds it."""

    w: Floats
    support: tuple[int, ...]
    lam: float
    nu: float
    risk: float
    sharpness: float

    @property
    def active(self) -> bool:
        return self.lam > 0


def kkt_points(x: Any, y: Any, lr: float) -> list[KKT]:
    """All of them, of least risk first: on support A, w² = 1 − νx − 2ληx² with (λ, ν) from the constraints.

    Corrects Lemma E.1 in three places: positivity reads 2ληxᵢ² + νxᵢ < 1; Eq. 13 applies where the non-zero entries
    of x on A differ, not those of all x; where they are equal there is no point with λ > 0, for S is then 4 y x₀ on
    all of A. Entries of x may have any sign or be zero; y ≠ 0.

    >>> [p.w.round(3).tolist() for p in kkt_points([1.0, 0.5], 1.5, 0.25)]
    [[1.0, 1.0], [1.225, 0.0], [0.0, 1.732]]
    """
    point, label = example(x, y)
    lr = check.number("lr", lr, above=0.0)
    if label == 0:
        check.refuse("y", "not 0", 0.0, "At y = 0 the constraint has no gradient on M, and KKT says nothing.")
    if len(point) > _MOST_SUPPORTS:
        rule = f"of at most {_MOST_SUPPORTS} entries"
        check.refuse("x", rule, len(point), "Use least_risk, which needs no supports.")
    d = len(point)
    supports = [A for size in range(1, d + 1) for A in combinations(range(d), size) if point[list(A)].any()]
    found = [p for A in supports for p in _on_support(point, label, lr, A)]
    return sorted(found, key=lambda p: p.risk)


def multipliers(x: Floats, y: float, lr: float) -> tuple[float, float]:
    """(λ, ν) of Eq. 13 from the entries x of the support: ⟨x, u⟩ = y and ⟨x², u⟩ = 1/(2η) at u = 1 − 2ληx² − νx."""
    A1, A2, A3, A4 = (float(np.sum(x**k)) for k in (1, 2, 3, 4))
    determinant = A2 * A4 - A3**2
    a = (y * A3 + A2**2 - A1 * A3 - A2 / (2 * lr)) / determinant
    return a / (2 * lr), -(y * A4 + A3 * A2 - A1 * A4 - A3 / (2 * lr)) / determinant


def _on_support(x: Floats, y: float, lr: float, A: tuple[int, ...]) -> list[KKT]:
    on = x[list(A)]
    candidates = [(0.0, (on.sum() - y) / np.sum(on**2))]
    entries = on[on != 0]
    if np.ptp(entries) > _ROUNDING * np.abs(entries).max():
        candidates.append(multipliers(on, y, lr))
    found = []
    for k, (lam, nu) in enumerate(candidates):
        u = 1 - 2 * lam * lr * on**2 - nu * on
        sharpness = 4 * float(on**2 @ u)
        # The second kind lies on the bound by construction; with λ = 0 it is of the first kind.
        feasible = lam > _ROUNDING if k else sharpness <= 2 / lr * (1 + _ROUNDING)
        if (u > 0).all() and feasible:
            w = np.zeros(len(x))
            w[list(A)] = np.sqrt(u)
            found.append(KKT(w, A, float(lam), float(nu), float(risk(w)), sharpness))
    return found


# Gradient descent of one weight, exactly: with z = w√(x/y) and a = 2ηxy = η/η_c a step is z ← z(1 + a(1 − z²)).

EDGE = 1.0  # z = 1 loses its stability: sharpness = 2/η
FOUR = float(np.sqrt(5) - 1)  # the orbit of period 2 loses its own
SIGNS = float(np.sqrt(27 / 4) - 1)  # the image of the maximum reaches 0: orbits of both signs merge
ESCAPE = 2.0  # the maximum leaves the interval that maps into itself: almost every start diverges


def step(z: Any, a: Any) -> Floats:
    """z(1 + a(1 − z²)).

    >>> float(step(0.5, 1.0))
    0.875
    """
    z = np.asarray(z, dtype=np.float64)
    stepped: Floats = z * (1 + np.asarray(a) * (1 - z**2))
    return stepped


def two_cycle(a: float) -> tuple[float, float]:
    """The orbit of period 2 for a ≥ 1: z² = s/a and 1/(as), s + 1/s = 1 + a; so z₁z₂ = 1/a.

    >>> z1, z2 = two_cycle(1.2)
    >>> bool(abs(step(z1, 1.2) - z2) < 1e-15 and abs(step(z2, 1.2) - z1) < 1e-15)
    True
    """
    a = check.number("a", a, minimum=EDGE, remedy="Below a = 1 gradient descent settles at z = 1.")
    s = (1 + a + np.sqrt((1 + a) ** 2 - 4)) / 2
    return float(np.sqrt(s / a)), float(np.sqrt(1 / (a * s)))


def two_cycle_multiplier(a: Any) -> Floats:
    """The derivative of two steps along that orbit, 9 − 2(1 + a)²: within ±1 exactly for 1 < a < √5 − 1."""
    multiplier: Floats = 9 - 2 * (1 + np.asarray(a, dtype=np.float64)) ** 2
    return multiplier


def bound(a: float) -> float:
    """√(1 + 2/a): the starts |z| up to it stay within it for ever if a ≤ 2; beyond it every start diverges."""
    return float(np.sqrt(1 + 2 / check.number("a", a, above=0.0)))


def orbits(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 200) -> Floats:
    """The last `keep` of burn + keep iterates for each a, (len a, keep); NaN where they have left for infinity."""
    a = np.asarray(a, dtype=np.float64)
    z, kept = np.full(a.shape, start), []
    for k in range(burn + keep):
        # Beyond the bound every further step is larger; squares of what has left need not overflow.
        z = np.where(np.abs(z) <= np.sqrt(1 + 2 / a), step(np.nan_to_num(z), a), np.nan)
        if k >= burn:
            kept.append(z)
    return np.stack(kept, axis=1)


def lyapunov(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 5000) -> Floats:
    """The mean of ln|1 + a − 3az²| along an orbit: below 0 for a stable orbit, above 0 for chaos."""
    a = np.asarray(a, dtype=np.float64)
    z = orbits(a, start=start, burn=burn, keep=keep)
    slopes = np.abs(1 + a[:, None] - 3 * a[:, None] * z**2)
    exponents: Floats = np.mean(np.log(np.maximum(slopes, 1e-300)), axis=1)
    return exponents


# The form f(x) = ⟨u ⊙ v, x⟩ on n examples: its trace, its flattest interpolators, what its flow conserves.


@dataclass(frozen=True, eq=False)
class Flattest:
    """β of least trace, that trace, and a proven lower bound of it (the value of a dual point)."""

    beta: Floats
    trace: float
    lower: float


def weights(x: Any) -> Floats:
    """qⱼ = (1/n) Σᵢ xᵢⱼ²."""
    q: Floats = np.mean(np.asarray(x, dtype=np.float64) ** 2, axis=0)
    return q


def trace(x: Any, u: Any, v: Any) -> Floats:
    """Σⱼ qⱼ(uⱼ² + vⱼ²), for u and v of shape (..., d): tr ∇²L at any u, v, since ∇²f has no diagonal."""
    total: Floats = (np.asarray(u, dtype=np.float64) ** 2 + np.asarray(v, dtype=np.float64) ** 2) @ weights(x)
    return total


def flattest(x: Any, y: Any) -> Flattest:
    """min 2 Σ qⱼ|βⱼ| subject to ⟨β, xᵢ⟩ = yᵢ, a linear program; its dual max ⟨λ, y⟩, |Xᵀλ| ≤ 2q, proves the bound.

    >>> flattest([[1.0, 2.0]], [2.0]).beta.tolist()                 # costs 2·1·2 = 4 or 2·4·1 = 8
    [2.0, 0.0]
    """
    from scipy.optimize import linprog

    x, y = examples(x, y)
    q = weights(x)
    primal = linprog(np.concatenate([2 * q, 2 * q]), A_eq=np.concatenate([x, -x], axis=1), b_eq=y, method="highs")
    if not primal.success:
        check.refuse("y", "⟨β, xᵢ⟩ for some β", y.tolist(), "No weights fit all examples: drop some, or add inputs.")
    d = x.shape[1]
    # Shrunk until it is feasible beyond rounding, a dual point bounds the trace of every interpolator from below.
    multiplier = np.asarray(primal.eqlin.marginals)
    excess = np.max(np.abs(x.T @ multiplier) / np.where(q > 0, 2 * q, np.inf), initial=1.0)
    return Flattest(primal.x[:d] - primal.x[d:], float(primal.fun), float(multiplier @ y / excess))


def conserved(u: Any, v: Any) -> Floats:
    """u² − v², which gradient flow of any loss of u ⊙ v leaves as it is."""
    difference: Floats = np.asarray(u, dtype=np.float64) ** 2 - np.asarray(v, dtype=np.float64) ** 2
    return difference
