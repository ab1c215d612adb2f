"""Propositions 1, 3 and 4, Lemmas 3, 7, 9 and 10, Example 1 and Theorem 4: claims that need no runs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.multi_index.setting import PAPER, Activation, drawn

if TYPE_CHECKING:
    from steppe.activations import Homogeneous

ROUNDING = 1e-12
POWERS: tuple[tuple[Activation, float], ...] = (("relu", 0.5), ("quadratic", 3.0))  # E g²


def family() -> "tuple[Homogeneous, ...]":
    from steppe.activations import leaky, monomial, quadratic, rectifier, relu_power

    return rectifier, leaky(0.1), quadratic, relu_power(3), monomial(4)


# Rescaling.


def trace(x: Any, W: Any, a: Any, activation: "Homogeneous") -> float:
    """tr ∇²L at an interpolator, (2/n) Σ ‖∇f(xᵢ)‖², from the gradients themselves."""
    h = x @ W.T
    inner = (activation.slope(h) * a)[:, :, None] * x[:, None, :]
    return float(2 / len(x) * (np.sum(inner**2) + np.sum(activation(h) ** 2)))


def network(seed: int) -> tuple[Any, Any, Any]:
    """(x, W, a) of a random net with inner weights of unit norm."""
    rng = np.random.default_rng(seed)
    W, a = rng.normal(size=(5, 4)), rng.normal(size=5)
    return rng.normal(size=(12, 4)), W / np.linalg.norm(W, axis=1, keepdims=True), a


@PAPER.claim(
    "prop1", "Proposition 1, Definition 1",
    "Rescaling neurons by β leaves the outputs and makes the flatness grow like β^{2c}, without end.",
    "outputs equal to rounding, exponent 2c to 1e-6 for large β",
)  # fmt: skip
def symmetry() -> Finding:
    """w_k → βw_k, a_k → a_k β^{−c}: the largest error of the exponent between β = 10⁴ and 10⁵."""
    changes, errors = [], []
    for seed, activation in enumerate(family()):
        x, W, a = network(seed)
        traces = []
        for beta in (1e4, 1e5):
            V, b = W * beta, a * beta**-activation.degree
            before, after = activation(x @ W.T) @ a, activation(x @ V.T) @ b
            changes.append(float(np.max(np.abs(after - before)) / np.max(np.abs(before))))
            traces.append(trace(x, V, b, activation))
        errors.append(abs(float(np.log10(traces[1] / traces[0])) - 2 * activation.degree))
    # The other term falls like β^{−2}.
    return Finding(max(errors), max(changes) <= ROUNDING and max(errors) <= 1e-6, f"outputs within {max(changes):.0e}")


@PAPER.claim(
    "lemma3", "Lemmas 1, 3", "The least flatness over all rescalings is Σ q_k |a_k|^p, p = 2c/(c+1).",
    "relative difference to a search ≤ 1e-10",
)  # fmt: skip
def least_over_rescalings() -> Finding:
    """Σ q|a|^p against a search for the best scale of every neuron: the largest relative difference."""
    from scipy.optimize import minimize_scalar

    from steppe.papers.multi_index import theory

    errors = []
    for seed, activation in enumerate(family()):
        x, W, a = network(seed)
        c = activation.degree

        def cost(t: float, k: int, x: Any = x, W: Any = W, a: Any = a, act: Any = activation, c: Any = c) -> float:
            return trace(x, np.exp(t) * W[k : k + 1], a[k : k + 1] * np.exp(-c * t), act)

        found = sum(minimize_scalar(cost, bracket=(-1, 1), args=(k,), tol=1e-10).fun for k in range(len(a)))
        errors.append(abs(found / theory.flatness(theory.Student(W, a), x, activation) - 1))
    # A minimum found at a place good to 1e-10 has a value good to 1e-16, but its sums are less exact.
    return Finding(max(errors), max(errors) <= 1e-10, f"{len(errors)} activations, degrees 1 to 4")


@PAPER.misprint(
    "b2-flatter", "Appendix B.2",
    printed=("Rescaling makes no interpolator flatter.", "least flatness over rescalings / flatness before = 1"),
    corrected=("Rescaling makes no interpolator arbitrarily flat.", "least flatness over rescalings / before > 0"),
)  # fmt: skip
def made_flatter(as_printed: bool) -> Finding:
    """The least flatness over rescalings relative to the flatness before them: the smallest share."""
    from steppe.papers.multi_index import theory

    shares = []
    for seed, activation in enumerate(family()):
        x, W, a = network(seed)
        shares.append(theory.flatness(theory.Student(W, a), x, activation) / trace(x, W, a, activation))
    least = min(shares)
    holds = least >= 1 - ROUNDING if as_printed else least > 0
    return Finding(least, holds, f"from {least:.3g} to {max(shares):.3g} for random interpolators")


@PAPER.claim("prop3", "Proposition 3, D.2.1", "E σ(z) is 0 for odd monomials only; Var σ(z) ≥ (E zσ(z))².", "ratio ≥ 1")
def moments() -> Finding:
    """The smallest ratio Var σ(z)/(E zσ(z))², which is at least 1 by Stein's identity."""
    from steppe.activations import linear
    from steppe.papers.multi_index import theory

    w = np.eye(1)
    even, ratios = [], []
    for activation in family():
        mean = (activation.positive + activation.negative) * theory.half_moment(int(activation.degree))
        second = float(theory.product_mean(activation, activation, w, w)[0, 0])
        along = float(theory.product_mean(activation, linear, w, w)[0, 0])
        even.append(abs(mean))
        if along:
            ratios.append((second - mean**2) / along**2)
    odd = abs(linear.positive + linear.negative)
    detail = f"means from {min(even):.3g}; linear: {odd:g}"
    return Finding(min(ratios), min(ratios) >= 1 - ROUNDING and min(even) > 0 and odd == 0, detail)


