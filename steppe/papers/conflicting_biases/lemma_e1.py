"""Lemma E.1: the risk of the diagonal network, and the KKT points of least risk on M under S ≤ 2/η."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory import printed
from steppe.papers.conflicting_biases.theory.kkt import kkt_points, least_risk, multipliers
from steppe.papers.conflicting_biases.theory.manifold import Manifold, least_sharpness
from steppe.papers.conflicting_biases.theory.risks import risk

# A few operations on numbers of order 1 in double precision, some of them small differences.
_ROUNDING = 1e-9
_SMALL = "difference at rounding"
_DRAWS = 30


@PAPER.claim("lemE.1-risk", "Lemma E.1", "The risk is R(w) = ½‖w‖₄⁴ − ‖w‖² + ½(d + 1).", _SMALL)
def risk_formula() -> Finding:
    """½‖w‖₄⁴ − ‖w‖² + ½(d + 1) against the expectation by Gauss-Hermite, exact for a square of linear forms."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    rng, worst = np.random.default_rng(0), 0.0
    grid = np.array(list(product(range(3), repeat=4)))
    mass = np.prod(weights[grid] / np.sqrt(2 * np.pi), axis=1)
    x, noise = nodes[grid][:, :3], nodes[grid][:, 3]
    for _ in range(_DRAWS):
        w = rng.normal(size=3)
        value = float(mass @ (0.5 * (x @ w**2 - x.sum(axis=1) - noise) ** 2))
        worst = max(worst, abs(float(risk(w)) / value - 1))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} random w in three dimensions")


def nonnegative_examples(count: int, key: int) -> Any:
    """(x ≥ 0, y > 0, lr) with M ∩ {S ≤ 2/η} ≠ ∅: some with equal entries, some with a zero."""
    rng = np.random.default_rng(key)
    for k in range(count):
        x = rng.uniform(0.2, 1.5, 3)
        if k % 4 == 1:
            x[1] = x[0]
        if k % 4 == 2:
            x[2] = 0.0
        y = float(rng.uniform(0.3, 3.0))
        yield x, y, 2 / least_sharpness(x, y).value * rng.uniform(0.1, 0.95)


@PAPER.claim("lemE.1-kkt", "Lemma E.1", "The listed points satisfy all KKT conditions.", _SMALL)
def kkt_conditions() -> Finding:
    """‖∇R + ν∇h + λ∇g‖ by autodiff at every listed point, with feasibility and complementary slackness."""
    import jax
    import jax.numpy as jnp

    worst, count = 0.0, 0
    with jax.enable_x64(True):
        for x, y, lr in nonnegative_examples(_DRAWS, key=1):
            for p in kkt_points(x, y, lr):
                slack = 2 * lr * float(x**2 @ p.w**2) - 1
                errors = [
                    float(np.abs(np.asarray(_stationarity()(jnp.asarray(p.w), x, p.nu, p.lam * lr))).max()),
                    abs(float(x @ p.w**2) / y - 1), max(slack, 0.0), abs(p.lam * slack), max(-p.lam, 0.0),
                ]  # fmt: skip
                worst, count = max(worst, *errors), count + 1
    return Finding(worst, worst < _ROUNDING, f"{count} points of {_DRAWS} problems, ties and zeros included")


@cache
def _stationarity() -> Any:
    """The gradient of the Lagrangian R + νh + λg, compiled."""
    import jax
    import jax.numpy as jnp

    def lagrangian(w: Any, x: Any, nu: Any, lam_lr: Any) -> Any:
        R = 0.5 * jnp.sum(w**4) - jnp.sum(w**2)
        return R + nu * jnp.dot(x, w**2) + 2 * lam_lr * jnp.dot(x**2, w**2)

    return jax.jit(jax.grad(lagrangian))


@PAPER.claim(
    "lemE.1-complete", "Lemma E.1", "There are no KKT points beyond the list: an optimiser finds no other.",
    "distance to the list < 1e-4, the optimiser's own accuracy",
)  # fmt: skip
def kkt_complete() -> Finding:
    """Local minima found by SLSQP from random starts: the largest distance to the list; and the global one."""
    from scipy.optimize import minimize

    rng, worst, gap = np.random.default_rng(2), 0.0, 0.0
    for x, y, lr in nonnegative_examples(8, key=2):
        listed = np.stack([p.w for p in kkt_points(x, y, lr)])
        constraints = (
            {"type": "eq", "fun": lambda w, x=x, y=y: x @ w**2 - y, "jac": lambda w, x=x: 2 * x * w},
            {"type": "ineq", "fun": lambda w, x=x, lr=lr: 1 - 2 * lr * (x**2 @ w**2),
             "jac": lambda w, x=x, lr=lr: -4 * lr * x**2 * w},
        )  # fmt: skip
        best = np.inf
        for _ in range(4):
            found = minimize(
                risk, rng.uniform(0.1, 1.5, 3), jac=lambda w: 2 * w**3 - 2 * w, constraints=constraints,
                method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
            )  # fmt: skip
            if found.success:
                worst = max(worst, float(np.abs(np.abs(found.x) - listed).max(axis=1).min()))
                best = min(best, float(found.fun))
        gap = max(gap, abs(best - float(risk(least_risk(x, y, lr)))))
    # SLSQP stops when its step is about 1e-8.
    return Finding(worst, worst < 1e-4 and gap < 1e-6, f"distance to the list; least risk differs by {gap:.1e}")


