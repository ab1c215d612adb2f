"""Theorem F.1 and the errors of appendix F, measured against autodiff, optimisers and draws."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.theory import printed, two_points
from steppe.papers.conflicting_biases.theory import two_points as sphere_errors
from steppe.papers.conflicting_biases.theory.risk import mean, standard_error
from steppe.papers.conflicting_biases.theory.two_points import MAX_MARGIN, MIN_SHARPNESS

ROUNDING = 1e-10
DRAWS = 30


def _point(rng: np.random.Generator, d: int = 4) -> Any:
    x2 = rng.normal(size=d)
    return x2 / np.linalg.norm(x2)


def max_margin() -> Finding:
    """(x̃₂, −½) against the hard-margin program min ‖w̃‖², −b ≥ 1, ⟨w̃, x̃₂⟩ + b ≥ 1: the largest angle between them."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(5):
        x2 = _point(rng)
        constraints = (
            {"type": "ineq", "fun": lambda w: -w[-1] - 1},
            {"type": "ineq", "fun": lambda w, x2=x2: w[:-1] @ x2 + w[-1] - 1},
        )
        found = minimize(lambda w: w[:-1] @ w[:-1], rng.normal(size=5), constraints=constraints, method="SLSQP",
                         options={"ftol": 1e-14}).x  # fmt: skip
        stated = two_points.max_margin(x2)
        worst = max(worst, float(np.abs(found / np.linalg.norm(found) - stated / np.linalg.norm(stated)).max()))
    return Finding(worst, worst < 1e-6, "5 random x̃₂ in four dimensions")


def sharpness_formula() -> Finding:
    """S(w) of the proof against the dense Hessian of the logistic loss."""
    rng, worst = np.random.default_rng(1), 0.0
    for H, w, x2 in _hessians(rng, sign=1.0):
        stated = float(two_points.sharpness(w[:-1] @ x2, w[-1]))
        worst = max(worst, abs(float(np.linalg.eigvalsh(H)[-1]) / stated - 1))
    return Finding(worst, worst < ROUNDING, f"{DRAWS} random w and x̃₂")


def loss_sign(*, as_printed: bool) -> Finding:
    """The least value of the loss and of the eigenvalues of its Hessian over random w: a loss has neither below 0."""
    rng, least = np.random.default_rng(2), np.inf
    loss: Callable[[Any, Any], float] = printed.logistic_loss if as_printed else two_points.loss
    for H, w, x2 in _hessians(rng, sign=-1.0 if as_printed else 1.0):
        least = min(least, loss(w, x2), float(np.linalg.eigvalsh(H)[0]))
    return Finding(least, least > -ROUNDING, f"{DRAWS} random w")


def quadratic(*, as_printed: bool) -> Finding:
    """The maximal root of the quadratic against the leading eigenvalue: the largest relative difference."""
    rng, worst = np.random.default_rng(3), 0.0
    form = printed.logistic_quadratic if as_printed else two_points.quadratic
    for H, w, x2 in _hessians(rng, sign=1.0):
        root = float(np.max(np.roots(form(float(w[:-1] @ x2), float(w[-1])))))
        worst = max(worst, abs(root / float(np.linalg.eigvalsh(H)[-1]) - 1))
    return Finding(worst, worst < ROUNDING, f"{DRAWS} random w")


def matrix(*, as_printed: bool) -> Finding:
    """The determinant of the 2 × 2 system at the two eigenvalues, relative to its terms."""
    rng, worst = np.random.default_rng(4), 0.0
    for H, w, x2 in _hessians(rng, sign=-1.0):
        z, b = float(w[:-1] @ x2), float(w[-1])
        p, q = float(two_points.slope(b)), float(two_points.slope(z + b))
        for lam in np.linalg.eigvalsh(H)[:2]:
            system = (
                printed.logistic_matrix(z, b, lam) if as_printed else np.array([[p / 2 + lam, p / 2], [q / 2, q + lam]])
            )
            worst = max(worst, abs(float(np.linalg.det(system))) / (p * q))
    return Finding(worst, worst < ROUNDING, f"{DRAWS} random w")


def least_sharpness() -> Finding:
    """The least S over 0 < z ≤ 1, −z < b ≤ 0 by a fine grid and by a bounded optimiser from the grid's best."""
    z = np.linspace(1e-3, 1, 400)[:, None]
    b = -z * np.linspace(0, 1 - 1e-9, 400)[None]
    grid = two_points.sharpness(z, b)
    i, j = np.unravel_index(int(np.argmin(grid)), grid.shape)
    best = minimize(lambda v: float(two_points.sharpness(v[0], v[1] * v[0])), [0.7, -0.4], bounds=[(1e-3, 1), (-1, 0)])
    place = (round(float(z[i, 0]), 6), round(float(b[i, j]), 6) + 0.0)
    holds = place == (1.0, 0.0) and abs(best.fun - two_points.LEAST) < 1e-9 and abs(two_points.LEAST - 0.277) < 5e-4
    detail = f"at (z, b) = {place}; an optimiser from (0.7, −0.28) ends at {best.fun:.6f}"
    return Finding(two_points.LEAST, holds, detail)


