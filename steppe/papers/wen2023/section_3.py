"""Section 3 of wen2023: the flattest nets without bias, and with simplified BatchNorm, generalise.

Runs cannot show what holds for every flattest minimiser. Without bias a convex program over all neurons finds them, for
small d (`flattest_no_bias`). With BatchNorm it chooses among thousands of random neurons and the few that are known.
"""

from functools import cache
from typing import Any

import numpy as np

import steppe
from steppe.experiments import Finding
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.flattest_no_bias import Flattest, flattest_no_bias
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.papers.wen2023.theory.complexity import norm_constants, path_norm, squared_norms

# Random directions that compete with the few known ones.
_DIRECTIONS = 3_000
# The program gives a neuron that it leaves out less than this share of the largest weight, by rounding.
_SHARE = 1e-6

# Without bias.


@PAPER.claim(
    "lemma3.1-norms", "Lemmas 3.1, A.5 and A.11",
    "Without bias, the trace of an interpolator is within constants of ‖W₁‖² + d‖W₂‖², which do not grow with d.",
    "C₁ ≤ ratio ≤ C₂, C₁ ≥ 1/16 and C₂ ≤ 8 for every d (n = 8d; the limits were chosen after the constants)",
    control="tests/papers/wen2023/test_controls.py::test_norms_need_enough_examples",
)  # fmt: skip
def lemma_3_1() -> Finding:
    return norms_are_equivalent([(d, 8 * d) for d in (4, 8, 16)])


def norms_are_equivalent(sizes: list[tuple[int, int]]) -> Finding:
    """The least C₁ over the dimensions, with the ratio of nets of many scales inside."""
    lower, ratios, upper = [], [], []
    for d, n in sizes:
        data = steppe.data.xor(d, n, key=0)
        constants = norm_constants(data.x, directions=32, steps=50)
        lower.append(constants.lower)
        upper.append(constants.upper)
        for epsilon, scale in ((0.1, 0.5), (0.9, 3.0)):
            params = generalising.no_bias_xor(d, epsilon=epsilon, scale=scale)
            ratios.append(explicit.measured(params, data.x, data.y)[0] / squared_norms(params))
    inside = max(lower) <= min(ratios) and max(ratios) <= min(upper)
    holds = inside and min(lower) >= 1 / 16 and max(upper) <= 8
    return Finding(min(lower), holds, f"ratios {min(ratios):.3g} to {max(ratios):.3g}, C₂ at most {max(upper):.3g}")


def split_cube(d: int, n: int) -> tuple[Any, Any]:
    """n corners of the cube, and the others."""
    corners = explicit.cube(d)
    chosen = np.random.default_rng(1).permutation(len(corners))
    return corners[chosen[:n]], corners[chosen[n:]]


@cache
def flattest_on_cube(d: int, n: int, *, kinks: bool) -> tuple[Flattest, Any]:
    """The flattest nets on n corners, and the corners that they have not seen."""
    x, unseen = split_cube(d, n)
    return flattest_no_bias(x, x[:, 0] * x[:, 1], kinks=kinks), unseen


@PAPER.claim(
    "thm3.1-least", "Theorem 3.1, Eq. 3",
    "Without bias the least trace on P_xor is 4√d where kinks are allowed, attained by the net of rows (±1, ±1, 0, …); "
    "without kinks it is a larger infimum that no net attains.",
    "4√d, by the net and by the program, certified within 1e-6; d = 4, 12 of 16 corners",
    control="tests/papers/wen2023/test_flattest_no_bias.py::test_the_former_flattest_net_is_not",
)  # fmt: skip
def least_trace() -> Finding:
    """The least trace with kinks, counted as autodiff does: relu′(0) = 0."""
    d, n = 4, 12
    with_kinks, _ = flattest_on_cube(d, n, kinks=True)
    without, _ = flattest_on_cube(d, n, kinks=False)
    trace, loss = explicit.measured(generalising.no_bias_tie(d), with_kinks.x, with_kinks.y)
    bound = bounds.two_layer_no_bias(with_kinks.x, with_kinks.y)
    certified = all(found.trace - found.lower <= 1e-6 * found.trace for found in (with_kinks, without))
    attained = loss == 0 and abs(trace / bound - 1) < explicit.ROUNDING and abs(with_kinks.trace / bound - 1) < 1e-6
    infimum = without.trace > 1.01 * bound and not without.attained
    detail = f"the net {trace:.6f}, bound {bound:.6f}; without kinks {without.trace:.4f}, not attained"
    return Finding(with_kinks.trace, certified and attained and infimum and not with_kinks.attained, detail)