@PAPER.claim("lemE.1-global", "after Lemma E.1", "The KKT point of least risk solves a convex program in w².", _SMALL)
def kkt_global() -> Finding:
    """The least risk by two monotone equations against the best of all supports, in five dimensions."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(_DRAWS):
        x, y = rng.uniform(0.1, 2.0, 5), float(rng.uniform(0.3, 4.0))
        lr = 2 / least_sharpness(x, y).value * rng.uniform(0.1, 0.98)
        worst = max(worst, abs(kkt_points(x, y, lr)[0].risk - float(risk(least_risk(x, y, lr)))))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} examples")


@PAPER.misprint(
    "lemE.1-positivity", "Lemma E.1",
    printed=("w² > 0 on the support iff 2ηλxᵢ + νxᵢ < 1.", "wrong in no example"),
    corrected=("w² > 0 on the support iff 2ηλxᵢ² + νxᵢ < 1.", "wrong in no example"),
)  # fmt: skip
def positivity(as_printed: bool) -> Finding:
    """How often the condition on (λ, ν) is wrong about whether all w² of Eq. 13 are positive, for λ ≥ 0."""
    rng, wrong, total = np.random.default_rng(4), 0, 0
    for _ in range(2000):
        x, y, lr = rng.uniform(0.1, 3.0, 3), float(rng.uniform(0.2, 6.0)), float(rng.uniform(0.02, 1.0))
        lam, nu = multipliers(x, y, lr)
        if lam < 0:
            continue
        # The same point without Eq. 13, from the linear system of stationarity and both constraints.
        border = np.stack([x, 2 * lr * x**2])
        system = np.block([[np.eye(3), border.T], [border, np.zeros((2, 2))]])
        u = np.linalg.solve(system, [1, 1, 1, y, 1])[:3]
        stated = printed.positive(x, y, lr) if as_printed else bool((2 * lam * lr * x**2 + nu * x < 1).all())
        total, wrong = total + 1, wrong + (stated != bool((u > 0).all()))
    return Finding(wrong / total, wrong == 0, f"{wrong} of {total} wrong")


@PAPER.misprint(
    "lemE.1-support", "Lemma E.1, Eq. 13",
    printed=("Eq. 13 gives (λ, ν) on every support if x is no multiple of 1.", "denominator > 0"),
    corrected=("Eq. 13 gives (λ, ν) on the supports where the non-zero entries of x differ.", "denominator > 0"),
)  # fmt: skip
def tied_support(as_printed: bool) -> Finding:
    """The least denominator of Eq. 13 over all supports on which the lemma uses it, relative to its terms."""
    least = np.inf
    x = np.array([1.0, 0.5, 0.0])
    for A in ([0], [1], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        on = x[A]
        differs = np.ptp(on[on != 0]) > 0
        if as_printed or differs:  # x is no multiple of 1: the printed lemma uses Eq. 13 on every A
            A2, A3, A4 = (float(np.sum(on**k)) for k in (2, 3, 4))
            least = min(least, (A2 * A4 - A3**2) / (A2 * A4))
    return Finding(least, least > 0, "x = (1, ½, 0), least denominator over the supports")


@PAPER.misprint(
    "lemE.1-tied", "Lemma E.1, Eq. 14",
    printed=("For x = α1, w from any (λ ≥ 0, ν) with Eq. 14 is a KKT point.", "S ≤ 2/η"),
    corrected=("For x = α1, w with Eq. 14 is a KKT point only if 2ηαy ≤ 1, because S = 4αy on all of M.", "S ≤ 2/η"),
)  # fmt: skip
def tied_infeasible(as_printed: bool) -> Finding:
    """x = α1: the sharpness of the points of Eq. 14 over the bound 2/η; at a KKT point it is at most 1."""
    ratios = []
    for scale in (0.5, 1.0, 2.0):
        x, y = np.full(3, scale), 1.5
        for lr in (0.2 / (scale * y), 0.5 / (scale * y), 0.9 / (scale * y)):
            lam = 0.1
            nu = (x.sum() - y - 2 * lr * lam * np.sum(x**3)) / np.sum(x**2)
            u = 1 - 2 * lr * lam * x**2 - nu * x
            if (u > 0).all() and (as_printed or 2 * lr * scale * y <= 1):
                ratios.append(float(Manifold(x, y).sharpness(np.sqrt(u))) * lr / 2)
    return Finding(max(ratios), max(ratios) <= 1 + _ROUNDING, f"largest of {len(ratios)} points")
