"""Appendix F: two points under the logistic loss, and the errors of the max-margin and of the flattest classifier."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory import printed, two_points
from steppe.papers.conflicting_biases.theory.risks import mean, standard_error
from steppe.papers.conflicting_biases.theory.two_points import MAX_MARGIN, MIN_SHARPNESS
from steppe.store import Computed

_ROUNDING = 1e-10
_SMALL, _SINGULAR = "difference at rounding", "determinant at rounding"
_FEW = "within 4 standard errors"
_DRAWS = 30

# Theorem F.1.


def _point(rng: np.random.Generator, d: int = 4) -> Any:
    x2 = rng.normal(size=d)
    return x2 / np.linalg.norm(x2)


def _hessians(rng: np.random.Generator, *, sign: float) -> Iterator[tuple[Any, Any, Any]]:
    """(∇²(sign · loss), w, x̃₂) at random w by autodiff."""
    import jax

    with jax.enable_x64(True):
        for _ in range(_DRAWS):
            x2, w = _point(rng), rng.normal(size=5)
            yield sign * np.asarray(_hessian()(w, x2)), w, x2


@cache
def _hessian() -> Any:
    import jax
    import jax.numpy as jnp

    def loss(w: Any, x2: Any) -> Any:
        return 0.5 * (jax.nn.softplus(w[-1]) + jax.nn.softplus(-(jnp.dot(w[:-1], x2) + w[-1])))

    return jax.jit(jax.hessian(loss))


@PAPER.claim("thmF.1-margin", "Theorem F.1 i", "The max-margin classifier is (x̃₂, −½).", "difference < 1e-6")
def max_margin() -> Finding:
    """(x̃₂, −½) against the hard-margin program min ‖w̃‖², −b ≥ 1, ⟨w̃, x̃₂⟩ + b ≥ 1: the largest difference."""
    from scipy.optimize import minimize

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


@PAPER.claim(
    "thmF.1-sharpness", "Theorem F.1 ii", "The least sharpness over M is 0.277, at (z, b) = (1, 0).", "0.277 at (1, 0)"
)
def least_sharpness() -> Finding:
    """The least S over 0 < z ≤ 1, −z < b ≤ 0 by a fine grid and by a bounded optimiser."""
    from scipy.optimize import minimize

    z = np.linspace(1e-3, 1, 400)[:, None]
    b = -z * np.linspace(0, 1 - 1e-9, 400)[None]
    grid = two_points.sharpness(z, b)
    i, j = np.unravel_index(int(np.argmin(grid)), grid.shape)
    best = minimize(lambda v: float(two_points.sharpness(v[0], v[1] * v[0])), [0.7, -0.4], bounds=[(1e-3, 1), (-1, 0)])
    place = (round(float(z[i, 0]), 6), round(float(b[i, j]), 6) + 0.0)
    holds = place == (1.0, 0.0) and abs(best.fun - two_points.LEAST) < 1e-9 and abs(two_points.LEAST - 0.277) < 5e-4
    detail = f"at (z, b) = {place}; an optimiser from (0.7, −0.28) ends at {best.fun:.6f}"
    return Finding(two_points.LEAST, holds, detail)


@PAPER.claim("thmF.1-formula", "proof of F.1", "S = ¼(g′(b) + 2g′(z+b) + √(g′(b)² + 4g′(z+b)²)).", _SMALL)
def sharpness_formula() -> Finding:
    """S(w) of the proof against the dense Hessian of the logistic loss."""
    rng, worst = np.random.default_rng(1), 0.0
    for H, w, x2 in _hessians(rng, sign=1.0):
        stated = float(two_points.sharpness(w[:-1] @ x2, w[-1]))
        worst = max(worst, abs(float(np.linalg.eigvalsh(H)[-1]) / stated - 1))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} random w and x̃₂")


@PAPER.misprint(
    "appF-loss", "appendix F",
    printed=("L = ½(log(1 − g(b)) + log g(z + b)) is not negative, and convex.", "values and eigenvalues ≥ 0"),
    corrected=("L = −½(log(1 − g(b)) + log g(z + b)) is not negative, and convex.", "values and eigenvalues ≥ 0"),
)  # fmt: skip
def loss_sign(as_printed: bool) -> Finding:
    """The least value of the loss and of the eigenvalues of its Hessian over random w: neither may be negative."""
    rng, least = np.random.default_rng(2), np.inf
    loss: Callable[[Any, Any], float] = printed.logistic_loss if as_printed else two_points.loss
    for H, w, x2 in _hessians(rng, sign=-1.0 if as_printed else 1.0):
        least = min(least, loss(w, x2), float(np.linalg.eigvalsh(H)[0]))
    return Finding(least, least > -_ROUNDING, f"{_DRAWS} random w")


@PAPER.misprint(
    "thmF.1-quadratic", "proof of F.1",
    printed=("S is the larger root of λ² + (½g′(b) + g′)λ + ¼g′(b)g′, g′ = g′(z + b).", _SMALL),
    corrected=("S is the larger root of λ² − (½g′(b) + g′)λ + ¼g′(b)g′, g′ = g′(z + b).", _SMALL),
)  # fmt: skip
def quadratic(as_printed: bool) -> Finding:
    """The maximal root of the quadratic against the leading eigenvalue: the largest relative difference."""
    rng, worst = np.random.default_rng(3), 0.0
    form = printed.logistic_quadratic if as_printed else two_points.quadratic
    for H, w, x2 in _hessians(rng, sign=1.0):
        root = float(np.max(np.roots(form(float(w[:-1] @ x2), float(w[-1])))))
        worst = max(worst, abs(root / float(np.linalg.eigvalsh(H)[-1]) - 1))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} random w")


@PAPER.misprint(
    "thmF.1-matrix", "proof of F.1",
    printed=("The 2 × 2 system with ½g′(z + b) at the upper right is singular at the eigenvalues.", _SINGULAR),
    corrected=("The 2 × 2 system with ½g′(b) at the upper right is singular at the eigenvalues.", _SINGULAR),
)  # fmt: skip
def matrix(as_printed: bool) -> Finding:
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
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} random w")


# How often both classifiers err, against ‖μ‖.


@experiment("conflicting-biases/classifiers")
def classifiers(
    checkpoint: Any, progress: Any, *, d: int = 10,
    means: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0),
    samples: int = 1_000_000, seed: int = 0,
) -> Computed:  # fmt: skip
    """Errors of the max-margin and of the flattest classifier by Monte Carlo, for each m = ‖μ‖ in dimension d."""
    curves: dict[str, Any] = {"mean": np.array(means)}
    for name, c in (("max_margin", MAX_MARGIN), ("min_sharpness", MIN_SHARPNESS)):
        drawn = [two_points.monte_carlo(d, m, c, samples=samples, key=seed + k) for k, m in enumerate(means)]
        curves |= {
            name: np.array([e.value for e in drawn]),
            f"{name}_error": np.array([standard_error(e) for e in drawn]),
            f"{name}_exact": np.array([two_points.error(d, m, c) for m in means]),
            f"{name}_printed": np.array([printed.large_mean_error(d, m, c) for m in means]),
            f"{name}_projected": np.array([printed.projected_error(m, c) for m in means]),
        }
    return Computed(curves, {}, {"samples": samples})


@PAPER.plot(
    "appF", "errors of the max-margin and of the flattest classifier", figures.panels,
    runs={"smoke": (classifiers(means=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), samples=50_000),), "paper": (classifiers(),)},
)  # fmt: skip
def app_f(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    curves, panels = entry.curves, []
    for name, title in (("max_margin", "max-margin, b = −½"), ("min_sharpness", "least sharpness, b = 0")):
        m, seen = curves["mean"], curves[name] > 0
        error = (2 * curves[f"{name}_error"][seen]).tolist()
        series = [
            figures.series(m, curves[f"{name}_exact"], "line", "green", "exact"),
            figures.series(m[seen], curves[name][seen], "points", "ink", "Monte Carlo", error=error),
            figures.series(m, curves[f"{name}_projected"], "dashed", "blue", "Φ(−(1−c)‖μ‖/√2)"),
            figures.series(m, curves[f"{name}_printed"], "dotted", "red", "as printed"),
        ]
        panels.append({"x": "‖μ‖", "y": "expected error", "log": "y", "title": title, "legend": "lower left",
                       "series": series, "limits": {"y": [1e-7, 2]}})  # fmt: skip
    return {"title": f"Appendix F · two points on the sphere, d = {entry.spec['d']}", "panels": panels}


@PAPER.misprint(
    "appF-small-mean", "appendix F, ‖μ‖ ≪ 1",
    printed=("The max-margin error is Γ(d/2+½)/(Γ(d/2)Γ(½)) ∫_{−1}^½ (1−t²)^{d/2−1} dt.", _FEW),
    corrected=("The max-margin error is Γ(d/2)/(Γ((d−1)/2)Γ(½)) ∫_{−1}^½ (1−t²)^{(d−3)/2} dt.", _FEW),
)  # fmt: skip
def small_mean(as_printed: bool) -> Finding:
    """The error of the max-margin classifier at μ = 0 against draws, in standard errors; d = 3 and 5."""
    scores = []
    for d in (3, 5):
        drawn = two_points.monte_carlo(d, 0.0, MAX_MARGIN, samples=100_000)
        stated = printed.small_mean_error(d, 0.5) if as_printed else two_points.isotropic(d, 0.5)
        scores.append(abs(stated - drawn.value) / standard_error(drawn))
    return Finding(max(scores), max(scores) < 4, "for d = 3 the error is exactly ¾")


@PAPER.claim(
    "appF-grows", "appendix F, ‖μ‖ ≪ 1", "The max-margin error at μ = 0 tends to 1 as d grows.",
    "monotone, 1 − error < 1e-9 at d = 128",
)  # fmt: skip
def grows_to_one() -> Finding:
    """1 − the max-margin error at μ = 0 falls to 0 over d = 2, 4, …, 128."""
    misses = [1 - two_points.isotropic(2**k, 0.5) for k in range(1, 8)]
    falling = all(a > b for a, b in pairwise(misses))
    return Finding(misses[-1], falling and misses[-1] < 1e-9, "1 − error at d = 128")


@PAPER.claim("appF-half", "appendix F, ‖μ‖ ≪ 1", "The error of the flattest classifier is ½.", _FEW)
def half() -> Finding:
    """The error of the flattest classifier at μ = 0: ½ in every dimension, drawn in standard errors."""
    drawn = two_points.monte_carlo(6, 0.0, MIN_SHARPNESS, samples=100_000)
    exact = max(abs(two_points.isotropic(d, 0.0) - 0.5) for d in (2, 3, 10, 50))
    score = abs(drawn.value - 0.5) / standard_error(drawn)
    return Finding(score, score < 4 and exact < _ROUNDING, "standard errors from ½")


@PAPER.claim(
    "appF-flattest-better", "appendix F", "The flattest classifier errs less than the max-margin one.",
    "ratio of errors < 1 for all ‖μ‖", needs=(app_f,),
)  # fmt: skip
def flattest_better(runs: Sequence[Any]) -> Finding:
    """The largest ratio of errors, flattest over max-margin, over all ‖μ‖."""
    (entry,) = runs
    ratio = float((entry.curves["min_sharpness_exact"] / entry.curves["max_margin_exact"]).max())
    isotropic = 0.5 / float(entry.curves["max_margin_exact"][0])
    return Finding(ratio, ratio < 1, f"d = {entry.spec['d']}, at ‖μ‖ = 0 {isotropic:.3f}")


@PAPER.claim(
    "appF-exact", "beyond appendix F", "Quadrature gives both errors exactly, for every ‖μ‖.",
    "within 4.5 standard errors", needs=(app_f,),
)  # fmt: skip
def exact_errors(runs: Sequence[Any]) -> Finding:
    """Quadrature against draws for every ‖μ‖ and both classifiers, in standard errors."""
    (entry,) = runs
    c, scores = entry.curves, []
    for name in ("max_margin", "min_sharpness"):
        # With fewer than about ten errors among the draws the error bar is not Gaussian.
        seen = c[f"{name}_exact"] * entry.spec["samples"] > 10
        exact = c[f"{name}_exact"][seen]
        error = np.sqrt(exact * (1 - exact) / entry.spec["samples"])
        scores += (np.abs(c[name][seen] - exact) / error).tolist()
    return Finding(max(scores), max(scores) < 4.5, f"{len(scores)} comparisons")


def event(stated: Callable[[int, float, float], float]) -> Finding:
    """P[⟨g₀ + g₀′, μ⟩ ≤ −(1 − c)‖μ‖²] by Monte Carlo against a formula, in standard errors; d = 3, ‖μ‖ = 1.5."""
    d, m, scores = 3, 1.5, []
    for c in (MAX_MARGIN, MIN_SHARPNESS):
        g = np.random.default_rng(5).standard_normal((2, 200_000, d))
        mu = np.full(d, m / np.sqrt(d))
        drawn = mean(((g[0] + g[1]) @ mu <= -(1 - c) * m**2).astype(float))
        scores.append(abs(stated(d, m, c) - drawn.value) / standard_error(drawn))
    return Finding(max(scores), max(scores) < 4, "both classifiers")


PAPER.claim(
    "appF-large-mean-printed", "appendix F, ‖μ‖ ≫ 1",
    "P[⟨g₀+g₀′,μ⟩ ≤ −½‖μ‖²] = (2π)^{−(d−1)/2} Φ(−‖μ‖/(2√2)); likewise −‖μ‖² and Φ(−‖μ‖/√2).", _FEW, misprint=True,
)(partial(event, printed.large_mean_error))  # fmt: skip
PAPER.claim(
    "appF-large-mean-integral-printed", "appendix F, ‖μ‖ ≫ 1",
    "P[⟨g₀+g₀′,μ⟩ ≤ −½‖μ‖²] = 1/(√2 (2π)^{d/2}) ∫_{−∞}^{−½‖μ‖²} e^{−x²/4} dx.", _FEW, misprint=True,
)(partial(event, printed.large_mean_integral))  # fmt: skip
PAPER.claim(
    "appF-large-mean-corrected", "appendix F, corrected",
    "P[⟨g₀+g₀′,μ⟩ ≤ −½‖μ‖²] = Φ(−‖μ‖/(2√2)), and Φ(−‖μ‖/√2) with −‖μ‖²: there is no factor in front.", _FEW,
)(partial(event, lambda d, m, c: printed.projected_error(m, c)))  # fmt: skip


@PAPER.misprint(
    "appF-approximation", "appendix F, ‖μ‖ ≫ 1",
    printed=("ln error ≈ −(1−c)²‖μ‖²/4 for both classifiers, c = ½ and 0.", "exponent within 10%"),
    corrected=("ln error ≈ −(1−c)‖μ‖²/2: the norms of the points must not be replaced by ‖μ‖.", "exponent within 10%"),
)  # fmt: skip
def approximation(as_printed: bool) -> Finding:
    """−ln(error)/‖μ‖² at large ‖μ‖ (d = 4): relative difference to (1 − c)²/4 as printed, or to (1 − c)/2."""
    worst, seen = 0.0, []
    for c in (MAX_MARGIN, MIN_SHARPNESS):
        # The difference of two large ‖μ‖ removes most of the power of ‖μ‖ in front of the exponential.
        a, b = (np.log(two_points.error(4, m, c, nodes=200)) for m in (12.0, 16.0))
        measured = float((a - b) / (16.0**2 - 12.0**2))
        stated = (1 - c) ** 2 / 4 if as_printed else two_points.exponent(c)
        worst = max(worst, abs(measured / stated - 1))
        seen.append(f"{measured:.3f}")
    return Finding(worst, worst < 0.1, f"exponents {' and '.join(seen)} for c = ½ and 0")


@PAPER.claim("appF-both-small", "appendix F, ‖μ‖ ≫ 1", "Both errors are small for large ‖μ‖.", "< 1e-6 at ‖μ‖ = 10")
def both_small() -> Finding:
    """The larger of the two errors at ‖μ‖ = 10, d = 10."""
    largest = max(two_points.error(10, 10.0, c) for c in (MAX_MARGIN, MIN_SHARPNESS))
    return Finding(largest, largest < 1e-6, "max-margin, ‖μ‖ = 10")