@PAPER.claim(
    "thm3.1-flattest", "Theorem 3.1",
    "Every flattest 2-MLP-No-Bias, with kinks or at the infimum without, is right on all unseen corners.",
    "least x₁x₂ f(x) over all flattest nets and unseen x > 0; d = 4, 12 of 16 corners",
    control="tests/papers/wen2023/test_flattest_no_bias.py::test_with_few_examples_some_flattest_net_errs",
)  # fmt: skip
def theorem_3_1() -> Finding:
    margins = [least_margin(*flattest_on_cube(4, 12, kinks=kinks)) for kinks in (True, False)]
    return Finding(min(margins), min(margins) > 0, "all neurons are choices; the nets are judged by a linear program")


def least_margin(found: Flattest, unseen: Any) -> float:
    """The least x₁x₂ f(x) over all flattest nets and all unseen corners."""
    return min(found.worst(x, float(x[0] * x[1])) for x in unseen)


@PAPER.claim(
    "thmA.1-flattest", "Theorem A.1",
    "The flattest 2-MLP-No-Bias generalises for other distributions too: Gaussian inputs, y = |x₁| − |x₂|.",
    "test loss ≤ d/n, where 0 has a loss of 2(1 − 2/π) = 0.73",
    control="tests/papers/wen2023/test_flattest_no_bias.py::test_shuffled_labels_teach_nothing",
)  # fmt: skip
def theorem_a1() -> Finding:
    """The test losses of the flattest nets over all neurons, in units of d/n."""
    sizes = ((2, 12), (3, 12))
    losses = [loss_on_gaussians(d, n) * n / d for d, n in sizes]
    return Finding(max(losses), max(losses) <= 1, f"(d, n) = {sizes}, all neurons are choices")


@cache
def loss_on_gaussians(d: int, n: int, *, shuffled: bool = False) -> float:
    """The test loss of the net that the program finds on n Gaussians; `shuffled` labels teach it nothing."""
    rng = np.random.default_rng(d)
    x, fresh = np.split(rng.normal(size=(n + 10_000, d)), [n])
    y = np.abs(x[:, 0]) - np.abs(x[:, 1])
    found = flattest_no_bias(x, rng.permutation(y) if shuffled else y, kinks=False)
    off = np.maximum(fresh @ found.W1.T, 0) @ found.W2 - (np.abs(fresh[:, 0]) - np.abs(fresh[:, 1]))
    return float(np.mean(off**2))


@PAPER.claim(
    "lemmaA.4", "Lemma A.4", "The flattest 2-MLP-No-Bias has Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C C₂/C₁.",
    "ratio ≤ 1, d = 4, 12 of 16 corners", control="tests/papers/wen2023/test_controls.py::test_a_sharper_net_is_longer",
)  # fmt: skip
def lemma_a4() -> Finding:
    found, _ = flattest_on_cube(4, 12, kinks=True)
    return bounded_path_norm({"W1": found.W1, "W2": found.W2}, found.x)


def bounded_path_norm(params: Any, x: Any) -> Finding:
    """The path norm over C C₂/C₁, where C is that of a net that is right everywhere (appendix A.2.4)."""
    constants = norm_constants(x)
    most = path_norm(generalising.no_bias_tie(x.shape[1])) * constants.upper / constants.lower
    ratio = path_norm(params) / most
    return Finding(ratio, ratio <= 1, f"path norm {path_norm(params):.4g}, at most {most:.4g}")


@PAPER.claim(
    "eq15", "Eq. 15", "The truncated square l_c is the square up to c, bounded by 2c², and smooth: |l_c″| ≤ 2.",
    "largest violation ≤ rounding", control="tests/papers/wen2023/test_controls.py::test_eq_15_joins_smoothly",
)  # fmt: skip
def eq15() -> Finding:
    worst = max(truncation_violation(truncated_square, c) for c in (0.5, 1.0, 3.0))
    return Finding(worst, worst <= 1e-9, "values at 0, c and 2c, first and second differences, c = 0.5, 1 and 3")


