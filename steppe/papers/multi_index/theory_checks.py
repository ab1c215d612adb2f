"""Checks of multi-index that need no runs: symmetry, existence, Example 1, Lemmas 3, 6, 7, 9, 10, Theorem 4."""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from steppe.activations import Homogeneous, leaky, linear, monomial, quadratic, rectifier, relu_power
from steppe.data import multi_index, orthonormal
from steppe.data._multi_index import SumOfSingleIndex
from steppe.experiments._paper import Finding
from steppe.papers.multi_index import theory
from steppe.papers.multi_index.setting import Activation, model, sigma

FAMILY = (rectifier, leaky(0.1), quadratic, relu_power(3), monomial(4))
_ROUNDING = 1e-12
_POWERS: tuple[tuple[Activation, float], ...] = (("relu", 0.5), ("quadratic", 3.0))  # E g²
_MEANS = {"relu": 1 / np.sqrt(2 * np.pi), "quadratic": 1.0}  # E g


def trace(x: Any, W: Any, a: Any, activation: Homogeneous) -> float:
    """tr ∇²L at an interpolator, (2/n) Σ ‖∇f(xᵢ)‖², from the gradients themselves."""
    h = x @ W.T
    inner = (activation.slope(h) * a)[:, :, None] * x[:, None, :]
    return float(2 / len(x) * (np.sum(inner**2) + np.sum(activation(h) ** 2)))


def _network(seed: int, activation: Homogeneous) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    W, a = rng.normal(size=(5, 4)), rng.normal(size=5)
    return rng.normal(size=(12, 4)), W / np.linalg.norm(W, axis=1, keepdims=True), a


def symmetry() -> Finding:
    """w_k → βw_k, a_k → a_k β^{−c}: largest relative change of an output, and by how much the flatness changes."""
    changes, ratios = [], []
    for seed, activation in enumerate(FAMILY):
        x, W, a = _network(seed, activation)
        beta = np.exp(np.random.default_rng(seed).uniform(-3, 3, 5))
        V, b = W * beta[:, None], a * beta**-activation.degree
        before, after = activation(x @ W.T) @ a, activation(x @ V.T) @ b
        changes.append(float(np.max(np.abs(after - before)) / np.max(np.abs(before))))
        ratios.append(trace(x, V, b, activation) / trace(x, W, a, activation))
    detail = f"outputs within {max(changes):.0e}; flatness times {min(ratios):.3g} to {max(ratios):.3g}"
    return Finding(max(ratios), max(changes) <= _ROUNDING and max(ratios) > 2, detail)


def least_rescaling() -> Finding:
    """Σ q|a|^p against a search for the best scale of every neuron: the largest relative difference."""
    errors = []
    for seed, activation in enumerate(FAMILY):
        x, W, a = _network(seed, activation)
        f, c = theory.features(W, x, activation), activation.degree

        def cost(t: float, k: int, x: Any = x, W: Any = W, a: Any = a, act: Any = activation, c: Any = c) -> float:
            return trace(x, np.exp(t) * W[k : k + 1], a[k : k + 1] * np.exp(-c * t), act)

        found = sum(minimize_scalar(cost, bracket=(-1, 1), args=(k,), tol=1e-10).fun for k in range(len(a)))
        errors.append(abs(found / float(f.q @ np.abs(a) ** f.p) - 1))
    # A minimum found to 1e-10 in its place is good to 1e-16 in its value, but the sums are not.
    return Finding(max(errors), max(errors) <= 1e-10, f"{len(FAMILY)} activations, degrees 1 to 4")


def flatter(*, as_printed: bool) -> Finding:
    """The least flatness over rescalings relative to what it was: below 1 it was made flatter; above 0 not at will."""
    shares = []
    for seed, activation in enumerate(FAMILY):
        x, W, a = _network(seed, activation)
        f = theory.features(W, x, activation)
        shares.append(float(f.q @ np.abs(a) ** f.p) / trace(x, W, a, activation))
    holds = min(shares) >= 1 - _ROUNDING if as_printed else min(shares) > 0
    return Finding(min(shares), holds, f"from {min(shares):.3g} to {max(shares):.3g} for random interpolators")


