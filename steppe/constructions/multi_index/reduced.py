"""The same program in an orthonormal basis of the range of Φ, without neurons that do nothing, and the way back."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steppe.constructions._examples import Floats
from steppe.constructions.multi_index.dual import gram, solved
from steppe.constructions.multi_index.penalties import Penalty

# Singular values of Φ below this share of the largest are rounding.
_RANK = 1e-11


class NoInterpolatorError(ValueError):
    """No outer weights fit the labels: y is further from the range of Φ than allowed."""


@dataclass(frozen=True, eq=False)
class Interpolator:
    """Outer weights `a` with ‖Φa − y‖ ≤ τ and Σ q_k |a_k|^p = `flatness`; none has less than `lower`.

    `multiplier` is the λ that proves it: y·λ − τ‖λ‖ minus the conjugate at Φᵀλ. `residual` = ‖Φa − y‖.
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
    """min Σ q_k |a_k|^p over ‖Φa − y‖ ≤ τ with Φ of full rank; `given` is what came, `used` its neurons."""

    phi: Floats
    y: Floats
    q: Floats
    tau: float
    basis: Floats
    used: NDArray[np.int64]
    given: tuple[Floats, Floats]

    def primal(self, multiplier: Floats, penalty: Penalty) -> Floats:
        """The a of that multiplier, moved onto the constraint in the metric of the penalty."""
        s = self.phi.T @ multiplier
        a, metric = penalty.slope(s), penalty.curvature(s)
        # Optimal is y − Φa = τλ/‖λ‖; a little inside of that, so that rounding does not end outside.
        fitted = self.y - self.tau * (1 - 1e-12) * multiplier / np.linalg.norm(multiplier)
        bend = gram(self.phi, metric)
        for _ in range(2):  # the second time for what rounding left
            a = a + metric * (self.phi.T @ solved(bend, fitted - self.phi @ a))
        return a

    def whole(self, a: Floats, p: float, multiplier: Floats, lower: float) -> Interpolator:
        phi, y = self.given
        every = np.zeros(phi.shape[1])
        every[self.used] = a
        flatness = float(self.q @ np.abs(a) ** p)
        # At the optimum both are one number, and rounding may order them the other way round.
        residual = float(np.linalg.norm(phi @ every - y))
        return Interpolator(every, flatness, min(lower, flatness), self.basis @ multiplier, residual)


def reduced(phi: Floats, y: Floats, q: Floats, tau: float) -> Reduced:
    """That problem; NoInterpolatorError where nothing is near enough to y."""
    used = np.flatnonzero((phi != 0).any(axis=0))
    U, values, _ = np.linalg.svd(phi[:, used], full_matrices=False)
    basis = U[:, values > _RANK * values[:1].sum()] if len(used) else np.zeros((len(y), 0))
    inside = basis.T @ y
    outside = float(np.linalg.norm(y - basis @ inside))
    # Rounding of y itself: 1e-9 of its length counts as fitted.
    if outside > tau + 1e-9 * np.linalg.norm(y):
        allowed = "no interpolator exists" if tau == 0 else f"nothing comes within tau = {tau:g}"
        raise NoInterpolatorError(
            f"{allowed}: {phi.shape[1]} neurons span {basis.shape[1]} of {len(y)} examples, and the best fit is "
            f"{outside:.3g} away from y. Take more neurons, or tau above {outside:.3g}."
        )
    return Reduced(
        basis.T @ phi[:, used], inside, q[used], float(np.sqrt(max(tau**2 - outside**2, 0.0))), basis, used, (phi, y)
    )  # fmt: skip
