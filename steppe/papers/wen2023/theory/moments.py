"""How often a subgaussian vector with identity covariance is long (Lemma A.19), with its constants mended."""

import math

from steppe import check


def sphere_fourth_moment(d: int) -> float:
    """E v₁⁴ = 3/(d(d + 2)), v uniform on the unit sphere of R^d; Lemma A.19 prints 3/((d + 2)(d + 4)).

    >>> sphere_fourth_moment(1), sphere_fourth_moment(2)            # v = ±1; E cos⁴ = 3/8
    (1.0, 0.375)
    """
    d = check.integer("d", d, minimum=1)
    return 3 / (d * (d + 2))


def fourth_moment(d: int, sigma: float) -> float:
    """8 d(d + 2)(e^{σ²/2} − 3/2) ≥ E‖x‖⁴ for σ-subgaussian x with covariance I (proof of Lemma A.19, corrected).

    From 1 + ½ E‖x‖² E v₁² + (1/24) E‖x‖⁴ E v₁⁴ ≤ e^{σ²/2}; unit variance needs σ ≥ 1, where the bracket is positive.

    >>> fourth_moment(30, 1.0) >= 30**2                             # x on the hypercube has ‖x‖⁴ = d²
    True
    """
    return 24 / sphere_fourth_moment(d) * _bracket(sigma)


def long_probability(d: int, sigma: float) -> float:
    """d / (32 (d + 2)(e^{σ²/2} − 3/2)) ≤ Pr(‖x‖² > d/2), by Paley and Zygmund (Lemma A.19, corrected).

    >>> 0 < long_probability(30, 1.0) < 1
    True
    """
    return d**2 / (4 * fourth_moment(d, sigma))


def _bracket(sigma: float) -> float:
    sigma = check.number("sigma", sigma, minimum=1.0, remedy="Unit variance makes a subgaussian parameter ≥ 1.")
    return math.exp(sigma**2 / 2) - 1.5
