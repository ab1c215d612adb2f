"""The flattest interpolator of a two-layer network with given features: a convex program with a certificate."""

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.blas import dsyrk

from steppe import check
from steppe._result import Rows
from steppe.activations import Homogeneous
from steppe.flattening._cholesky import damped
from steppe.linalg import one_thread
from steppe.training_set import Floats, inputs

# The most Newton steps for one penalty.
_STEPS = 200

# The barrier takes at most _ROUNDS values of μ, each _SHRINK times the one before; for each, Newton's method stops at
# the accuracy _CENTRED · μ.
_ROUNDS, _SHRINK, _CENTRED = 40, 0.1, 0.03

# The most passes that move outer weights into the tube.
_PASSES = 6

# Singular values of Φ below this share of the largest are rounding.
_RANK = 1e-11


class _Features(NamedTuple):
    phi: Floats
    q: Floats
    p: float


class Features(Rows, _Features, index="neuron", columns=("q",)):
    """Φ_ik = σ(w_k·xᵢ) and the weights q_k of the flatness Σ_k q_k |a_k|^p, p = 2c/(c + 1)."""


def features(W: Any, x: Any, activation: Homogeneous, *, b: Any = None) -> Features:
    """Φ, q and p for inner weights W: neuron k adds q_k |a_k|^p to tr ∇²L in its flattest rescaling.

    tr ∇²L at an interpolator is Σ_k (A_k + a_k² B_k), A_k = (2/n) Σᵢ σ(hᵢₖ)², B_k = (2/n) Σᵢ σ′(hᵢₖ)² ‖xᵢ‖², for
    the loss (1/n) Σ (f − y)²; with inner biases ‖xᵢ‖² + 1 replaces ‖xᵢ‖² (D.6). The minimum over all w_k → βw_k,
    a_k → a_k β^{−c} is q_k |a_k|^p with q_k = (c + 1) c^{−c/(c+1)} A_k^{1/(c+1)} B_k^{c/(c+1)} (multi-index, Lemma 1
    and Eq. 3).

    >>> features([[1.0]], [[2.0]], Homogeneous(1.0, 0.0, 1)).q.round(12).tolist()     # 2 √(2·4 · 2·4)
    [16.0]
    """
    points, weights = inputs(x), np.asarray(W, dtype=float)
    if weights.ndim != 2 or weights.shape[1] != points.shape[1] or len(weights) == 0:
        rule = f"of shape (m, {points.shape[1]}), m ≥ 1, as wide as x"
        check.refuse("W", rule, weights.shape, "Pass the inner weights, one row for each neuron.")
    check.finite("W", weights)
    h, lengths = points @ weights.T, np.sum(points**2, axis=1)
    if b is not None:
        bias = np.asarray(b, dtype=float)
        if bias.shape != weights.shape[:1]:
            check.refuse(
                "b", f"of shape ({len(weights)},)", bias.shape, "Pass one bias for each neuron, or leave b out."
            )
        h, lengths = h + bias, lengths + 1
    c, n = activation.degree, len(points)
    phi = activation(h)
    A, B = 2 / n * np.sum(phi**2, axis=0), 2 / n * (lengths @ activation.slope(h) ** 2)
    q = (c + 1) * c ** (-c / (c + 1)) * A ** (1 / (c + 1)) * B ** (c / (c + 1))
    return Features(phi, q, 2 * c / (c + 1))


