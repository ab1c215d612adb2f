"""Steps away from w by forward passes: the largest step along −g that does not raise the loss, and rounded weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steppe import check

Floats = NDArray[np.float64]

# Doublings or halvings of the first step: 2⁶⁰ covers all learning rates.
_DOUBLINGS = 60


@dataclass(frozen=True)
class CriticalStep:
    """The loss does not rise at `below` and rises at `above`; it took `losses` evaluations of the loss."""

    below: float
    above: float
    losses: int


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


def spacing(array: Floats, bits: int) -> float:
    """The distance of the numbers that `bits` bits can hold, from −max|a| to max|a| in 2^bits − 1 places."""
    return float(np.max(np.abs(array), initial=0.0)) / (2 ** (bits - 1) - 1)


def rounded(w: Floats, arrays: Mapping[str, slice], bits: int) -> tuple[Floats, dict[str, float]]:
    """w with each array rounded to the nearest of 2^bits − 1 equally spaced numbers around 0, and the spacings.

    >>> w, steps = rounded(np.array([-1.0, 0.2, 0.9]), {"W": slice(0, 3)}, 2)
    >>> w.tolist(), steps
    ([-1.0, 0.0, 1.0], {'W': 1.0})
    """
    result, steps = np.array(w, dtype=float), {}
    for name, place in arrays.items():
        step = steps[name] = spacing(result[place], bits)
        if step > 0:
            result[place] = step * np.round(result[place] / step)
    return result, steps