# Existence and norms of interpolators.


def system(activation: Activation, nu: float, seed: int, *, spanning: bool = True) -> tuple[Any, ...]:
    """(link, U, y, W, features): W of correlation ν, or, if not `spanning`, W in a tilted subspace."""
    from steppe.papers.multi_index import theory

    rng = np.random.default_rng(seed)
    act, link, U, x, y = drawn(activation, 1, 12, 24, rng)
    W = theory.correlated(96, U, nu, key=rng) if spanning else theory.within(96, theory.tilted(U, nu, key=rng), key=rng)
    return link, U, y, W, theory.features(W, x, act)


def interpolates(activation: "Homogeneous", d: int, seed: int, *, n: int = 24, same: bool = False) -> bool:
    """Whether 2n random neurons interpolate n random examples; `same` gives them all one inner weight."""
    from steppe.papers.multi_index import theory

    rng, m = np.random.default_rng(seed), 2 * n
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    W = theory.within(m, np.eye(d), key=rng)
    f = theory.features(np.repeat(W[:1], m, axis=0) if same else W, x, activation)
    try:
        theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-3)
    except theory.NoInterpolatorError:
        return False
    return True


@PAPER.misprint(
    "lemma7", "Lemma 7",
    printed=("With α₊, α₋ ≠ 0 and separated inner weights, m ≥ n, an interpolator exists almost surely.",
             "in every draw"),
    corrected=("With α₊, α₋ ≠ 0, m ≥ n, and n ≤ d(d+1)/2 for quadratic σ, an interpolator exists almost surely.",
               "in every draw"),
)  # fmt: skip
def separated_interpolate(as_printed: bool) -> Finding:
    """α₊, α₋ ≠ 0 and n above d(d+1)/2 (as printed) or below: the share of draws with an interpolator."""
    from steppe.activations import leaky, quadratic

    n, dimensions = 24, (4, 5) if as_printed else (8, 12)
    found = [
        interpolates(activation, d, seed, n=n)
        for activation in (leaky(0.1), quadratic)
        for d in dimensions
        for seed in range(5)
    ]
    share = float(np.mean(found))
    detail = ", ".join(f"d = {d}, n = {n}: d(d+1)/2 = {d * (d + 1) // 2}" for d in dimensions)
    return Finding(share, share == 1, detail)


