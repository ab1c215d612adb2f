"""E(f(x) − g(Ux))² for x ~ N(0, I): in closed form where f and g are sums of monomials, and by a fresh sample."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.multi_index.moments import product_mean
from steppe.estimate import Estimate
from steppe.problems.data.links import Expansion, Link
from steppe.problems.data.multi_index import indices
from steppe.problems.networks.homogeneous import Homogeneous


def population_loss(W: Any, a: Any, activation: Homogeneous, link: Expansion, U: Any, *, noise: float = 0.0) -> float:
    """E(Σ_k a_k σ(w_k·x) − y)², y = g(Ux) + noise: aᵀKa − 2aᵀk + E g² + noise², multi-index, appendix B.1.

    >>> from steppe.problems.data.links import Linear
    >>> from steppe.problems.networks.homogeneous import linear
    >>> population_loss([[1.0, 2.0]], [1.0], linear, Linear((1.0,)), [[1.0, 0.0]], noise=0.5)     # 2² + ½²
    4.25
    """
    if not isinstance(link, Expansion):
        check.refuse("link", "a sum of homogeneous functions for a closed form", link, "Take sampled_loss.")
    weights, outer = _network(W, a)
    rows = indices(link, U)
    parts = [(activation, weights, outer)]
    parts += [(term.activation, term.directions @ rows, -term.coefficients) for term in link.terms()]
    total = sum(
        float(c1 @ product_mean(s1, s2, v1, v2) @ c2) for s1, v1, c1 in parts for s2, v2, c2 in parts
    )  # fmt: skip
    # A sum of large terms that cancel may end below 0 by rounding.
    return max(total, 0.0) + check.number("noise", noise, minimum=0.0) ** 2


def least_population_loss(W: Any, activation: Homogeneous, link: Expansion, U: Any, *, noise: float = 0.0) -> float:
    """min over a of the population loss, E g² − kᵀK⁺k + noise²: no outer weights do better (Proposition 4).

    >>> from steppe.problems.data.links import Linear
    >>> from steppe.problems.networks.homogeneous import linear
    >>> round(least_population_loss([[0.6, 0.8]], linear, Linear((1.0,)), [[1.0, 0.0]]), 12)      # 1 − 0.6²
    0.64
    """
    weights, rows = np.asarray(W, dtype=float), indices(link, U)
    K = product_mean(activation, activation, weights, weights)
    k, power = np.zeros(len(weights)), 0.0
    for term in link.terms():
        k += product_mean(activation, term.activation, weights, term.directions @ rows) @ term.coefficients
        for other in link.terms():
            both = product_mean(term.activation, other.activation, term.directions @ rows, other.directions @ rows)
            power += float(term.coefficients @ both @ other.coefficients)
    values, vectors = np.linalg.eigh(K)
    # Directions in which K is 0 to rounding: f is 0 there, and so is k.
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
    """The same on n fresh examples, any link, inner biases b: value ± 4 standard errors, labels without noise, whose
    variance is added."""
    weights, outer = _network(W, a)
    rows, n = indices(link, U), check.integer("n", n, minimum=2)
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
