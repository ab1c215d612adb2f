"""Two points under the logistic loss (Theorem F.1), and classifiers on the sphere."""

from typing import Any

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.papers.conflicting_biases.theory.risks import mean
from steppe.training_set import Floats

# x₁ = (0, 1) of class 0, x₂ = (x̃₂, 1) of class 1, ‖x̃₂‖ = 1, w = (w̃, b), z = ⟨w̃, x̃₂⟩.


def slope(t: Any) -> Floats:
    """g′(t) = g(t)(1 − g(t)) = 1/(4 cosh²(t/2)).

    >>> float(slope(0.0))
    0.25
    """
    return 0.25 / np.cosh(np.asarray(t, dtype=np.float64) / 2) ** 2


def loss(w: Any, x2: Any) -> float:
    """−½(log(1 − g(b)) + log g(z + b)), the logistic loss with the sign that is missing in appendix F."""
    w, x2 = np.asarray(w, dtype=np.float64), np.asarray(x2, dtype=np.float64)
    b = w[-1]
    return float(0.5 * (np.logaddexp(0, b) + np.logaddexp(0, -(w[:-1] @ x2 + b))))


def sharpness(z: Any, b: Any) -> Floats:
    """¼(g′(b) + 2g′(z + b) + √(g′(b)² + 4g′(z + b)²)), the larger root of `quadratic`.

    >>> round(float(sharpness(1.0, 0.0)), 4)
    0.2773
    """
    p, q = slope(b), slope(np.asarray(z) + b)
    return (p + 2 * q + np.sqrt(p**2 + 4 * q**2)) / 4


def quadratic(z: float, b: float) -> tuple[float, float, float]:
    """Coefficients of λ² − (½g′(b) + g′(z + b))λ + ¼g′(b)g′(z + b): its roots are the non-zero eigenvalues."""
    p, q = float(slope(b)), float(slope(z + b))
    return 1.0, -(p / 2 + q), p * q / 4


def max_margin(x2: Any) -> Floats:
    """(x̃₂, −½) (Theorem F.1 i); every positive multiple is the same classifier."""
    return np.append(np.asarray(x2, dtype=np.float64), -0.5)


LEAST = float(sharpness(1.0, 0.0))  # of these classifiers


# The error of a classifier made from one draw on another draw (appendix F), with m = ‖μ‖:
# P[cos∠(g, g′) ≤ c], g, g′ ~ N(μ, I_d).

MAX_MARGIN, MIN_SHARPNESS = 0.5, 0.0  # c of the two classifiers


def isotropic(d: int, c: float) -> float:
    """m = 0: Γ(d/2)/(Γ((d−1)/2)Γ(½)) ∫_{−1}^c (1 − t²)^{(d−3)/2} dt, an incomplete beta function.

    >>> round(isotropic(3, 0.5), 12)                                # for d = 3 the cosine is uniform
    0.75
    """
    from scipy.special import betainc

    d = check.integer("d", d, minimum=2, remedy="On a line the cosine is ±1.")
    return float(betainc((d - 1) / 2, (d - 1) / 2, (1 + c) / 2))


def error(d: int, m: float, c: float, *, nodes: int = 160) -> float:
    """Any c, any m: Gauss-Legendre over both angles with μ, an incomplete beta function for the rotation around μ.

    cos∠(g, g′) = cos φ cos φ′ + t sin φ sin φ′ with t the first coordinate of a uniform point of S^{d−2}. For small d
    the last factor has kinks in φ: the error is about 1e-4 at d = 3, 1e-5 at d = 5, below 1e-8 from d = 10 on.

    >>> round(error(12, 0.0, 0.5), 9) == round(isotropic(12, 0.5), 9)
    True
    """
    from scipy.special import betainc

    d = check.integer("d", d, minimum=3, remedy="In the plane the rotation around μ is only a sign.")
    m = check.number("m", m, minimum=0.0)
    angle, weight = _angles(d, m, nodes)
    cos, sin = np.cos(angle), np.sin(angle)
    turn = (c - np.outer(cos, cos)) / np.outer(sin, sin)
    half = (d - 2) / 2
    below = betainc(half, half, np.clip((1 + turn) / 2, 0, 1))
    return float(weight @ below @ weight)


def monte_carlo(d: int, m: float, c: float, *, samples: int = 200_000, key: int = 0) -> Estimate:
    """The same by Monte Carlo, ± 2.576 standard errors."""
    rng = np.random.default_rng(key)
    first, second = rng.standard_normal((2, samples, d))
    first[:, 0] += m
    second[:, 0] += m
    cosine = np.sum(first * second, axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return mean((cosine <= c).astype(float))


def exponent(c: float) -> float:
    """−lim ln P / m²: ½(1 − c): the most likely way to that angle is that both points turn by half of it."""
    return (1 - check.number("c", c)) / 2


def _angles(d: int, m: float, nodes: int) -> tuple[Floats, Floats]:
    """Nodes in φ = ∠(g, μ) and their probabilities: sin^{d−2}φ ∫ r^{d−1} e^{−½(r² − 2rm cos φ)} dr."""
    # Rare errors come from the tail: the nodes cover all of (0, π), more densely near 0.
    t, dt = np.polynomial.legendre.leggauss(nodes)
    unit = (t + 1) / 2
    angle, stretch = np.pi * unit**2, 2 * np.pi * unit * dt / 2
    r, dr = np.polynomial.legendre.leggauss(nodes)
    radius = (m + np.sqrt(d) + 10) * (r + 1) / 2
    power: Any = (d - 1) * np.log(radius)[None] - 0.5 * (radius**2)[None] + m * np.outer(np.cos(angle), radius)
    shift = power.max()
    density = np.exp(power - shift) @ dr * np.sin(angle) ** (d - 2)
    mass = density * stretch
    probabilities: Floats = mass / mass.sum()
    return angle, probabilities