def moments() -> Finding:
    """E σ(z) = 0 for odd monomials only, and Var σ(z) ≥ (E zσ(z))² (Stein), the smallest ratio."""
    w = np.eye(1)
    even, ratios = [], []
    for activation in FAMILY:
        mean = (activation.positive + activation.negative) * theory.half_moment(int(activation.degree))
        second = float(theory.product_mean(activation, activation, w, w)[0, 0])
        along = float(theory.product_mean(activation, linear, w, w)[0, 0])
        even.append(abs(mean))
        if along:
            ratios.append((second - mean**2) / along**2)
    odd = abs(linear.positive + linear.negative)
    detail = f"means from {min(even):.3g}; linear: {odd:g}"
    return Finding(min(ratios), min(ratios) >= 1 - _ROUNDING and min(even) > 0 and odd == 0, detail)


def _exists(activation: Homogeneous, d: int, n: int, m: int, seed: int, *, same: bool = False) -> bool:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    W = theory.within(m, np.eye(d), key=rng)
    f = theory.features(np.repeat(W[:1], m, axis=0) if same else W, x, activation)
    try:
        theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-3)
    except theory.NoInterpolatorError:
        return False
    return True


def existence(*, as_printed: bool) -> Finding:
    """Separated weights, m = 2n, α₊, α₋ ≠ 0: the share of draws with an interpolator.

    Quadratic activations span d(d + 1)/2 dimensions; as printed n may exceed that.
    """
    sizes = ((4, 24), (5, 24)) if as_printed else ((8, 24), (12, 24))
    found = [
        _exists(activation, d, n, 2 * n, seed)
        for activation in (leaky(0.1), quadratic)
        for d, n in sizes
        for seed in range(5)
    ]  # fmt: skip
    share = float(np.mean(found))
    return Finding(share, share == 1, ", ".join(f"d = {d}, n = {n}: d(d+1)/2 = {d * (d + 1) // 2}" for d, n in sizes))


def existence_relu() -> Finding:
    """The same for ReLU, and for inner weights that are all the same."""
    share = float(np.mean([_exists(rectifier, 8, 24, 48, seed) for seed in range(20)]))
    same = float(np.mean([_exists(rectifier, 8, 24, 48, seed, same=True) for seed in range(20)]))
    return Finding(share, share >= 0.9 and same == 0, f"20 draws; with one inner weight for all {same:g}")


def _drawn(activation: Activation, nu: float, seed: int, *, spanning: bool = True) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    link, U, _ = model("sum", activation, 1, 12, rng)
    x, y, *_ = multi_index(link, U, 24, key=rng)
    W = theory.correlated(96, U, nu, key=rng) if spanning else theory.within(96, theory.tilted(U, nu, key=rng), key=rng)
    f = theory.features(W, x, sigma(activation))
    return link, U, x, y, W, f


def least_loss() -> Finding:
    """The loss of flattest interpolators over the least that any outer weights reach: the smallest, and the least."""
    ratios, leasts = [], {}
    for activation, power in _POWERS:
        for nu in (0.1, 0.5, 0.9):
            link, U, _, y, W, f = _drawn(activation, nu, 0, spanning=False)
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-6)
            least = theory.least_population_loss(W, link.activation, link, U)
            ratios.append(theory.population_loss(W, best.a, link.activation, link, U) / least)
            leasts[f"{activation}, ν = {nu}"] = least / power
    falls = all(
        leasts[f"{a}, ν = {b}"] > leasts[f"{a}, ν = {c}"]
        for a in ("relu", "quadratic")
        for b, c in ((0.1, 0.5), (0.5, 0.9))
    )  # fmt: skip
    detail = "least loss/E g²: " + "; ".join(f"{name}: {v:.3g}" for name, v in leasts.items())
    return Finding(min(ratios), min(ratios) >= 1 - _ROUNDING and falls, detail)


