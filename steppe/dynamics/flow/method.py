"""What a Runge-Kutta method must tell the flow: how far it may step, and where a step leads."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from jax import Array

# w ↦ (L(w), ∇L(w)).
Gradient = Callable[[Array], tuple[Array, Array]]


class Attempt(NamedTuple):
    """The end of a step, the loss and the gradient there, an estimate of its error, and the gradients it took."""

    w: Array
    loss: Array
    g: Array
    error: Array
    gradients: Array


def estimate(h: Array, moved: Array, g: Array, g_end: Array) -> Array:
    """The error of a step of RKC2, h³w‴/15, from both its ends."""
    return 0.8 * moved + 0.4 * h.astype(moved.dtype) * (g + g_end)


class Method(Protocol):
    """Immutable and hashable: part of what is compiled."""

    @property
    def order(self) -> int: ...

    @property
    def damps(self) -> bool:
        """Whether a step leaves little of what is stiff."""
        ...

    def longest(self, radius: Array) -> Array:
        """The longest step that is stable where the spectral radius of ∇²L was measured as `radius`."""
        ...

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array) -> Attempt:
        """A step of length h from w, where the gradient is g."""
        ...
