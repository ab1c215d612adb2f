"""The conjugate of Σ_k q_k |a_k|^p at s = Φᵀλ, or something smooth near it: what the dual subtracts.

ψ(s) = max_a (s a − q |a|^p); its slope is the a that attains it.
"""

import abc
from dataclasses import dataclass

import numpy as np

from steppe.constructions._examples import Floats


class Penalty(abc.ABC):
    """ψ with two derivatives, one entry a neuron; +∞ outside of its domain."""

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
    """p = 1: ψ(s) = 0 for |s| ≤ q and +∞ beyond, replaced by −μ log(1 − s²/q²); within 2mμ for m neurons."""

    q: Floats
    mu: float

    def value(self, s: Floats) -> float:
        inside = 1 - (s / self.q) ** 2
        return float(-self.mu * np.sum(np.log(inside))) if (inside > 0).all() else np.inf

    def slope(self, s: Floats) -> Floats:
        return 2 * self.mu * s / (self.q**2 - s**2)

    def curvature(self, s: Floats) -> Floats:
        return 2 * self.mu * (self.q**2 + s**2) / (self.q**2 - s**2) ** 2
