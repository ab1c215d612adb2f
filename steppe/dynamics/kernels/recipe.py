"""A dynamics as the numbers that every kernel understands."""

from dataclasses import dataclass, replace

import numpy as np

from steppe.dynamics.base import Dynamics
from steppe.dynamics.gd import GD
from steppe.dynamics.label_noise import LabelNoise
from steppe.dynamics.projected import Projected
from steppe.dynamics.sam import SAM


@dataclass(frozen=True)
class Recipe:
    """w ← Π((1 − ηλ)w − η∇ℓ(w + ρ∇ℓ/‖∇ℓ‖)): GD is ρ = 0; labels with noise σ; Π scales `held` to `norm`, if any."""

    lr: float
    rho: float
    weight_decay: float
    batch_size: int | None
    sigma: float = 0.0
    held: frozenset[str] = frozenset()
    norm: float = 0.0

    def rates(self, number: type[np.floating]) -> tuple[np.floating, np.floating, np.floating]:
        """η, ρ and 1 − ηλ in the precision of the weights."""
        return number(self.lr), number(self.rho), number(1 - self.lr * self.weight_decay)


def recipe(dynamics: Dynamics) -> Recipe | None:
    """The recipe of a dynamics, looking through its wrappers; None for one that no kernel knows."""
    if isinstance(dynamics, GD | SAM):
        lr, decay, rho = dynamics.lr, dynamics.weight_decay, dynamics.rho if isinstance(dynamics, SAM) else np.zeros(())
        if lr.ndim or rho.ndim or decay.ndim:
            return None
        return Recipe(float(lr), float(rho), float(decay), dynamics.batch_size)
    inner = recipe(dynamics.dynamics) if isinstance(dynamics, LabelNoise | Projected) else None
    if inner is None:
        return None
    if isinstance(dynamics, LabelNoise):
        return None if inner.sigma else replace(inner, sigma=float(dynamics.sigma))
    if isinstance(dynamics, Projected):
        return None if inner.held else replace(inner, held=dynamics.names, norm=float(dynamics.norm))
    return None
