"""Where gradient flow ends, and errors of algorithms built on it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.examples import Floats
from steppe.papers.conflicting_biases.theory.manifold import example
from steppe.papers.conflicting_biases.theory.risk import Moments

# Gradient flow of the diagonal network in closed form: each coordinate moves alone in the time τ = −∫ h dt.


def flow_path(x: Any, w0: Any, tau: Any, *, depth: int = 2) -> Floats:
    """w(τ) of dw/dτ = L x ⊙ w^{L−1}: w₀e^{2xτ} for L = 2, (w₀^{2−L} − L(L−2)xτ)^{−1/(L−2)} above; (len τ, d).

    w′ = −h(w) L x ⊙ w^{L−1} is that equation in the time τ = −∫ h dt, which is how far the flow has come.

    >>> flow_path([1.0, 2.0], [1.0, 1.0], [0.0, 0.5]).round(4).tolist()
    [[1.0, 1.0], [2.7183, 7.3891]]
    """
    point, start = np.asarray(x, dtype=np.float64), _positive(w0)
    tau, L = np.asarray(tau, dtype=np.float64)[:, None], check.integer("depth", depth, minimum=1)
    if L == 1:
        return np.asarray(start + point * tau)
    if L == 2:
        return np.asarray(start * np.exp(2 * point * tau))
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(start ** (2.0 - L) - L * (L - 2) * point * tau, 0.0) ** (-1 / (L - 2)))


def flow_end(x: Any, y: Any, w0: Any, *, depth: int = 2) -> float:
    """The τ at which the flow from w₀ > 0 reaches M; w(τ) there is its limit."""
    from scipy.optimize import brentq

    point, label = example(x, y, depth=depth)
    start = _positive(w0)

    def h(tau: float) -> float:
        return float(flow_path(point, start, [tau], depth=depth)[0] ** depth @ point) - label

    return float(brentq(h, *_bracket(h, *_ends(point, start, depth)), xtol=1e-300, rtol=8.9e-16))


def flow_limit(x: Any, y: Any, w0: Any, *, depth: int = 2) -> Floats:
    """Where the flow from w₀ > 0 ends (Theorem B.1 is its limit w₀ → 0).

    >>> round(float(flow_limit([1.0], 4.0, 0.1)[0]), 12)
    2.0
    """
    point, _ = example(x, y, depth=depth)
    start = np.broadcast_to(np.asarray(w0, dtype=np.float64), point.shape)
    return flow_path(point, start, [flow_end(point, y, start, depth=depth)], depth=depth)[0]


def excess_rate(x: Any) -> float:
    """ε(α) ∝ α^p in Theorem B.1 for y > 0: p = 2(1 − x₂/x_max), x₂ the second largest value among the entries.

    From w = α e^{2xτ} with e^{4 x_max τ} → y/(x_max α²) the other entries are u = α²(y/(x_max α²))^{x/x_max}.

    >>> excess_rate([1.0, 0.25, 0.5])
    1.0
    """
    values = np.unique(np.asarray(x, dtype=np.float64))
    if len(values) < 2 or values[-1] <= 0:
        rule = "of two different entries, the largest positive"
        check.refuse("x", rule, values.tolist(), "Equal entries leave no excess.")
    return float(2 * (1 - values[-2] / values[-1]))


def _positive(w0: Any) -> Floats:
    start = np.asarray(w0, dtype=np.float64)
    if not (start > 0).all():
        check.refuse("w0", "positive", start.tolist(), "By symmetry of even depths flip signs; zeros stay zero.")
    return start


def _bracket(h: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Two τ between which h, which rises, changes sign: from 0 on in doubled steps that stop short of a blow-up."""
    toward = high if h(0.0) < 0 else low
    near, far = 0.0, float(np.sign(toward)) * 1e-3
    while True:
        far = far if abs(far) < abs(toward) else (near + toward) / 2
        if h(far) == 0 or (h(far) < 0) != (h(0.0) < 0):
            return min(near, far), max(near, far)
        near, far = far, 2 * far


def _ends(x: Floats, start: Floats, depth: int) -> tuple[float, float]:
    if depth <= 2:
        return -np.inf, np.inf
    with np.errstate(divide="ignore"):
        blow_up = start ** (2.0 - depth) / (depth * (depth - 2) * x)
    # Where the first coordinate becomes infinite.
    return max(blow_up[x < 0], default=-np.inf), min(blow_up[x > 0], default=np.inf)


# x = |g|, g ~ N(0, I_n), y = ⟨β, x⟩ + σε: the distribution of appendix E.1, with exact expectations for β = 1.

_ROOT = float(np.sqrt(2 / np.pi))  # the density of |g| at 0, and its mean


