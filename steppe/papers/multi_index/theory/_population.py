"""E(f(x) − y)² for x ~ N(0, I): in closed form from moments of homogeneous functions, and by a fresh sample."""

from math import gamma, pi, sqrt
from typing import Any

import numpy as np

from steppe import check
from steppe.activations import Homogeneous
from steppe.data._gaussian import check_directions
from steppe.data.links import Expansion, Link, Shifted
from steppe.estimate import Estimate
from steppe.training_set import Floats

# The density of a standard Gaussian at 0.
_AT_ZERO = 1 / sqrt(2 * pi)


def half_moment(q: int) -> float:
    """E relu(g)^q for a standard Gaussian g; ½ for q = 0.

    >>> round(half_moment(2), 12), round(half_moment(4), 12)        # half of 1 and of 3
    (0.5, 1.5)
    """
    return 2 ** (q / 2 - 1) * gamma((q + 1) / 2) / sqrt(pi)


def quadrant(p: int, q: int, rho: Any) -> Floats:
    """E relu(g₁)^p relu(g₂)^q for Gaussians of correlation ρ, with relu(g)⁰ = 1[g > 0].

    By Stein's identity E g₁F = E ∂₁F + ρ E ∂₂F. (0, 0) is Sheppard's ¼ + asin(ρ)/2π, and (1, 1) is the arc-cosine
    kernel of degree 1 (Cho and Saul 2009).

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
    return first + inner


def _crossing(q: int, rho: Floats) -> Floats:
    """φ(0) E[relu(g₂)^q | g₁ = 0], from the jump of 1[g₁ > 0]; there g₂ has variance 1 − ρ²."""
    return _AT_ZERO * (1 - rho**2) ** (q / 2) * half_moment(q)


def product_mean(sigma: Homogeneous, tau: Homogeneous, W: Any, V: Any) -> Floats:
    """E σ(wⱼ·x) τ(v_k·x) for x ~ N(0, I) and all rows of W and V; σ and τ have whole degrees.

    >>> relu, w = Homogeneous(1.0, 0.0, 1), [[3.0, 4.0]]
    >>> product_mean(relu, relu, w, w).tolist()                     # 25/2
    [[12.5]]
    """
    degrees = [int(s.degree) if s.degree == int(s.degree) else None for s in (sigma, tau)]
    if None in degrees:
        got = [s.degree for s in (sigma, tau)]
        check.refuse("degree", "whole for moments in closed form", got, "Use sampled_loss.")
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


def population_loss(
    W: Any, a: Any, activation: Homogeneous, link: Expansion | Shifted, U: Any, *, noise: float = 0.0
) -> float:
    """E(Σ_k a_k σ(w_k·x) − y)² = aᵀKa − 2aᵀk + E g² + noise² for y = g(Ux) + noise (appendix B.1).

    A constant b added to the link adds b² − 2b E(f − g).

    >>> from steppe.data.links import Linear
    >>> from steppe.activations import linear
    >>> population_loss([[1.0, 2.0]], [1.0], linear, Linear((1.0,)), [[1.0, 0.0]], noise=0.5)     # 2² + ½²
    4.25
    """
    constant, link = (link.constant, link.inner) if isinstance(link, Shifted) else (0.0, link)
    if not isinstance(link, Expansion):
        check.refuse("link", "a sum of homogeneous functions for a closed form", link, "Use sampled_loss.")
    weights, outer = _network(W, a)
    rows = check_directions(link, U)
    parts = [(activation, weights, outer)]
    parts += [(term.activation, term.directions @ rows, -term.coefficients) for term in link.terms()]
    total = sum(
        float(c1 @ product_mean(s1, s2, v1, v2) @ c2) for s1, v1, c1 in parts for s2, v2, c2 in parts
    )  # fmt: skip
    if constant:
        total += constant**2 - 2 * constant * sum(_mean(*part) for part in parts)
    # Large terms cancel: rounding may leave a sum below 0.
    return max(total, 0.0) + check.number("noise", noise, minimum=0.0) ** 2


def _mean(sigma: Homogeneous, W: Floats, a: Floats) -> float:
    """E Σ_k a_k σ(w_k·x)."""
    c = int(sigma.degree)
    return float((sigma.positive + sigma.negative) * half_moment(c) * (np.linalg.norm(W, axis=1) ** c @ a))


def least_population_loss(W: Any, activation: Homogeneous, link: Expansion, U: Any, *, noise: float = 0.0) -> float:
    """min over a of the population loss: E g² − kᵀK⁺k + noise² (Proposition 4).

    >>> from steppe.data.links import Linear
    >>> from steppe.activations import linear
    >>> round(least_population_loss([[0.6, 0.8]], linear, Linear((1.0,)), [[1.0, 0.0]]), 12)      # 1 − 0.6²
    0.64
    """
    weights, rows = np.asarray(W, dtype=float), check_directions(link, U)
    K = product_mean(activation, activation, weights, weights)
    k, power = np.zeros(len(weights)), 0.0
    for term in link.terms():
        k += product_mean(activation, term.activation, weights, term.directions @ rows) @ term.coefficients
        for other in link.terms():
            both = product_mean(term.activation, other.activation, term.directions @ rows, other.directions @ rows)
            power += float(term.coefficients @ both @ other.coefficients)
    values, vectors = np.linalg.eigh(K)
    # In directions in which K is 0 to rounding f is 0, and so is k.
    kept = values > 1e-12 * values[-1]
    explained = float(np.sum((vectors[:, kept].T @ k) ** 2 / values[kept]))
    return max(power - explained, 0.0) + check.number("noise", noise, minimum=0.0) ** 2


def sampled_loss(
    W: Any,
    a: Any,
    activation: Homogeneous,
    link: Link,
    U: Any,
    *,
    noise: float = 0.0,
    b: Any = None,
    n: int = 20_000,
    key: int | np.random.Generator = 0,
) -> Estimate:
    """The population loss on n fresh examples, for any link and inner biases b: value ± 4 standard errors.

    The examples have labels without noise; its variance is added.
    """
    weights, outer = _network(W, a)
    rows, n = check_directions(link, U), check.integer("n", n, minimum=2)
    x = np.random.default_rng(key).standard_normal((n, rows.shape[1]))
    h = x @ weights.T + (0.0 if b is None else np.asarray(b, dtype=float))
    squares = (activation(h) @ outer - link(x @ rows.T)) ** 2 + check.number("noise", noise, minimum=0.0) ** 2
    value, error = float(np.mean(squares)), float(np.std(squares, ddof=1) / np.sqrt(n))
    # Four standard errors: 1 − 6.3e-5 for a Gaussian.
    return Estimate(value, value - 4 * error, value + 4 * error, 0.99994)


def _network(W: Any, a: Any) -> tuple[Floats, Floats]:
    weights, outer = np.asarray(W, dtype=float), np.asarray(a, dtype=float)
    if weights.ndim != 2 or outer.shape != weights.shape[:1]:
        got = (weights.shape, outer.shape)
        check.refuse("W and a", "of shapes (m, d) and (m,)", got, "Pass one outer weight for each row of W.")
    check.finite("W", weights)
    check.finite("a", outer)
    return weights, outer
