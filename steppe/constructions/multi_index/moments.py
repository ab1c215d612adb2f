"""E σ(g₁)τ(g₂) for standard Gaussians of correlation ρ and homogeneous σ, τ of whole degrees, in closed form."""

from math import gamma, pi, sqrt
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.problems.networks.homogeneous import Homogeneous

_AT_ZERO = 1 / sqrt(2 * pi)


def half_moment(q: int) -> float:
    """E relu(g)^q, ½ for q = 0.

    >>> round(half_moment(2), 12), round(half_moment(4), 12)        # half of 1 and of 3
    (0.5, 1.5)
    """
    return 2 ** (q / 2 - 1) * gamma((q + 1) / 2) / sqrt(pi)


def quadrant(p: int, q: int, rho: Any) -> Floats:
    """E relu(g₁)^p relu(g₂)^q with relu(g)⁰ = 1[g > 0], by Stein's identity E g₁F = E ∂₁F + ρ E ∂₂F.

    (0, 0) is Sheppard's ¼ + asin(ρ)/2π, (1, 1) the arc-cosine kernel of degree 1 (Cho and Saul 2009).

    >>> quadrant(1, 1, np.array([1.0, 0.0, -1.0])).round(9).tolist()        # ½, 1/2π, 0
    [0.5, 0.159154943, 0.0]
    """
    rho = np.clip(np.asarray(rho, dtype=float), -1.0, 1.0)
    if p < q:
        return quadrant(q, p, rho)
    if p == 0:
        return 0.25 + np.arcsin(rho) / (2 * pi)
    inner = q * rho * quadrant(p - 1, q - 1, rho) if q else rho * _crossing(p - 1, rho)
    first = (p - 1) * quadrant(p - 2, q, rho) if p > 1 else _crossing(q, rho)
    result: Floats = first + inner
    return result


def _crossing(q: int, rho: Floats) -> Floats:
    """φ(0) E[relu(g₂)^q | g₁ = 0], what the jump of an indicator at g₁ = 0 gives: g₂ has variance 1 − ρ² there."""
    crossing: Floats = _AT_ZERO * (1 - rho**2) ** (q / 2) * half_moment(q)
    return crossing


def product_mean(sigma: Homogeneous, tau: Homogeneous, W: Any, V: Any) -> Floats:
    """E σ(wⱼ·x) τ(v_k·x) for x ~ N(0, I) and all rows of W and V.

    >>> relu, w = Homogeneous(1.0, 0.0, 1), [[3.0, 4.0]]
    >>> product_mean(relu, relu, w, w).tolist()                     # 25/2
    [[12.5]]
    """
    degrees = [int(s.degree) if s.degree == int(s.degree) else None for s in (sigma, tau)]
    if None in degrees:
        got = [s.degree for s in (sigma, tau)]
        check.refuse("degree", "whole for moments in closed form", got, "Take sampled_loss.")
    p, q = (check.integer("degree", c, minimum=0) for c in degrees)
    W, V = np.asarray(W, dtype=float), np.asarray(V, dtype=float)
    lengths = np.linalg.norm(W, axis=1)[:, None], np.linalg.norm(V, axis=1)[None]
    both = lengths[0] * lengths[1]
    rho = np.clip(np.divide(W @ V.T, both, out=np.zeros_like(both), where=both > 0), -1.0, 1.0)
    same = sigma.positive * tau.positive + sigma.negative * tau.negative
    across = sigma.positive * tau.negative + sigma.negative * tau.positive
    mean = np.zeros_like(rho)
    for coefficient, signed in ((same, rho), (across, -rho)):
        if coefficient:
            mean += coefficient * quadrant(p, q, signed)
    return lengths[0] ** p * lengths[1] ** q * mean