@PAPER.claim(
    "lemma7-relu", "Lemma 7",
    "For ReLU an interpolator exists with high probability, and never if all neurons share one inner weight.",
    "share of draws ≥ 0.9, and 0",
)  # fmt: skip
def relu_interpolates() -> Finding:
    from steppe.activations import rectifier

    share = float(np.mean([interpolates(rectifier, 8, seed) for seed in range(20)]))
    same = float(np.mean([interpolates(rectifier, 8, seed, same=True) for seed in range(20)]))
    return Finding(share, share >= 0.9 and same == 0, f"20 draws; with one inner weight for all {same:g}")


@PAPER.claim(
    "lemma9", "Lemma 9", "Noise adds to the least norm what the singular values of Φ say: E‖Φ⁺ε‖² = σ² Σ 1/σₖ².",
    "mean within four standard errors; ‖Φ⁺(g + ε)‖² − ‖Φ⁺g‖² has the same mean",
)  # fmt: skip
def noise_adds_norm() -> Finding:
    """The larger of the two errors, in standard errors, over 2,000 draws of the noise."""
    scores, shares = [], []
    for activation in ("relu", "quadratic"):
        _, _, y, _, f = system(activation, 0.3, 0)
        a = np.linalg.lstsq(f.phi, y, rcond=None)[0]
        noise = np.random.default_rng(2).standard_normal((2000, len(y)))
        added = np.linalg.lstsq(f.phi, noise.T, rcond=None)[0].T
        predicted = float(np.sum(1 / np.linalg.svd(f.phi, compute_uv=False) ** 2))
        alone, more = np.sum(added**2, axis=1), np.sum((a + added) ** 2, axis=1) - a @ a
        scores += [float((v.mean() - predicted) / (v.std() / np.sqrt(len(v)))) for v in (alone, more)]
        shares.append(f"{activation}: {predicted / (a @ a):.3g} of the norm without noise")
    worst = max(scores, key=abs)
    return Finding(worst, abs(worst) <= 4, "; ".join(shares))


# The population loss.


@PAPER.claim(
    "lemma10", "Lemma 10", "Ux given Wx has covariance I − U P_W Uᵀ, at least 1 − ν² under Definition 2.",
    "error of the least eigenvalue ≤ 1e-10",
)  # fmt: skip
def given_the_activations() -> Finding:
    """The smallest eigenvalue against 1 − ν², and the covariance against that of a regression."""
    from steppe.data import orthonormal
    from steppe.papers.multi_index import theory

    errors, sampled = [], []
    for nu in (0.0, 0.3, 0.8):
        rng = np.random.default_rng(1)
        U = orthonormal(2, 8, key=rng)
        W = theory.within(20, theory.tilted(U, nu, key=rng), key=rng)
        covariance = theory.conditional_covariance(W, U)
        errors.append(abs(float(np.linalg.eigvalsh(covariance)[0]) - (1 - nu**2)))
        x = rng.standard_normal((20_000, 8))
        left = x @ U.T - x @ W.T @ np.linalg.lstsq(x @ W.T, x @ U.T, rcond=None)[0]
        sampled.append(float(np.max(np.abs(left.T @ left / len(x) - covariance))))
    # A sample covariance of 20,000 is good to 4 √(2/20000) = 0.04.
    return Finding(max(errors), max(errors) <= 1e-10 and max(sampled) <= 0.04, f"regression: within {max(sampled):.3f}")


def flattest_loss(activation: Activation, nu: float, seed: int) -> tuple[float, float]:
    """Inner weights in a tilted subspace: the loss of the flattest interpolator, and the least of all outer weights."""
    from steppe.papers.multi_index import theory

    link, U, y, W, f = system(activation, nu, seed, spanning=False)
    best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-6)
    least = theory.least_population_loss(W, link.activation, link, U)
    return theory.population_loss(W, best.a, link.activation, link, U), least


def given_span(activation: Activation, nu: float) -> float:
    """E Var(σ(z) | Wx) where the span of W has the cosine ν with u: no function of Wx has a smaller loss.

    Two draws of z given Wx have the correlation ν².
    """
    from steppe.papers.multi_index import theory

    return 2 - 2 * nu**4 if activation == "quadratic" else 0.5 - float(theory.quadrant(1, 1, nu**2))