class Penalty(abc.ABC):
    """ψ(s) at s = Φᵀλ, which the dual subtracts: the conjugate of Σ_k q_k |a_k|^p, or a smooth function near it; +∞
    outside its domain. The derivatives have one entry for each neuron."""

    @abc.abstractmethod
    def value(self, s: Floats) -> float: ...

    @abc.abstractmethod
    def slope(self, s: Floats) -> Floats: ...

    @abc.abstractmethod
    def curvature(self, s: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Power(Penalty):
    """p > 1: ψ(s) = (1/r)(pq)^{1−r} |s|^r with 1/p + 1/r = 1, exact."""

    q: Floats
    p: float

    @property
    def r(self) -> float:
        return self.p / (self.p - 1)

    def value(self, s: Floats) -> float:
        return float(np.sum(np.abs(s) * np.abs(self.slope(s)))) / self.r

    def slope(self, s: Floats) -> Floats:
        slope: Floats = np.sign(s) * (np.abs(s) / (self.p * self.q)) ** (self.r - 1)
        return slope

    def curvature(self, s: Floats) -> Floats:
        scale = self.p * self.q
        curvature: Floats = (self.r - 1) / scale * (np.abs(s) / scale) ** (self.r - 2)
        return curvature


@dataclass(frozen=True, eq=False)
class Barrier(Penalty):
    """p = 1: −μ log(1 − s²/q²) instead of ψ(s) = 0 for |s| ≤ q and +∞ beyond; for m neurons within 2mμ of the
    optimum."""

    q: Floats
    mu: float

    def value(self, s: Floats) -> float:
        inside = 1 - (s / self.q) ** 2
        return float(-self.mu * np.sum(np.log(inside))) if (inside > 0).all() else np.inf

    def slope(self, s: Floats) -> Floats:
        return 2 * self.mu * s / (self.q**2 - s**2)

    def curvature(self, s: Floats) -> Floats:
        return 2 * self.mu * (self.q**2 + s**2) / (self.q**2 - s**2) ** 2


def maximise(phi: Floats, y: Floats, tau: float, penalty: Penalty, start: Floats, *, rtol: float) -> Floats:
    """The λ that maximises y·λ − τ‖λ‖ − ψ(Φᵀλ), which is concave: Newton's method from a start in the domain, until
    the predicted gain is below rtol of the value."""
    multiplier = start
    value = _value(phi, y, tau, penalty, multiplier)
    for _ in range(_STEPS):
        s, length = phi.T @ multiplier, max(float(np.linalg.norm(multiplier)), np.finfo(float).tiny)
        unit = multiplier / length
        slope = y - tau * unit - phi @ penalty.slope(s)
        bend = gram(phi, penalty.curvature(s))
        if tau > 0:
            bend += tau / length * (np.eye(len(y)) - np.outer(unit, unit))
        step = solved(bend, slope)
        promise, share = float(slope @ step), 1.0
        if promise <= rtol * max(abs(value), np.finfo(float).tiny):
            break
        while share > 1e-12:
            trial = multiplier + share * step
            reached = _value(phi, y, tau, penalty, trial)
            if reached >= value + 0.1 * share * promise:
                break
            share /= 2
        else:
            break  # only rounding is left to gain
        multiplier, value = trial, reached
    return multiplier


def gram(phi: Floats, weights: Floats) -> Floats:
    """Φ diag(weights) Φᵀ for weights ≥ 0; one triangle is computed, the other copied."""
    half: Floats = dsyrk(1.0, phi * np.sqrt(weights))
    return np.triu(half) + np.triu(half, 1).T


def solved(bend: Floats, right: Floats) -> Floats:
    """bend⁻¹ right, after scaling to unit diagonal; damped if rounding has made bend singular."""
    root = np.sqrt(np.maximum(np.diag(bend), np.finfo(float).tiny))
    solution: Floats = cho_solve(damped(bend / root / root[:, None], 0.0), right / root) / root
    return solution


def _value(phi: Floats, y: Floats, tau: float, penalty: Penalty, multiplier: Floats) -> float:
    return float(y @ multiplier - tau * np.linalg.norm(multiplier)) - penalty.value(phi.T @ multiplier)


class NoInterpolatorError(ValueError):
    """No outer weights fit the labels: y is farther than τ from the range of Φ."""


@dataclass(frozen=True, eq=False, repr=False)
class Interpolator(Rows, index="neuron", columns=("a",)):
    """Outer weights `a` with ‖Φa − y‖ ≤ τ and Σ q_k |a_k|^p = `flatness`; no others have less than `lower`.

    `multiplier` is the λ that proves the bound, y·λ − τ‖λ‖ minus the conjugate at Φᵀλ. `residual` = ‖Φa − y‖.
    """

    a: Floats
    flatness: float
    lower: float
    multiplier: Floats
    residual: float

    @property
    def gap(self) -> float:
        """(flatness − lower)/flatness."""
        return (self.flatness - self.lower) / self.flatness if self.flatness > 0 else 0.0


class Reduced(NamedTuple):
    """The same program in an orthonormal basis of the range of Φ, so that Φ has full rank, without neurons that no
    example activates. `given` is the original (Φ, y), `used` are the neurons that remain."""

    phi: Floats
    y: Floats
    q: Floats
    tau: float
    basis: Floats
    used: NDArray[np.int64]
    given: tuple[Floats, Floats]

    def proven(self, multiplier: Floats) -> float:
        """y·λ − τ‖λ‖."""
        return float(self.y @ multiplier - self.tau * np.linalg.norm(multiplier))

    def primal(self, multiplier: Floats, penalty: Penalty) -> Floats:
        """Outer weights in the tube ‖Φa − y‖ ≤ τ, from those of a multiplier."""
        s = self.phi.T @ multiplier
        a, metric = penalty.slope(s), penalty.curvature(s)
        # Optimal is y − Φa = τλ/‖λ‖.
        fitted = self.y - self.tau * multiplier / np.linalg.norm(multiplier)
        bend = gram(self.phi, metric)
        for _ in range(2):  # the second pass removes the rounding of the first
            a = a + metric * (self.phi.T @ solved(bend, fitted - self.phi @ a))
        # Few neurons may carry nearly all of the metric, and then they do not span every residual: the others get a
        # share, and as the last resort all neurons get the same.
        for floor in (0.0, 1e-9, 1e-3, np.inf):
            weights = metric + floor * metric.max() if floor < np.inf else 1 / self.q**2
            moved = self._inside(a, weights)
            if np.linalg.norm(self.y - self.phi @ moved) <= self._reach(moved, 1.0):
                break
        return self._shortened(moved)

    def _reach(self, a: Floats, margin: float) -> float:
        """τ, less `margin` times what rounding can hide in ‖Φa − y‖; never below the rounding itself."""
        hidden = 4 * np.finfo(float).eps * float(np.linalg.norm(np.abs(self.phi) @ np.abs(a)) + np.linalg.norm(self.y))
        return max(self.tau - margin * hidden, hidden)

    def _inside(self, a: Floats, weights: Floats) -> Floats:
        """a moved into the tube, by the shortest way in the metric 1/weights."""
        bend = gram(self.phi, weights)
        for _ in range(_PASSES):  # a pass removes the rounding of the one before
            left = self.y - self.phi @ a
            length, goal = float(np.linalg.norm(left)), self._reach(a, 2.0) if self.tau > 0 else 0.0
            if length <= self._reach(a, 1.0):
                break
            a = a + weights * (self.phi.T @ solved(bend, (1 - goal / length) * left))
        return a

    def _shortened(self, a: Floats) -> Floats:
        """The shortest multiple of a in the tube: all cost less than a."""
        fitted, goal = self.phi @ a, self._reach(a, 1.0)
        square, along = float(fitted @ fitted), float(fitted @ self.y)
        room = along**2 - square * float(self.y @ self.y - goal**2)
        if self.tau == 0 or room <= 0 or square == 0:
            return a
        share = (along - room**0.5) / square
        return a * share if 0 < share < 1 and np.linalg.norm(self.y - share * fitted) <= goal else a

    def whole(self, a: Floats, p: float, multiplier: Floats, value: float) -> Interpolator:
        """The result for the original program; `value` is what the multiplier proves."""
        phi, y = self.given
        every = np.zeros(phi.shape[1])
        every[self.used] = a
        flatness = float(self.q @ np.abs(a) ** p)
        residual = float(np.linalg.norm(phi @ every - y))
        # Where rounding exchanges the order of the two numbers, their distance counts as gap.
        lower = flatness - abs(flatness - value)
        return Interpolator(every, flatness, lower, self.lifted(multiplier), residual)

    def lifted(self, multiplier: Floats) -> Floats:
        """The multiplier in all coordinates of y. The part of y outside the range of Φ belongs to every residual, and
        λ is parallel to the residual: without that part y·λ − τ‖λ‖ would prove less."""
        inner, outside = self.basis @ multiplier, self.given[1] - self.basis @ self.y
        outside = outside - self.basis @ (self.basis.T @ outside)
        if self.tau == 0:
            return inner
        return inner + float(np.linalg.norm(multiplier)) / self.tau * outside


def reduced(phi: Floats, y: Floats, q: Floats, tau: float) -> Reduced:
    """The reduced program; raises NoInterpolatorError if y is farther than τ from the range of Φ."""
    used = np.flatnonzero((phi != 0).any(axis=0))
    U, values, _ = np.linalg.svd(phi[:, used], full_matrices=False)
    basis = U[:, values > _RANK * values[:1].sum()] if len(used) else np.zeros((len(y), 0))
    inside = basis.T @ y
    outside = float(np.linalg.norm(y - basis @ inside))
    # y itself is rounded: an error of 1e-9 of its length counts as fitted.
    if outside > tau + 1e-9 * np.linalg.norm(y):
        allowed = "no interpolator exists" if tau == 0 else f"no outer weights come within tau = {tau:g}"
        raise NoInterpolatorError(
            f"{allowed}: {phi.shape[1]} neurons span {basis.shape[1]} of {len(y)} examples, and the best fit is "
            f"{outside:.3g} away from y. Use more neurons, or a tau above {outside:.3g}."
        )
    return Reduced(
        basis.T @ phi[:, used], inside, q[used], float(np.sqrt(max(tau**2 - outside**2, 0.0))), basis, used, (phi, y)
    )  # fmt: skip


def flattest_interpolator(phi: Any, y: Any, q: Any, p: float, *, tau: float = 0.0, rtol: float = 1e-8) -> Interpolator:
    """min Σ_k q_k |a_k|^p over ‖Φa − y‖ ≤ τ for 1 ≤ p ≤ 2, to a relative gap of rtol; `features` gives Φ, q and p.

    With τ = 0, p = 1 (activations of degree 1) is a linear program, and p = 2c/(c + 1) > 1 a smooth one. The dual is
    max y·λ − τ‖λ‖ − ψ(Φᵀλ) with ψ the conjugate of the cost, smooth for p > 1; for p = 1 it is the constraint
    |Φᵀλ| ≤ q, which a logarithmic barrier replaces. Newton's method has one unknown for each example: for 100 examples
    and 1000 neurons Clarabel through cvxpy takes 4 times as long with p = 1, and 18 times with p = 4/3.

    Convex program of multi-index, Eq. 3.

    >>> best = flattest_interpolator([[1.0, 2.0]], [4.0], [1.0, 3.0], 1.0)  # 1·4 against 3·2
    >>> best.a.round(6).tolist(), round(best.flatness, 6)
    ([4.0, 0.0], 4.0)
    """
    problem = reduced(*_arguments(phi, y, q), check.number("tau", tau, minimum=0.0))
    p, rtol = check.number("p", p, minimum=1.0), check.number("rtol", rtol, above=0.0)
    if p > 2:
        check.refuse("p", "from 1 to 2", p, "p = 2c/(c + 1) for an activation of degree c.")
    if np.linalg.norm(problem.y) <= problem.tau:  # a = 0 is enough
        return problem.whole(np.zeros(len(problem.q)), p, np.zeros(len(problem.y)), 0.0)
    with one_thread(rows=len(problem.y)):
        return _smooth(problem, p, rtol) if p > 1 else _linear(problem, rtol)


def _smooth(problem: Reduced, p: float, rtol: float) -> Interpolator:
    penalty = Power(problem.q, p)
    # The best multiple of y, in closed form, because the penalty is a power along it.
    s = problem.phi.T @ problem.y
    room = float(problem.y @ problem.y - problem.tau * np.linalg.norm(problem.y))
    multiplier = problem.y * (room / (penalty.r * penalty.value(s))) ** (1 / (penalty.r - 1))
    best, accuracy = None, 1e-3 * rtol
    while True:
        multiplier = maximise(problem.phi, problem.y, problem.tau, penalty, multiplier, rtol=accuracy)
        value = problem.proven(multiplier) - penalty.value(problem.phi.T @ multiplier)
        found = problem.whole(problem.primal(multiplier, penalty), p, multiplier, value)
        best = found if best is None or found.gap < best.gap else best
        # Where τ nearly reaches y, the value is a small difference of large terms.
        if best.gap <= rtol or accuracy < np.finfo(float).eps:
            return best
        accuracy *= 1e-3


def _linear(problem: Reduced, rtol: float) -> Interpolator:
    """Along the path of the barrier, μ shrinking until the gap is small."""
    s = problem.phi.T @ problem.y
    multiplier = problem.y * (0.5 / np.max(np.abs(s) / problem.q))
    best = None
    mu, centred = problem.proven(multiplier) / len(problem.q), _CENTRED
    for _ in range(_ROUNDS):
        penalty = Barrier(problem.q, mu)
        # Close enough to the path for the next μ; the gap is measured in any case.
        share = mu * len(problem.q) / max(problem.proven(multiplier), np.finfo(float).tiny)
        tight = max(1e-2 * rtol * min(1.0, centred / _CENTRED), centred * share)
        multiplier = maximise(problem.phi, problem.y, problem.tau, penalty, multiplier, rtol=tight)
        found = problem.whole(problem.primal(multiplier, penalty), 1.0, multiplier, problem.proven(multiplier))
        best = found if best is None or found.gap < best.gap else best
        # A barrier below 1e-14 of the value is rounding.
        if best.gap <= rtol or mu * len(problem.q) < 1e-14 * best.flatness:
            break
        # The barrier leaves 2mμ: a larger gap comes from a point off its path.
        if found.gap > 10 * share:
            centred *= 0.1
        else:
            mu *= _SHRINK
    assert best is not None
    return best


def _arguments(phi: Any, y: Any, q: Any) -> tuple[Floats, Floats, Floats]:
    phi, y, q = (np.asarray(a, dtype=float) for a in (phi, y, q))
    if phi.ndim != 2 or 0 in phi.shape:
        check.refuse("phi", "of shape (n, m), one row for each example", phi.shape, "Pass the features of the data.")
    if y.shape != phi.shape[:1] or q.shape != phi.shape[1:]:
        rule = f"of shapes ({phi.shape[0]},) and ({phi.shape[1]},)"
        check.refuse(
            "y and q", rule, (y.shape, q.shape), "Pass one label for each example and one weight for each neuron."
        )
    for name, a in (("phi", phi), ("y", y), ("q", q)):
        check.finite(name, a)
    felt = (phi != 0).any(axis=0)
    if (q[felt] <= 0).any():
        check.refuse("q", "> 0 for every neuron that an example activates", q[felt].min(), "Use features(W, x, σ).")
    return phi, y, q
