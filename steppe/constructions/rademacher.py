"""Complexity of 2-MLP-No-Bias with Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C, and the error it allows (appendix A.6.2, Theorem 3.1)."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs


def linear(x: Any) -> float:
    """√(Σ ‖xᵢ‖²)/n ≥ R_S({x ↦ w·x : ‖w‖ ≤ 1}) = E‖Σ σᵢxᵢ‖/n (Lemma A.25, which prints the first step as =).

    >>> linear([[3.0, 4.0], [0.0, 0.0]])
    2.5
    """
    points = inputs(x)
    return float(np.sqrt(np.sum(points**2)) / len(points))


def no_bias(C: float, B: float, n: int) -> float:
    """2CB/√n ≥ R_S({f_θ : Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C}) for n inputs of norm at most B (Lemma A.24).

    >>> no_bias(1.0, 5.0, 100)
    1.0
    """
    C, B = check.number("C", C, minimum=0.0), check.number("B", B, minimum=0.0)
    return float(2 * C * B / np.sqrt(check.integer("n", n, minimum=1)))


def fast_rate(d: int, n: Any, C: float, *, delta: float = 0.05, constant: float = 1.0) -> Floats:
    """K (2 log³n R² + b log(1/δ)/n), R = 2C√(d/n), b = (C√d + 1)²: the Õ(d/n) of Theorem 3.1 with its logarithms.

    Theorem A.3 (Srebro et al. 2010) for zero training loss, the square being 2-smooth and bounded by b on the
    hypercube, where |f| ≤ C√d. Its absolute constant K is not known: `constant` sets it, so only the shape is theory.

    >>> float(fast_rate(30, 1e6, 2.9)) < float(fast_rate(30, 1e5, 2.9))
    True
    """
    d, sizes = check.integer("d", d, minimum=1), _sizes(n)
    C, delta = check.number("C", C, minimum=0.0), check.number("delta", delta, above=0.0)
    if delta >= 1:
        check.refuse("delta", "below 1", delta, "It is the probability that the bound fails.")
    bounded = (C * np.sqrt(d) + 1) ** 2 * np.log(1 / delta) / sizes
    curve: Floats = constant * (8 * C**2 * np.log(sizes) ** 3 * d / sizes + bounded)
    return curve


def d_over_n(d: int, n: Any) -> Floats:
    """d/n, the line to compare a sample-complexity curve with.

    >>> d_over_n(30, [100, 300]).tolist()
    [0.3, 0.1]
    """
    return check.integer("d", d, minimum=1) / _sizes(n)


def _sizes(n: Any) -> Floats:
    sizes = np.asarray(n, dtype=np.float64)
    if not np.all(sizes >= 1):
        check.refuse("n", "1 or more", n, "It counts training examples.")
    return sizes