def least_ratio(activation: Activation, nu: float, *, d: int = 24, m: int = 600) -> float:
    """The least loss of all outer weights, for m inner weights in a tilted subspace, over E Var(g | Wx)."""
    from steppe.data import orthonormal
    from steppe.data.links import SumOfSingleIndex
    from steppe.papers.multi_index import theory
    from steppe.papers.multi_index.setting import sigma

    rng, act = np.random.default_rng(0), sigma(activation)
    U = orthonormal(1, d, key=rng)
    W = theory.within(m, theory.tilted(U, nu, key=rng), key=rng)
    return theory.least_population_loss(W, act, SumOfSingleIndex(act), U) / given_span(activation, nu)


@PAPER.claim(
    "prop4", "Proposition 4, C.4",
    "The least loss over all outer weights, E g² − kᵀK⁺k, is E Var(g | Wx), up to what m neurons cannot represent.",
    "ratio between 1 and 1.05, for ν = 0.1 and 0.5",
)  # fmt: skip
def least_loss_is_variance() -> Finding:
    """The largest ratio. At ν = 0.9 it is 1.13 for ReLU: 600 random directions are far from the projection of u."""
    ratios = {f"{a}, ν = {nu}": least_ratio(a, nu) for a, _ in POWERS for nu in (0.1, 0.5)}
    worst = max(ratios.values())
    holds = min(ratios.values()) >= 1 - 1e-9 and worst <= 1.05
    return Finding(worst, holds, "; ".join(f"{name}: {v:.4f}" for name, v in ratios.items()))


@PAPER.claim(
    "example1", "Example 1",
    "With inner weights orthogonal to U the loss is at least Var g, which the best outer weights nearly reach.",
    "least loss over Var g between 1 and 1.05; that of flattest interpolators ≥ 1.5",
)  # fmt: skip
def orthogonal_weights_miss() -> Finding:
    """The least loss over Var g: the largest ratio. A flattest interpolator fits what it cannot know, and pays."""
    mean = {"relu": 1 / np.sqrt(2 * np.pi), "quadratic": 1.0}  # E g
    best = [least_ratio(a, 0.0) * given_span(a, 0.0) / (power - mean[a] ** 2) for a, power in POWERS]
    flat = [flattest_loss(a, 0.0, s)[0] / (power - mean[a] ** 2) for s in range(4) for a, power in POWERS]
    holds = min(best) >= 1 - 1e-9 and max(best) <= 1.05 and min(flat) >= 1.5
    return Finding(max(best), holds, f"flattest interpolators: {min(flat):.3g} to {max(flat):.3g}")


@PAPER.claim(
    "thm4", "Theorem 4", "The net with each direction m/r times and weights cⱼ r/m has loss 0 and is flattest.",
    "flatness over the lower bound of all interpolators ≤ 4",
)  # fmt: skip
def copies_are_flattest() -> Finding:
    """Residual on the examples, population loss, and flatness over the lower bound of all interpolators."""
    from steppe.activations import quadratic, rectifier, relu_power
    from steppe.data import multi_index, orthonormal
    from steppe.data.links import SumOfSingleIndex
    from steppe.papers.multi_index import theory

    residuals, losses, ratios = [], [], []
    for activation in (rectifier, quadratic, relu_power(3)):
        for coefficients in ((1.0,), (0.5, -1.0, 0.8)):
            link = SumOfSingleIndex(activation, coefficients)
            U = orthonormal(len(coefficients), 10, key=3)
            x, y, *_ = multi_index(link, U, 40, key=4)
            student = theory.copies(link, U, 60)
            phi = theory.features(student.W, x, activation).phi
            residuals.append(float(np.max(np.abs(phi @ student.a - y))) / float(np.max(np.abs(y))))
            losses.append(theory.population_loss(student.W, student.a, activation, link, U))
            ratios.append(theory.flatness(student, x, activation) / theory.pointwise(x, y, 60, activation))
    holds = max(residuals) <= ROUNDING and max(losses) <= 1e-9 and min(ratios) >= 1 and max(ratios) <= 4
    detail = f"residual {max(residuals):.0e}, population loss {max(losses):.0e}; ratios from {min(ratios):.3g}"
    return Finding(max(ratios), holds, detail)