def truncated_square(r: Any, c: float) -> Any:
    """l_c(r): r² up to c, −r² + 4c|r| − 2c² from there to 2c, 2c² beyond (Eq. 15)."""
    s = np.abs(r)
    return np.where(s <= c, s**2, np.where(s <= 2 * c, -(s**2) + 4 * c * s - 2 * c**2, 2 * c**2))


def truncation_violation(function: Any, c: float) -> float:
    """How far a truncation is from what theorem A.3 needs: equal to r² up to c, at most r² and 2c², |l″| ≤ 2."""
    step = c / 1_000
    r = np.arange(-4_000, 4_001) * step
    f = function(r, c)
    # Second differences of a function whose slope jumps grow like 1/step.
    bend = np.abs(np.diff(f, 2)) / step**2
    inside = np.abs(r) <= c
    return float(
        max(np.abs(f - r**2)[inside].max(), (f - r**2).max(), (f - 2 * c**2).max(), bend.max() - 2 - 1e-6, 0.0)
    )


@PAPER.claim(
    "condition2", "Condition 2",
    "P_xor meets condition 2 with σ = 1 and a C that does not depend on d: x is symmetric, 1-subgaussian, of "
    "covariance I, and a net of path norm C fits it.", "largest violation ≤ rounding, d = 3, 6 and 9",
    control="tests/papers/wen2023/test_controls.py::test_condition_2_refuses_other_distributions",
)  # fmt: skip
def condition_2() -> Finding:
    """Exact: the distribution is listed."""
    worst = max(condition_2_violation(explicit.cube(d), d) for d in (3, 6, 9))
    return Finding(worst, worst <= explicit.ROUNDING, "path norm 2√2 for every d")


def condition_2_violation(x: Any, d: int, *, C: float = 2 * np.sqrt(2), sigma: float = 1.0) -> float:
    """How far inputs x, each as likely, with the label x₁x₂ are from condition 2.

    That is: symmetry, covariance I, log E e^{λw·x} ≤ σ²λ²/2 along axes and random directions, and the fit of a net of
    path norm at most C.
    """
    params = generalising.no_bias_tie(d)
    ordered = x[np.lexsort(x.T)], (-x)[np.lexsort(-x.T)]
    symmetric = float(np.abs(ordered[0] - ordered[1]).max())
    covariance = float(np.abs(x.T @ x / len(x) - np.eye(d)).max())
    w = np.concatenate([np.eye(d), np.random.default_rng(0).normal(size=(20, d))])
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    lam = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
    moments = np.log(np.mean(np.exp(lam[:, None, None] * (w @ x.T)), axis=2))
    tails = float((moments - sigma**2 * lam[:, None] ** 2 / 2).max())
    fit = float(np.abs(np.maximum(x @ params["W1"].T, 0) @ params["W2"] - x[:, 0] * x[:, 1]).max())
    return max(symmetric, covariance, tails, fit, path_norm(params) - C, 0.0)


# With simplified batch normalisation.


@PAPER.claim(
    "thm3.2-sim-bn", "Theorem 3.2, Lemmas A.1 to A.3",
    "With simplified BatchNorm and a complete training set, nets without error approach the least trace, 8.",
    "trace → 8, no error on the whole cube",
)  # fmt: skip
def theorem_3_2() -> Finding:
    data = steppe.data.complete(8, key=0)
    params = generalising.sim_bn_xor(8, scale=1e4)
    trace, loss = explicit.measured(params, data.x, data.y)
    error = explicit.error(params, 8, train=data.x)
    least = bounds.sim_bn_complete(data.x, data.y)
    # tr = 8 + 2V/s², V the spread of at most d: at most 2d/s² above the infimum.
    near = 0 <= trace - least < 2 * 8 / 1e8 + 1e-9
    return Finding(trace, loss < 1e-20 and error == 0 and near, f"infimum {least:g}")