@dataclass(frozen=True)
class Folded:
    """The distribution of (x, y); `moments` in closed form, samples from a generator.

    >>> Folded(3).moments().mu.round(4).tolist()                    # 1 + 2(n − 1)/π
    [2.2732, 2.2732, 2.2732]
    """

    n: int
    beta: tuple[float, ...] | None = None
    noise: float = 0.0

    def weights(self) -> Floats:
        return np.ones(self.n) if self.beta is None else np.asarray(self.beta, dtype=np.float64)

    def moments(self) -> Moments:
        """Σᵢⱼ = 2/π off the diagonal and 1 on it, μ = Σβ, σ² = βᵀΣβ + noise²."""
        Sigma = np.full((self.n, self.n), 2 / np.pi) + (1 - 2 / np.pi) * np.eye(self.n)
        mu = Sigma @ self.weights()
        return Moments(Sigma, mu, float(self.weights() @ mu) + self.noise**2)

    def __call__(self, rng: np.random.Generator, samples: int) -> tuple[Floats, Floats]:
        x = np.abs(rng.standard_normal((samples, self.n)))
        return x, x @ self.weights() + self.noise * rng.standard_normal(samples)


@cache
def ratios_to_max(n: int) -> tuple[float, float]:
    """(E⟨1, x⟩/x_max, E⟨1, x⟩²/x_max²), exactly: given x_max = m the other entries are independent below m.

    For n = 2 they are 1 + (2/π) ln 2 and (4/π)(1 + ln 2).

    >>> [round(v, 6) for v in ratios_to_max(2)]
    [1.441271, 2.155782]
    """
    from scipy.special import erf

    n = check.integer("n", n, minimum=1)

    def given(m: float) -> tuple[float, float]:
        below = erf(m / np.sqrt(2))
        first = _ROOT * -np.expm1(-(m**2) / 2) / below / m
        second = (1 - _ROOT * m * np.exp(-(m**2) / 2) / below) / m**2
        return _moments_of_sum(n, first, second)

    return _against(lambda m: n * erf(m / np.sqrt(2)) ** (n - 1), given, 0.0)


@cache
def truncated_min(n: int, delta: float) -> tuple[float, float]:
    """(E⟨1, x⟩/x_min, E⟨1, x⟩²/x_min²) over x_min > δ: both grow without bound as δ → 0, so neither exists.

    The first grows by n(n − 1)(2/π) for each factor e in 1/δ, the second like `square_rate(n)`/δ.
    """
    from scipy.special import erfc

    n = check.integer("n", n, minimum=2)
    delta = check.number("delta", delta, above=0.0)

    def given(m: float) -> tuple[float, float]:
        above = erfc(m / np.sqrt(2))
        first = _ROOT * np.exp(-(m**2) / 2) / above / m
        second = (1 + _ROOT * m * np.exp(-(m**2) / 2) / above) / m**2
        return _moments_of_sum(n, first, second)

    return _against(lambda m: n * erfc(m / np.sqrt(2)) ** (n - 1), given, delta)


def log_rate(n: int) -> float:
    """n(n − 1)(2/π): density n√(2/π) of x_min at 0 times the mean (n − 1)√(2/π) of the other entries' sum."""
    return n * (n - 1) * 2 / np.pi


def square_rate(n: int) -> float:
    """n√(2/π) E(sum of n − 1 entries)²: E[⟨1, x⟩²/x_min²; x_min > δ] ≈ this / δ."""
    return n * _ROOT * ((n - 1) + (n - 1) * (n - 2) * 2 / np.pi)


def min_norm_error(n: int) -> float:
    """½(σ² + E⟨1, x⟩²/x_max² − 2μ E⟨1, x⟩/x_max), exact for y = ⟨1, x⟩ (appendix E.1, corrected)."""
    first, second = ratios_to_max(n)
    moments = Folded(n).moments()
    return 0.5 * (moments.sigma2 + second - 2 * float(moments.mu[0]) * first)


def min_sharpness_error(n: int, delta: float) -> float:
    """The same for x_min over x_min > δ: grows like `square_rate(n)`/(2δ), hence the expectation is infinite."""
    from scipy.special import erfc

    first, second = truncated_min(n, delta)
    moments = Folded(n).moments()
    kept = float(erfc(delta / np.sqrt(2))) ** n
    return 0.5 * (moments.sigma2 * kept + second - 2 * float(moments.mu[0]) * first)


def _moments_of_sum(n: int, first: float, second: float) -> tuple[float, float]:
    """Mean of 1 + s and of (1 + s)², s a sum of n − 1 independent ratios with these two moments."""
    k = n - 1
    return 1 + k * first, 1 + 2 * k * first + k * second + k * (k - 1) * first**2


def _against(weight: Any, given: Any, low: float) -> tuple[float, float]:
    """∫ given(m) weight(m) √(2/π)e^{−m²/2} dm from `low` on, in ln m: the integrands are powers of m near 0."""
    from scipy.integrate import quad

    def integrand(t: float, part: int) -> float:
        m = float(np.exp(t))
        return float(given(m)[part] * weight(m) * _ROOT * np.exp(-(m**2) / 2) * m)

    # Below e⁻²⁵ the half-normal has no mass that a double sees; above e^2.3 ≈ 10 neither.
    first = np.log(low) if low > 0 else -25.0
    halves = [quad(integrand, first, 2.3, args=(part,), epsabs=1e-12, epsrel=1e-12, limit=400)[0] for part in (0, 1)]
    return float(halves[0]), float(halves[1])


