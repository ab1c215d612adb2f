"""The flattest rescaling: min over t of λ_max(M(t)), a convex problem, with a proven lower bound."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from steppe import check
from steppe.linalg.one_thread import one_thread
from steppe.linalg.rescaling.balance import balance, lower_bound
from steppe.linalg.rescaling.rescaling import Floats, Rescaling
from steppe.linalg.rescaling.smoothed import Smoothed, smoothed, value

_ROUNDS, _NEWTON, _SHRINK = 60, 60, 0.2


@dataclass(frozen=True, eq=False)
class Flattest:
    """`value` = λ_max(M(t)); no t has less than `lower`, and `gap` = (value − lower)/value.

    `top` is the bound of the top eigenvector alone, (S88) of mulayoff2021; `lower` is that of the best mixture found,
    which is needed where the largest eigenvalue is multiple at the minimum. `steps` counts Newton steps.
    """

    t: Floats
    value: float
    lower: float
    top: float
    steps: int

    @property
    def gap(self) -> float:
        return (self.value - self.lower) / self.value if self.value > 0 else 0.0


def flattest(form: Rescaling, *, rtol: float = 1e-8) -> Flattest:
    """min_t λ_max(M(t)) to a relative gap of `rtol`, or as near as rounding allows: read the gap.

    λ_max is the limit of μ log tr e^{M/μ} for μ → 0. At the minimum of that function over t the matrix
    Q = e^{M/μ}/tr e^{M/μ} has min_t ⟨M(t), Q⟩ ≥ λ_max − μ log N, and by min max ≥ max min every Q ⪰ 0 of trace 1 gives
    a lower bound (mulayoff2021, (S84), for Q = qqᵀ). Newton's method in t, μ shrinking.

    >>> form = Rescaling.of([([[1.0], [0.0]], -1, 0), ([[0.0], [4.0]], 0, -1)], 1)
    >>> best = flattest(form)                                      # max(e^{−2t}, 16 e^{2t}): both 4, no single q tells
    >>> round(best.value, 6), best.gap < 1e-7, round(best.top, 6)
    (4.0, True, 0.0)
    """
    rtol = check.number("rtol", rtol, above=0.0)
    with one_thread(rows=len(form.jacobian)):
        return _minimised(form, rtol)


def _minimised(form: Rescaling, rtol: float) -> Flattest:
    N = len(form.jacobian)
    t = balance(form.exponents, form.weights(np.eye(N)))
    best = _bounded(form, t, np.eye(N) / N, None, 0)
    mu, steps = 0.1 * best.value, 0
    for _ in range(_ROUNDS if form.units and best.value > 0 else 0):
        point = smoothed(form, t, mu)
        for _ in range(_NEWTON):
            t, moved = _newton(form, t, mu, point)
            steps += 1
            point = smoothed(form, t, mu)
            # Then the bound that Q gives is off by a few rtol at most, whatever μ is.
            if not moved or np.max(np.abs(point.gradient), initial=0.0) <= 0.01 * rtol * point.top:
                break
        best = _bounded(form, t, point.density, best, steps, point.vector)
        if best.gap <= rtol:
            break
        mu *= _SHRINK
    return best


def _newton(form: Rescaling, t: Floats, mu: float, point: Smoothed) -> tuple[Floats, bool]:
    """A damped Newton step with backtracking; False where rounding leaves nothing to gain."""
    size = np.trace(point.hessian) / max(len(t), 1)
    # Neurons that do not matter have no curvature: the damping holds them where they are.
    damping = 1e-14 * size + np.finfo(float).tiny
    while True:
        try:
            factor = cho_factor(point.hessian + damping * np.eye(len(t)))
            break
        except LinAlgError:
            damping *= 100
    step = -cho_solve(factor, point.gradient)
    step *= min(1.0, 2.0 / max(np.max(np.abs(step), initial=0.0), 1e-300))  # e² in scale at most
    slope, length = float(step @ point.gradient), 1.0
    while length > 1e-10:
        trial = t + length * step
        if value(form, trial, mu) < point.value + 0.1 * length * slope:
            return trial, True
        length /= 2
    return t, False


def _bounded(
    form: Rescaling, t: Floats, Q: Floats, before: Flattest | None, steps: int, vector: Floats | None = None
) -> Flattest:
    """The better of two points and of two bounds: any point is an upper bound, any Q a lower one."""
    m, V = np.linalg.eigh(form.gram(t))
    vector = V[:, -1] if vector is None else vector
    lower, top = (_least(form, density) for density in (Q, np.outer(vector, vector)))
    if before is not None:
        lower, top = max(lower, before.lower), max(top, before.top)
        t = t if m[-1] <= before.value else before.t
    least = float(m[-1]) if before is None else min(float(m[-1]), before.value)
    # At the minimum both are the same number, and rounding may order them the other way round.
    return Flattest(t, least, min(max(lower, top), least), min(top, least), steps)


def _least(form: Rescaling, Q: Floats) -> float:
    """A lower bound of min_t ⟨M(t), Q⟩, (S88) for any Q ⪰ 0 of trace 1."""
    weights = form.weights(Q / np.trace(Q))
    return lower_bound(form.exponents, weights, balance(form.exponents, weights))
