"""The largest step along −∇L that does not raise the loss, by forward passes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jax import Array

from steppe import check
from steppe.curvature import AnyProblem, backend
from steppe.estimate import Estimate

# Doublings or halvings of the first step: 2⁶⁰ covers all learning rates.
_DOUBLINGS = 60


@dataclass(frozen=True)
class CriticalStep:
    """The loss does not rise at `below` and rises at `above`; it took `losses` evaluations of the loss."""

    below: float
    above: float
    losses: int

    @property
    def estimate(self) -> Estimate:
        """The critical sharpness 2/η*."""
        middle = float(np.sqrt(self.below * self.above))
        return Estimate(2 / middle, 2 / self.above, 2 / self.below, 1.0, self.losses)


def critical_step(rise: Callable[[float], float], first: float, *, rtol: float, rounding: float = 0.0) -> CriticalStep:
    """The first step η at which L(w − ηg) > L(w), between two steps that differ by rtol; rise(η) = L(w − ηg) − L(w).

    Doubling, then bisection: no second derivative is needed. On a quadratic along an eigenvector the step is 2/λ. A
    crossing between two doublings that is undone before the next one is not seen. Differences up to `rounding` decide
    nothing; where no larger one is seen on the way down, the step is refused.

    >>> found = critical_step(lambda s: -s + 0.5 * 4.0 * s**2, 1e-3, rtol=1e-3)      # g = 1, λ = 4: 2/λ
    >>> found.below <= 0.5 < found.above < 0.501
    True
    """
    losses, lowest = 0, 0.0

    def raised(step: float) -> bool:
        nonlocal losses, lowest
        losses += 1
        value = rise(step)
        lowest = min(lowest, value)  # NaN leaves it as it is
        return not value <= rounding  # NaN and infinity are raised

    below, above = first, first
    for _ in range(_DOUBLINGS):
        if raised(first):
            above = first
            break
        below, first = first, 2 * first
    else:
        remedy = "Along the gradient the loss has no upper turn: there is no critical step."
        check.refuse("loss", "one that some step along the gradient raises", f"none up to η = {below:.3g}", remedy)
    if losses == 1:  # the first step is too long already
        for _ in range(_DOUBLINGS):
            below = above / 2
            if not raised(below):
                break
            above = below
        else:
            remedy = "Its decrease is below rounding, or the gradient is not that of the loss."
            check.refuse("loss", "one that some step along the gradient lowers", f"none down to {below:.3g}", remedy)
    if lowest >= -rounding:
        remedy = "The gradient is too small for differences of the loss: w is stationary to rounding."
        check.refuse("loss", "one whose decrease exceeds its rounding", f"{rounding:.2g}", remedy)
    while above > (1 + rtol) * below:
        middle = float(np.sqrt(below * above))
        below, above = (below, middle) if raised(middle) else (middle, above)
    return CriticalStep(below, above, losses)


def critical_sharpness(problem: AnyProblem, w: Array | None = None, *, rtol: float = 1e-2) -> Estimate:
    """2/η*, where η* is the first step along −g = −∇L(w) past which the loss is higher than at w.

    It takes one gradient and some 20 forward passes, counted as `matvecs`, and no second derivatives. The true 2/η*
    lies within `lower` and `upper`, which differ by rtol. For a quadratic loss it is gᵀHg/‖g‖² ≤ λ_max(H), the
    `edge_ratio` without a step, and λ_max where g is the leading eigenvector, as at the edge of stability. Where the
    loss is not quadratic it says what a step does, and can lie on either side of λ_max. It speaks of the next step
    from w; the critical rate η_c of `steppe.critical_rate` speaks of a whole training run.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.array([2.0]), jnp.zeros(1), steppe.losses.half_mse)
    >>> found = critical_sharpness(p, rtol=1e-3)                                  # L = 2w², H = 4
    >>> found.lower <= 4 <= found.upper, round(found.value, 2)
    (True, 4.0)
    """
    check.number("rtol", rtol, above=0.0, remedy="Pass the relative width of the interval, for instance 1e-2.")
    here = backend(problem)
    w = here.prepared(problem, w)
    g = here.gradient(problem, w)
    size, length = float(np.linalg.norm(g)), float(np.linalg.norm(np.asarray(w, dtype=float)))
    if not 0.0 < size < np.inf:
        check.refuse(
            "the gradient", "finite and not zero", size, "At a stationary point no step along it says anything."
        )
    loss = here.loss_value(problem, w)
    eps = float(np.finfo(np.asarray(problem.w0).dtype).eps)

    def rise(step: float) -> float:
        return here.loss_value(problem, w - (step * g).astype(g.dtype)) - loss

    found = critical_step(rise, 1e-4 * (length or 1.0) / size, rtol=rtol, rounding=16 * eps * abs(loss))
    return found.estimate