# Three idealised algorithms that see one example: least norm, least sharpness, least risk (section 3, Prop. E.2).

_MOST_SUPPORTS = 8


def min_norm(x: Any, y: Any) -> Floats:
    """u = (y/x_max) e_{k_max}: the limit of gradient descent from a small start with a vanishing rate.

    >>> min_norm([1.0, 0.5], 2.0).tolist()
    [2.0, 0.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmax(x, axis=-1))


def min_sharpness(x: Any, y: Any) -> Floats:
    """u = (y/x_min) e_{k_min}: where gradient descent would go with an extremely large rate, if it converged.

    >>> min_sharpness([1.0, 0.5], 2.0).tolist()
    [0.0, 4.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmin(x, axis=-1))


def min_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """The u ≥ 0 of least risk with ⟨x, u⟩ = y: `unconstrained` (Prop. E.2 iii) where that is ≥ 0, else on an edge.

    A convex quadratic program, solved on every support.

    >>> from steppe.papers.conflicting_biases.theory.risk import gaussian
    >>> min_risk([1.0, 0.5], 0.2, gaussian(2)).tolist()             # unconstrained it would be (−0.04, 0.48)
    [0.0, 0.4]
    """
    x, y = _examples(x, y)
    d = x.shape[-1]
    if d > _MOST_SUPPORTS:
        check.refuse("x", f"of at most {_MOST_SUPPORTS} entries", d, "Supports are gone through one by one.")
    best = np.full(x.shape, np.nan)
    least = np.full(y.shape, np.inf)
    for size in range(1, d + 1):
        for A in map(list, combinations(range(d), size)):
            u = np.zeros(x.shape)
            part = Moments(moments.Sigma[np.ix_(A, A)], moments.mu[A], moments.sigma2)
            u[..., A] = unconstrained(x[..., A], y, part)
            risk = np.where((u >= 0).all(axis=-1), moments.risk(u), np.inf)
            best = np.where((risk < least)[..., None], u, best)
            least = np.minimum(risk, least)
    return best


def unconstrained(x: Any, y: Any, moments: Moments) -> Floats:
    """Σ^{−½}(P⊥ μ_Σ + y x_Σ/‖x_Σ‖²) = Σ⁻¹(μ − κx), the minimum over all u ∈ ℝᵈ: Prop. E.2 (iii) as printed.

    It forgets u = w² ≥ 0, so that its root need not exist; see `min_risk`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    whitened = x @ inverse
    kappa = (whitened @ moments.mu - y) / np.sum(whitened * x, axis=-1)
    u: Floats = inverse @ moments.mu - kappa[..., None] * whitened
    return u


def unconstrained_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """½(σ² + y²/‖x_Σ‖² − 2y⟨μ_Σ, x_Σ⟩/‖x_Σ‖² − μ_Σᵀ P⊥ μ_Σ), the risk that Prop. E.2 (iii) states."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    length, along = np.sum((x @ inverse) * x, axis=-1), x @ inverse @ moments.mu
    across = moments.mu @ inverse @ moments.mu - along**2 / length
    risk: Floats = 0.5 * (moments.sigma2 + y**2 / length - 2 * y * along / length - across)
    return risk


def single_entry_risk(x: Any, y: Any, k: Any, moments: Moments) -> Floats:
    """½(σ² + Σ_kk y²/x_k² − 2 μ_k y/x_k), the risk of u = (y/x_k) e_k: Prop. E.2 (i), (ii), corrected."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = y / np.take_along_axis(x, np.asarray(k)[..., None], axis=-1)[..., 0]
    risk: Floats = 0.5 * (moments.sigma2 + np.diag(moments.Sigma)[k] * weight**2 - 2 * moments.mu[k] * weight)
    return risk


def _examples(x: Any, y: Any) -> tuple[Floats, Floats]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape[:-1] != y.shape:
        check.refuse("y", f"of shape {x.shape[:-1]}, one an example", y.shape, "Give x one row for each y.")
    if (x < 0).any() or (y < 0).any() or not (x > 0).any(axis=-1).all():
        check.refuse("x and y", "non-negative, no x all zero", "other signs", "Proposition E.2 assumes them so.")
    return x, y


def _single(x: Floats, y: Floats, k: Any) -> Floats:
    if np.take_along_axis(x, k[..., None], axis=-1).min() == 0:
        check.refuse("x", "without zeros for the least sharpness", 0.0, "A zero entry cannot carry y: drop it.")
    u = np.zeros(x.shape)
    np.put_along_axis(u, k[..., None], (y / np.take_along_axis(x, k[..., None], axis=-1)[..., 0])[..., None], axis=-1)
    return u