def small_mean(*, as_printed: bool) -> Finding:
    """The error of the max-margin classifier at μ = 0 against draws, in standard errors; d = 3 and 5."""
    scores = []
    for d in (3, 5):
        drawn = sphere_errors.monte_carlo(d, 0.0, MAX_MARGIN, samples=100_000)
        stated = printed.small_mean_error(d, 0.5) if as_printed else sphere_errors.isotropic(d, 0.5)
        scores.append(abs(stated - drawn.value) / standard_error(drawn))
    return Finding(max(scores), max(scores) < 4, "for d = 3 the error is exactly ¾")


def grows_to_one() -> Finding:
    """1 − the same error for d = 2, 4, … 128: falls to 0."""
    misses = [1 - sphere_errors.isotropic(2**k, 0.5) for k in range(1, 8)]
    falling = all(a > b for a, b in pairwise(misses))
    return Finding(misses[-1], falling and misses[-1] < 1e-9, "1 − error at d = 128")


def half() -> Finding:
    """The error of the flattest classifier at μ = 0: ½ in every dimension, drawn in standard errors."""
    drawn = sphere_errors.monte_carlo(6, 0.0, MIN_SHARPNESS, samples=100_000)
    exact = max(abs(sphere_errors.isotropic(d, 0.0) - 0.5) for d in (2, 3, 10, 50))
    score = abs(drawn.value - 0.5) / standard_error(drawn)
    return Finding(score, score < 4 and exact < ROUNDING, "standard errors from ½")


def flattest_better(evidence: Evidence) -> Finding:
    """The largest ratio of errors, flattest over max-margin, over all ‖μ‖."""
    (entry,) = evidence["appF"]
    ratio = float((entry.curves["min_sharpness_exact"] / entry.curves["max_margin_exact"]).max())
    isotropic = 0.5 / float(entry.curves["max_margin_exact"][0])
    return Finding(ratio, ratio < 1, f"d = {entry.spec['d']}, at ‖μ‖ = 0 {isotropic:.3f}")


def exact_errors(evidence: Evidence) -> Finding:
    """Quadrature against draws for every ‖μ‖ and both classifiers, in standard errors."""
    (entry,) = evidence["appF"]
    c, scores = entry.curves, []
    for name in ("max_margin", "min_sharpness"):
        # Fewer than some ten errors among the draws have no Gaussian error bar.
        seen = c[f"{name}_exact"] * entry.spec["samples"] > 10
        exact = c[f"{name}_exact"][seen]
        error = np.sqrt(exact * (1 - exact) / entry.spec["samples"])
        scores += (np.abs(c[name][seen] - exact) / error).tolist()
    return Finding(max(scores), max(scores) < 4.5, f"{len(scores)} comparisons")


def event(*, form: str) -> Finding:
    """P[⟨g₀ + g₀′, μ⟩ ≤ −(1 − c)‖μ‖²] drawn against a formula, in standard errors; d = 3, ‖μ‖ = 1.5."""
    d, m, scores = 3, 1.5, []
    for c in (MAX_MARGIN, MIN_SHARPNESS):
        g = np.random.default_rng(5).standard_normal((2, 200_000, d))
        mu = np.full(d, m / np.sqrt(d))
        drawn = mean(((g[0] + g[1]) @ mu <= -(1 - c) * m**2).astype(float))
        stated = {
            "factor": printed.large_mean_error(d, m, c),
            "integral": printed.large_mean_integral(d, m, c),
            "corrected": printed.projected_error(m, c),
        }[form]
        scores.append(abs(stated - drawn.value) / standard_error(drawn))
    return Finding(max(scores), max(scores) < 4, "both classifiers")


def approximation(*, as_printed: bool) -> Finding:
    """−ln(error)/‖μ‖² at large ‖μ‖ (d = 4): the exact one against (1 − c)²/4 as printed or (1 − c)/2, relatively."""
    worst, seen = 0.0, []
    for c in (MAX_MARGIN, MIN_SHARPNESS):
        # Two large ‖μ‖: their difference takes out most of the power of ‖μ‖ in front.
        a, b = (np.log(sphere_errors.error(4, m, c, nodes=200)) for m in (12.0, 16.0))
        measured = float((a - b) / (16.0**2 - 12.0**2))
        stated = (1 - c) ** 2 / 4 if as_printed else sphere_errors.exponent(c)
        worst = max(worst, abs(measured / stated - 1))
        seen.append(f"{measured:.3f}")
    return Finding(worst, worst < 0.1, f"exponents {' and '.join(seen)} for c = ½ and 0")


def both_small() -> Finding:
    """The larger of the two errors at ‖μ‖ = 10, d = 10."""
    largest = max(sphere_errors.error(10, 10.0, c) for c in (MAX_MARGIN, MIN_SHARPNESS))
    return Finding(largest, largest < 1e-6, "max-margin, ‖μ‖ = 10")


def _hessians(rng: np.random.Generator, *, sign: float) -> Any:
    """(∇²(sign · loss), w, x̃₂) at random w by autodiff."""
    with jax.enable_x64(True):
        for _ in range(DRAWS):
            x2, w = _point(rng), rng.normal(size=5)
            yield sign * np.asarray(_hessian(w, x2)), w, x2


@jax.jit
@jax.hessian
def _hessian(w: Any, x2: Any) -> Any:
    return 0.5 * (jax.nn.softplus(w[-1]) + jax.nn.softplus(-(jnp.dot(w[:-1], x2) + w[-1])))