@PAPER.claim(
    "lemmaA.1", "Lemma A.1",
    "On a complete training set the least ‖γ ⊙ W₂‖₁ is 2, and its neurons see the first two coordinates only.",
    "2, four neurons, ‖W₁[3:]‖ = 0",
)  # fmt: skip
def lemma_a1() -> Finding:
    """min ‖γ ⊙ W₂‖₁ over Sim-BN nets of random neurons and the four of the proof: the program must choose the four."""
    d, rng = 6, np.random.default_rng(0)
    data = steppe.data.complete(d, key=0)
    known = generalising.sim_bn_xor(d, scale=1.0)
    W1 = np.concatenate([known["W1"], rng.normal(size=(_DIRECTIONS, d))])
    b1 = np.concatenate([known["b1"], rng.normal(size=_DIRECTIONS)])
    a = np.maximum(data.x @ W1.T + b1[None], 0)
    alive = (a > 0).any(axis=0)
    phi = a[:, alive] / np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
    found = steppe.flattening.flattest_interpolator(phi, data.y, np.ones(alive.sum()), 1.0)
    used = W1[alive][np.abs(found.a) > _SHARE * np.abs(found.a).max()]
    tails = float(np.linalg.norm(used[:, 2:], axis=1).max())
    least = bounds.sim_bn_complete(data.x, data.y) / 4
    # The program stops at a gap of 1e-8.
    holds = abs(found.flatness / least - 1) < 1e-6 and len(used) == 4 and tails == 0
    detail = f"{len(used)} neurons of {alive.sum():,} used, their ‖W₁[3:]‖ at most {tails:g}"
    return Finding(found.flatness, holds, detail)


@PAPER.claim(
    "lemmaA.2", "Lemma A.2", "Nets with ‖γ ⊙ W₂‖₁ within κ of its least value are near x₁x₂ on the whole cube.",
    "largest |f − x₁x₂| over all nets of a dictionary falls to 0 with κ",
    control="tests/papers/wen2023/test_controls.py::test_lemma_a2_needs_a_complete_training_set",
)  # fmt: skip
def lemma_a2() -> Finding:
    data = steppe.data.complete(5, key=0)
    errors = [farthest(data.x, kappa) for kappa in (0.3, 0.03, 0.0)]
    listed = ", ".join(f"{error:.2g}" for error in errors)
    # The linear program satisfies its constraints to 1e-7.
    return Finding(errors[-1], errors[0] > errors[1] > errors[2] and errors[2] < 1e-5, f"κ = 0.3, 0.03, 0: {listed}")


def farthest(x: Any, kappa: float) -> float:
    """The largest |f − x₁x₂| on the cube over all nets that fit x₁x₂ on x with ‖γ ⊙ W₂‖₁ ≤ 2 + κ: a linear program.

    They may use the four neurons of lemma A.1, 200 of them tilted towards other inputs, and 200 random ones.
    """
    from scipy.optimize import linprog

    d, rng = x.shape[1], np.random.default_rng(0)
    corners = explicit.cube(d)
    known = generalising.sim_bn_xor(d, scale=1.0, width=200)
    tilt = np.geomspace(1e-2, 1, 200)[:, None] * rng.choice([-1.0, 0.0, 1.0], size=(200, d), p=[0.2, 0.6, 0.2])
    tilted = known["W1"] + np.where(np.arange(d) < 2, 0, tilt)
    W1 = np.concatenate([known["W1"][:4], tilted, rng.normal(size=(200, d))])
    b1 = np.concatenate([np.full(4, -1.0), -1 - rng.random(200) * np.abs(tilt).sum(axis=1), rng.normal(size=200)])
    a = np.maximum(x @ W1.T + b1[None], 0)
    alive = (a > 0).any(axis=0)
    divisors = np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
    phi, everywhere = a[:, alive] / divisors, np.maximum(corners @ W1[alive].T + b1[None, alive], 0) / divisors
    worst, target = 0.0, corners[:, 0] * corners[:, 1]
    seen = (corners[:, None] == x[None]).all(axis=2).any(axis=1)
    for k in np.flatnonzero(~seen):
        for sign in (1.0, -1.0):
            row = sign * everywhere[k]
            solved = linprog(
                np.concatenate([-row, row]), A_eq=np.hstack([phi, -phi]), b_eq=x[:, 0] * x[:, 1],
                A_ub=np.ones((1, 2 * phi.shape[1])), b_ub=[2 + kappa + 1e-9], method="highs",
            )  # fmt: skip
            worst = max(worst, -solved.fun - sign * target[k])
    return worst


