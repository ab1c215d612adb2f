"""The flattest interpolators that have learned nothing: one neuron for each training point (wen2023, Theorem 4.1).

The width is the number of distinct points. Points must be extreme (Definition 4.1); |yᵢ| may be anything. If yᵢ = 0 the
neuron is silent, so Definition 4.2 (one active neuron for each point) holds on the points with yᵢ ≠ 0 only: an active
neuron would cost more than the bound, 0, allows.
"""

from typing import Any

from steppe.flattening import separating
from steppe.flattening.separating import Separation
from steppe.training_set import Params, appended_norm, distinct

__all__ = ["deep", "sim_ln", "two_layer"]


def __dir__() -> list[str]:
    return list(__all__)


def two_layer(x: Any, y: Any, *, separation: Separation | None = None, fraction: float = 0.5) -> Params:
    """W₁ᵢ = √(rᵢ|yᵢ|) wᵢ/ε, b₁ᵢ = √(rᵢ|yᵢ|)(ε − wᵢ·xᵢ)/ε, W₂ᵢ = sign(yᵢ)√(|yᵢ|/rᵢ), rᵢ = ‖x′ᵢ‖.

    ε is `fraction` of each point's gap; on the hypercube every corner not in x then gets output 0, so the zero-one
    error is 1 − n/2^d for n distinct points (Proposition 4.1). `separation` chooses the wᵢ (`separating`).

    >>> params = two_layer([[1, 1, -1], [-1, 1, 1]], [1, -1])
    >>> params["W1"].round(6).tolist()                              # √2 xᵢ, as r = 2 and wᵢ/ε = xᵢ
    [[1.414214, 1.414214, -1.414214], [-1.414214, 1.414214, 1.414214]]
    """
    return deep(x, y, 2, separation=separation, fraction=fraction)


def deep(x: Any, y: Any, depth: int, *, separation: Separation | None = None, fraction: float = 0.5) -> Params:
    """The same in depth D ≥ 2, with one neuron in each layer for each point (Theorem 4.1, appendix A.3.1).

    >>> {name: W.shape for name, W in deep([[1, 1], [-1, 1]], [1, -1], 4).items()}
    {'W1': (2, 2), 'b1': (2,), 'W2': (2, 2), 'W3': (2, 2), 'W4': (2,)}
    """
    points, labels = distinct(x, y)
    separation = separating.separate(points) if separation is None else separation
    return separating.deep(separation, appended_norm(points), labels, depth, fraction=fraction)


def sim_ln(x: Any, y: Any, eps: float, *, separation: Separation | None = None, fraction: float = 0.5) -> Params:
    """2-MLP-Sim-LN(ε) that memorises and attains (2/n) Σ min(1, (2/ε)‖x′ᵢ‖|yᵢ|) (Theorem 5.1, Proposition 5.1).

    >>> sim_ln([[1, 1], [-1, 1]], [1, -1], 0.1)["W2"].tolist()
    [1.0, -1.0]
    """
    points, labels = distinct(x, y)
    separation = separating.separate(points) if separation is None else separation
    return separating.sim_ln(separation, appended_norm(points), labels, eps, fraction=fraction)