def complement() -> Finding:
    """Inner weights orthogonal to U: the population loss over Var g, the smallest."""
    ratios = []
    for seed in range(4):
        for activation, power in _POWERS:
            link, U, _, y, W, f = _drawn(activation, 0.0, seed, spanning=False)
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-6)
            ratios.append(
                theory.population_loss(W, best.a, link.activation, link, U) / (power - _MEANS[activation] ** 2)
            )
    return Finding(min(ratios), min(ratios) >= 1, f"{len(ratios)} draws, median {np.median(ratios):.3g}")


def given_the_activations() -> Finding:
    """Ux given Wx has covariance I − U P_W Uᵀ, of which 1 − ν² is the smallest eigenvalue: formula and regression."""
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


def least_norm() -> Finding:
    """yᵀ(ΦΦᵀ)⁻¹y σ₁²/‖y‖² ≥ 1: the smallest, for inner weights along u and for others."""
    ratios = {}
    for nu in (0.01, 0.9):
        found = []
        for seed in range(4):
            _, _, _, y, _, f = _drawn("quadratic", nu, seed)
            a = theory.least_norm(f.phi, y)
            found.append(float(a @ a) * float(np.linalg.norm(f.phi, 2)) ** 2 / float(y @ y))
        ratios[nu] = min(found)
    detail = "; ".join(f"ν = {nu}: {r:.3g}" for nu, r in ratios.items())
    return Finding(min(ratios.values()), min(ratios.values()) >= 1, detail)


def noise_norm() -> Finding:
    """E‖Φ⁺ε‖² = tr(ΦΦᵀ)⁻¹, and | ‖Φ⁺(g + ε)‖ − ‖Φ⁺g‖ | ≤ ‖Φ⁺ε‖: the error of the mean in standard errors."""
    _, _, _, y, _, f = _drawn("quadratic", 0.3, 0)
    pseudo = np.linalg.pinv(f.phi)
    noise = np.random.default_rng(2).standard_normal((2000, len(y)))
    squares = np.sum((noise @ pseudo.T) ** 2, axis=1)
    score = float((squares.mean() - np.sum(pseudo**2)) / (squares.std() / np.sqrt(len(squares))))
    both = np.linalg.norm((y + noise) @ pseudo.T, axis=1) - np.linalg.norm(pseudo @ y)
    holds = abs(score) <= 4 and bool((np.abs(both) <= np.sqrt(squares) * (1 + _ROUNDING)).all())
    return Finding(score, holds, f"{len(noise)} draws of the noise")


def teacher() -> Finding:
    """Theorem 4's networks: residual on the examples, population loss, and flatness over the bound below all others."""
    residuals, losses, ratios = [], [], []
    for activation in (rectifier, quadratic, relu_power(3)):
        for coefficients in ((1.0,), (0.5, -1.0, 0.8)):
            link = SumOfSingleIndex(activation, coefficients)
            U = orthonormal(len(coefficients), 10, key=3)
            x, y, *_ = multi_index(link, U, 40, key=4)
            student = theory.copies(link, U, 60)
            f = theory.features(student.W, x, activation)
            residuals.append(float(np.max(np.abs(f.phi @ student.a - y))) / float(np.max(np.abs(y))))
            losses.append(theory.population_loss(student.W, student.a, activation, link, U))
            ratios.append(float(f.q @ np.abs(student.a) ** f.p) / theory.pointwise(x, y, 60, activation))
    holds = max(residuals) <= _ROUNDING and max(losses) <= 1e-9 and min(ratios) >= 1 and max(ratios) <= 4
    detail = f"residual {max(residuals):.0e}, population loss {max(losses):.0e}; ratios from {min(ratios):.3g}"
    return Finding(max(ratios), holds, detail)