@PAPER.claim(
    "thm3.2-weighted", "Theorem 3.2, weighted",
    "On a complete training set a Sim-BN net that interpolates with a trace κ above the infimum has "
    "Σⱼ |γⱼW₂ⱼ|(1 − 2ψⱼ) ≤ κ/4, ψⱼ = |⟨y aⱼ⟩|/⟨aⱼ²⟩^½ ≤ ½ with equality only for W₁ⱼ[3:] = 0.",
    "largest left side over right ≤ 1, and ψ ≤ ½ for all neurons",
    control="tests/papers/wen2023/test_controls.py::test_weighted_theorem_needs_a_complete_training_set",
)  # fmt: skip
def weighted() -> Finding:
    """Random nets whose W₂ is fitted, the flattest net, and that with a cancelling pair that looks at x₃ alone."""
    data = steppe.data.complete(4, key=0)
    nets = [fitted_sim_bn(data.x, seed) for seed in range(2)] + [cancelling_pair(4, size) for size in (1.0, 0.01)]
    ratios = [weighted_ratio(params, data.x) for params in nets]
    W, most = np.random.default_rng(0).normal(size=(_DIRECTIONS, 5)), 0.5 + explicit.ROUNDING
    largest = float(max(psi(W[:, :4], W[:, 4], data.x).max(), *(psi(p["W1"], p["b1"], data.x).max() for p in nets)))
    detail = f"{len(nets)} nets on {len(data.x)} points; ψ at most {largest:.6f}, {_DIRECTIONS:,} random neurons too"
    return Finding(max(ratios), max(ratios) <= 1 + explicit.ROUNDING and largest <= most, detail)


def psi(W1: Any, b1: Any, x: Any) -> Any:
    """|⟨y aⱼ⟩|/⟨aⱼ²⟩^½ of each neuron that fires, y = x₁x₂."""
    a = np.maximum(x @ W1.T + b1[None], 0)
    a = a[:, (a > 0).any(axis=0)]
    return np.abs(x[:, 0] * x[:, 1] @ a) / len(x) / np.sqrt(np.mean(a**2, axis=0))


def weighted_ratio(params: Any, x: Any) -> float:
    """Σ |γW₂|(1 − 2ψ) over (tr − 8)/4, for the label x₁x₂."""
    y = x[:, 0] * x[:, 1]
    trace, loss = explicit.measured(params, x, y)
    assert loss < 1e-18, loss
    sizes = np.abs(params["gamma"] * params["W2"])
    return float(np.sum(sizes * (1 - 2 * psi(params["W1"], params["b1"], x))) / ((trace - 8) / 4))


def fitted_sim_bn(x: Any, seed: int) -> Any:
    """A random Sim-BN net of width 4n with γ = 1 and W₂ fitted to x₁x₂."""
    rng, m = np.random.default_rng(seed), 4 * len(x)
    W1, b1 = rng.normal(size=(m, x.shape[1])), rng.normal(size=m)
    a = np.maximum(x @ W1.T + b1[None], 0)
    alive = (a > 0).any(axis=0)
    phi = a[:, alive] / np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
    W2 = np.linalg.lstsq(phi, x[:, 0] * x[:, 1], rcond=None)[0]
    return {"W1": W1[alive], "b1": b1[alive], "gamma": np.ones(alive.sum()), "W2": W2}


def cancelling_pair(d: int, size: float) -> Any:
    """The flattest Sim-BN net with two more neurons W₁ = e₃, γ = `size`, W₂ = ±`size`: the same function."""
    params = generalising.sim_bn_xor(d, scale=1e4)
    more = {"W1": np.repeat(np.eye(1, d, 2), 2, axis=0), "b1": np.zeros(2), "gamma": np.full(2, size),
            "W2": np.array([size, -size])}  # fmt: skip
    return {name: np.concatenate([a, more[name]]) for name, a in params.items()}
