"""Statements of wen2023 that are wrong as printed, each measured as printed and as corrected.

Three more stand with their figures: the titles of sections 4 and 5, and the second ρ of figure 2a.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import steppe
from steppe.experiments import Finding
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.section_3 import cancelling_pair
from steppe.papers.wen2023.theory import bounds, complexity, generalising
from steppe.papers.wen2023.theory import printed as as_printed

Check = Callable[[bool], Finding]


def _misprint(
    id: str, source: str, statement: str, expected: str, *, printed: str, corrected: str
) -> Callable[[Check], Check]:
    """A misprint: the statement with the printed formula in its gap is wrong, with the corrected one it is right."""
    wrong, right = statement.format(printed), statement.format(corrected)
    return PAPER.misprint(id, source, printed=(wrong, expected), corrected=(right, expected))


def _sample(n: int = 64) -> Any:
    return steppe.data.xor(30, n, key=0)


# Equations.


@_misprint(
    "eq5", "Eq. 5", "With r = {} the four-neuron net of Proposition 4.2 attains the bound (d = 30).", "trace = 4√31",
    printed="(d² + 1)^¼", corrected="(d + 1)^¼",
)  # fmt: skip
def eq5(printed: bool) -> Finding:
    data = _sample()
    trace, _ = explicit.measured((as_printed if printed else generalising).xor(30), data.x, data.y)
    bound = bounds.two_layer_bias(data.x, data.y)
    return Finding(trace, abs(trace / bound - 1) < explicit.ROUNDING, f"bound 4√31 = {bound:.4f}")


@_misprint(
    "eq5-index", "Eq. 5, index", "With {} = (−1)^(i+j)/r the four-neuron net of Proposition 4.2 interpolates.",
    "train loss 0", printed="W₂[2i + j]", corrected="W₂[2i + j + 1]",
)  # fmt: skip
def eq5_index(printed: bool) -> Finding:
    """W₂[2i + j] leaves out the first of the neurons 2i + j + 1, and gives each neuron the weight of the next one."""
    data, params = _sample(), generalising.xor(30)
    if printed:
        params["W2"] = np.append(params["W2"][1:], 0.0)
    _, loss = explicit.measured(params, data.x, data.y)
    return Finding(loss, loss < explicit.ROUNDING, "train loss, d = 30, r as corrected")


@_misprint(
    "eq16", "Eq. 16", "With {} in W₁ the net of Proposition A.1 interpolates.", "train loss 0",
    printed="vⱼ", corrected="wⱼ",
)  # fmt: skip
def eq16(printed: bool) -> Finding:
    data, support = _sample(), explicit.cube(2)
    build = as_printed.junta if printed else generalising.junta
    params = build(support, support.prod(axis=1), 30, np.sqrt(30))
    _, loss = explicit.measured(params, data.x, data.y)
    return Finding(loss, loss < explicit.ROUNDING, "train loss")


@_misprint(
    "eq17", "Eq. 17", "With {} the net of Proposition A.2 interpolates.", "train loss 0",
    printed="the printed formulas and width n", corrected="width 3n",
)  # fmt: skip
def eq17(printed: bool) -> Finding:
    x = explicit.circle(20)
    params = (as_printed if printed else generalising).circle(x, x[:, 0])
    _, loss = explicit.measured(params, x, x[:, 0])
    return Finding(loss, loss < explicit.ROUNDING, "train loss on 20 points of the circle")


# Losses and errors.


@_misprint(
    "zero-one", "Section 2", "The zero-one loss is {}: it is 0 for a net that is always right.", "0",
    printed="Pr(y f > 0)", corrected="Pr(y f ≤ 0)",
)  # fmt: skip
def zero_one(printed: bool) -> Finding:
    x = explicit.cube(6)
    y, f = x[:, 0] * x[:, 1], explicit.outputs(generalising.xor(6), x)
    value = as_printed.zero_one(y, f) if printed else explicit.error(generalising.xor(6), 6)
    return Finding(value, value == 0, "of the net of Proposition 4.2")


@_misprint(
    "prop4.1-unseen", "MATH.md, section 1", "The memorising net errs on a share 1 − n/2^d of {}.", "share = 1 − n/2^d",
    printed="the unseen points", corrected="the whole hypercube",
)  # fmt: skip
def unseen(printed: bool) -> Finding:
    """1 − n/2^d is the error over the whole cube; on unseen points, as definition 4.2 has it, it is 1."""
    d, n = 10, 64
    data = steppe.data.xor(d, n, replace=False, key=3)
    x = explicit.cube(d)
    seen = (x[:, None] == data.x[None]).all(axis=2).any(axis=1)
    wrong = x[:, 0] * x[:, 1] * explicit.outputs(explicit.memorising(data.x, data.y), x) <= 0
    value = float(np.mean(wrong[~seen] if printed else wrong))
    return Finding(value, value == 1 - n / 2**d, f"1 − n/2^d = {1 - n / 2**d:.4f}")


@_misprint(
    "defA.2", "Definition A.2", "The smoothed logistic loss {} is minimal at γ_p for the label 1 (p = 0.2).",
    "minimum at γ_p", printed="as printed", corrected="with p and 1 − p exchanged",
)  # fmt: skip
def definition_a2(printed: bool) -> Finding:
    a, p = np.linspace(-5, 5, 100_001), 0.2
    (stated,) = bounds.logistic_target([1.0], p)
    found = float(a[np.argmin(as_printed.logistic_loss(a, 1, p if printed else 1 - p))])
    # The grid has steps of 1e-4.
    return Finding(found, abs(found - stated) < 2e-4, f"γ_p = {stated:.4f}")


@_misprint(
    "lemmaA.13", "Lemma A.13", "The logistic trace is {} times that of ½‖·‖² (p = 0.2).",
    "equal to the measured factor", printed="1/(p(1 − p))", corrected="p(1 − p)",
)  # fmt: skip
def lemma_a13(printed: bool) -> Finding:
    """The factor between the traces of the logistic and of the squared loss at the same outputs."""
    data, p = _sample(n=30), 0.2
    target = bounds.logistic_target(data.y, p)
    params = explicit.memorising(data.x, target)
    logistic = explicit.measured(params, data.x, data.y, steppe.losses.logistic(smoothing=p))[0]
    square = explicit.measured(params, data.x, target, steppe.losses.half_mse)[0]
    stated = (as_printed if printed else bounds).logistic_curvature(p)
    holds = abs(logistic / square / stated - 1) < explicit.ROUNDING
    return Finding(stated, holds, f"measured {logistic / square:.4f}")


# Simplified batch normalisation.


@_misprint(
    "lemmaA.3", "Lemma A.3", "The bound {} is the infimum of the trace of Sim-BN.", "equal to the trace",
    printed="‖W₂‖² + ‖γ‖²", corrected="2(‖W₂‖² + ‖γ‖²)",
)  # fmt: skip
def lemma_a3(printed: bool) -> Finding:
    """Is 4 ‖γ ⊙ W₂‖₁, the infimum of the bound over rescalings, the infimum of the trace?"""
    x = explicit.cube(4)
    params = generalising.sim_bn_xor(4, scale=1e4)
    trace, _ = explicit.measured(params, x, x[:, 0] * x[:, 1])
    bound = (as_printed if printed else bounds).sim_bn_norms(params["gamma"], params["W2"])
    # The trace exceeds the infimum by 4/s² = 4e-8.
    return Finding(bound, abs(trace - bound) < 1e-6, f"trace {trace:.6f}")


@_misprint(
    "lemmaA.1-signs", "Proof of Lemma A.1", "With {} the net of the proof computes x₁x₂.", "largest |f − x₁x₂| = 0",
    printed="W₂ = ½ for all neurons", corrected="the signs (−1)^(i+j) in W₂",
)  # fmt: skip
def lemma_a1_signs(printed: bool) -> Finding:
    x = explicit.cube(4)
    f = explicit.outputs((as_printed if printed else generalising).sim_bn_xor(4), x, train=x)
    off = float(np.abs(f - x[:, 0] * x[:, 1]).max())
    return Finding(off, off < explicit.ROUNDING, "largest |f(x) − x₁x₂| on the cube")


@_misprint(
    "thm3.2-silent", "Theorem 3.2, Lemmas A.1 and A.2",
    "Of nets that come near the infimum of the trace of Sim-BN, {} tends to 0 with the distance κ.", "below √κ",
    printed="the largest ‖W₁ⱼ[3:]‖/‖W₁ⱼ‖", corrected="Σⱼ |γⱼW₂ⱼ| ‖W₁ⱼ[3:]‖/‖W₁ⱼ‖",
)  # fmt: skip
def silent_neuron(printed: bool) -> Finding:
    """Two neurons W₁ = e₃, γ = a, W₂ = ±a cancel each other at a cost of order a²; at a = 0 they are silent."""
    d, ratios = 6, []
    data = steppe.data.complete(d, key=0)
    for size in (0.3, 0.01):
        params = cancelling_pair(d, size)
        trace, loss = explicit.measured(params, data.x, data.y)
        shares = np.linalg.norm(params["W1"][:, 2:], axis=1) / np.linalg.norm(params["W1"], axis=1)
        counted = shares.max() if printed else float(np.abs(params["gamma"] * params["W2"]) @ shares)
        ratios.append(counted / math.sqrt(trace - 8) if loss < 1e-20 else math.inf)
    return Finding(max(ratios), max(ratios) < 1, "over √κ; a = 0.3 and 0.01")


# Nets that memorise.


@_misprint(
    "thm4.1-zero-labels", "Proof of Theorem 4.1", "With {} for yᵢ = 0 the memorising net attains the bound.",
    "trace = bound", printed="r = u = 1", corrected="a silent neuron",
)  # fmt: skip
def zero_labels(printed: bool) -> Finding:
    x, y = explicit.cube(4)[:6], np.array([1.0, 0, -2, 0, 0.5, 0])
    trace, _ = explicit.measured((as_printed.deep if printed else explicit.memorising)(x, y, 2), x, y)
    bound = bounds.deep_bias(x, y, 2)
    return Finding(trace, abs(trace - bound) < explicit.ROUNDING, f"bound {bound:.4f}; three labels of six are 0")


@_misprint(
    "thm4.1-kink", "Proof of Theorem 4.1, D = 3",
    "The loss is twice differentiable at the memorising net with {}, and its trace is the bound.",
    "second differences sum to the bound", printed="a diagonal W₂", corrected="W₂ negative off the diagonal",
)  # fmt: skip
def kink(printed: bool) -> Finding:
    """Second differences of L along every axis add up to the trace where L is twice differentiable."""
    x, y, step = explicit.cube(3)[[0, 3, 5, 6]], np.array([1.0, -1.0, 2.0, -0.5]), 1e-4
    params = (as_printed.deep if printed else explicit.memorising)(x, y, 3)
    total = 0.0
    for name, W in params.items():
        for at in np.ndindex(W.shape):
            for sign in (step, -step):
                moved = params | {name: W.copy()}
                moved[name][at] += sign
                a = np.maximum(np.maximum(x @ moved["W1"].T + moved["b1"][None], 0) @ moved["W2"].T, 0)
                total += float(np.mean((a @ moved["W3"] - y) ** 2)) / step**2
    bound = bounds.deep_bias(x, y, 3)
    # Within a region of activity the differences are exact, up to a rounding of ε/step² each.
    return Finding(total, abs(total - bound) < 1e-5, f"bound {bound:.4f}")


@_misprint(
    "thm5.1-switch", "Proof of Theorem 5.1",
    "The memorising Sim-LN net that changes over at ‖x′‖|y| = {} attains the bound.", "trace = bound",
    printed="ε", corrected="ε/2, and is silent for y = 0,",
)  # fmt: skip
def theorem_5_1_switch(printed: bool) -> Finding:
    x, y, eps = explicit.cube(3)[:4], np.array([1.5, 0.0, -0.5, 4.0]), 4.0
    params = as_printed.sim_ln(x, y, eps) if printed else explicit.memorising(x, y, eps=eps)
    trace, _ = explicit.measured(params, x, y, eps=eps)
    bound = bounds.sim_ln(x, y, eps)
    return Finding(trace, abs(trace - bound) < explicit.ROUNDING, f"bound {bound:.4f}; ε = 4, ‖x′‖|y| = 3, 0, 1, 8")


@_misprint(
    "prop4.2-width", "Proposition 4.2, width", "A net of width {} makes no error, however few the examples.", "error 0",
    printed="n", corrected="max(n, 4)",
)  # fmt: skip
def width(printed: bool) -> Finding:
    """A net of width 1, as wide as its one example, has outputs of one sign: it errs on at least half of the cube."""
    if not printed:
        error = explicit.error(generalising.xor(4), 4)
        return Finding(error, error == 0, "width 4")
    rng = np.random.default_rng(0)
    nets = [{"W1": rng.normal(size=(1, 4)), "b1": rng.normal(size=1), "W2": rng.normal(size=1)} for _ in range(200)]
    error = min(explicit.error(params, 4) for params in nets)
    return Finding(error, error == 0, "the least of 200 random nets of width 1")


# Proofs of the technical lemmas.


@_misprint(
    "lemmaA.4-norms", "Proof of Lemma A.4", "Up to logarithms, max ‖xᵢ‖² grows like {}.", "exponent within 0.15",
    printed="√d", corrected="d",
)  # fmt: skip
def largest_norm(printed: bool) -> Finding:
    """The exponent of d in max ‖xᵢ‖², 1,000 Gaussians, between d = 100 and 10,000."""
    rng = np.random.default_rng(0)
    few, many = (float((rng.normal(size=(1_000, d)) ** 2).sum(axis=1).max()) for d in (100, 10_000))
    exponent = math.log(many / few) / math.log(100)
    # Logarithms of d and n change the exponent by less than 0.1 here.
    holds = abs(exponent - (0.5 if printed else 1.0)) < 0.15
    return Finding(exponent, holds, "1,000 Gaussian vectors of R¹⁰⁰ and of R¹⁰⁰⁰⁰")


@_misprint(
    "lemmaA.19-moment", "Proof of Lemma A.19", "E‖x‖⁴ ≤ {}.", "bound ≥ E‖x‖⁴ on the cube and for Gaussians",
    printed="(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3", corrected="8 d(d + 2)(e^{σ²/2} − 3/2)",
)  # fmt: skip
def lemma_a19_moment(printed: bool) -> Finding:
    return above_moment((as_printed if printed else complexity).fourth_moment, lambda d: max(d**2, d * (d + 2)))


def above_moment(bound: Callable[[int, float], float], moment: Callable[[int], float]) -> Finding:
    """The bound for σ = 1 at d = 30 must be at least E‖x‖⁴, d from 1 to 300: d² on the cube, d(d + 2) for Gaussians."""
    holds = all(bound(d, 1.0) >= moment(d) for d in (1, 3, 30, 300))
    return Finding(bound(30, 1.0), holds, f"E‖x‖⁴ = {moment(30):g} at d = 30; d = 1, 3, 30 and 300")


@_misprint(
    "lemmaA.19-probability", "Lemma A.19", "Pr(‖x‖² > d/2) ≥ {}.", "bound ≤ the probability for Gaussians",
    printed="3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2))", corrected="d/(32(d + 2)(e^{σ²/2} − 3/2))",
)  # fmt: skip
def lemma_a19_probability(printed: bool) -> Finding:
    from scipy import stats

    bound = (as_printed if printed else complexity).long_probability
    return below_probability(bound, lambda d: stats.chi2.sf(d / 2, d))


def below_probability(bound: Callable[[int, float], float], probability: Callable[[int], float]) -> Finding:
    """The bound for σ = 1 at d = 30 must be positive and at most Pr(‖x‖² > d/2), d from 1 to 300."""
    holds = all(0 < bound(d, 1.0) <= probability(d) for d in (1, 3, 30, 300))
    return Finding(bound(30, 1.0), holds, f"Pr(‖x‖² > 15) = {probability(30):.4f}; Gaussians, d = 1, 3, 30 and 300")


@_misprint(
    "lemmaA.25-step", "Proof of Lemma A.25", "E‖Σ σᵢxᵢ‖ {} √(Σ‖xᵢ‖²).", "ratio as stated",
    printed="=", corrected="≤",
)  # fmt: skip
def lemma_a25_step(printed: bool) -> Finding:
    """E‖Σ σᵢxᵢ‖ over √(Σ‖xᵢ‖²), which is at most 1 by Jensen's inequality."""
    x = np.random.default_rng(0).normal(size=(8, 3))
    ratio = float(np.mean(np.linalg.norm(explicit.cube(8) @ x, axis=1)) / 8 / complexity.linear(x))
    holds = abs(ratio - 1) < explicit.ROUNDING if printed else ratio <= 1
    return Finding(ratio, holds, "eight Gaussian vectors, all 2⁸ signs")


@_misprint(
    "eq4-sign", "Eq. 4", "The lower bound is reached where W₂ ⊙ 1[W₁xᵢ > 0] = {} relu(W₁′xᵢ′)/‖xᵢ′‖.",
    "equal at a net that reaches it", printed="", corrected="sign(yᵢ)",
)  # fmt: skip
def eq4_sign(printed: bool) -> Finding:
    """The largest difference of the two sides at the memorising net, over all examples."""
    data = steppe.data.xor(8, 20, replace=False, key=0)
    params = explicit.memorising(data.x, data.y)
    a = np.maximum(data.x @ params["W1"].T + params["b1"][None], 0)
    right = a / math.sqrt(9) * (1.0 if printed else data.y[:, None])
    off = float(np.abs(params["W2"][None] * (a > 0) - right).max())
    return Finding(off, off < explicit.ROUNDING, "d = 8, 20 points; yᵢ = ±1")


@_misprint(
    "prop4.1-repeated", "Proposition 4.1", "With {} the memorising net errs on a share max(1 − n/2^d, 0) of the cube.",
    "share = 1 − n/2^d", printed="n samples", corrected="n different samples",
)  # fmt: skip
def repeated_samples(printed: bool) -> Finding:
    """Samples of P_xor repeat: 64 of them at d = 6 are some 40 different corners, and more than 2^d may miss some."""
    d, n = 6, 64
    data = steppe.data.xor(d, n, replace=True, key=0)
    distinct = np.unique(data.x, axis=0)
    error = explicit.error(explicit.memorising(distinct, distinct[:, 0] * distinct[:, 1]), d)
    expected = max(1 - (n if printed else len(distinct)) / 2**d, 0)
    return Finding(error, error == expected, f"{n} samples at d = {d}, {len(distinct)} different")


@_misprint(
    "lemmaA.5-half", "Proof of Lemma A.5", "For symmetric z, E 1[w·z > 0] = {}.", "equal on the cube for all w",
    printed="½", corrected="½ Pr(w·z ≠ 0)",
)  # fmt: skip
def half_of_the_inputs(printed: bool) -> Finding:
    """w = e₁ − e₂ is orthogonal to half of the corners; the least E 1[w·z > 0] over w with entries −1, 0 and 1."""
    x = explicit.cube(6)
    w = np.array([[1, -1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, -1, -1, 0, 0]], float)
    shares, stated = (w @ x.T > 0).mean(axis=1), 0.5 if printed else 0.5 * (w @ x.T != 0).mean(axis=1)
    return Finding(float(shares.min()), bool((shares == stated).all()), "e₁ − e₂ fires on ¼ of the corners")


@_misprint(
    "lemmaA.11-zero-row", "Lemmas A.5 and A.11", "tr ∇²L ≥ C₁(‖W₁‖² + d‖W₂‖²) for every interpolator{}.",
    "ratio ≥ 1/16, the proof's constant on the cube", printed="", corrected=" without a row W₁ⱼ = 0 with W₂ⱼ ≠ 0",
)  # fmt: skip
def zero_row(printed: bool) -> Finding:
    """ "For any w" in A.5 includes w = 0, where no example is active: a dead neuron with W₂ = 100 costs nothing."""
    data, params = _sample(), generalising.no_bias_xor(30)
    if printed:
        params = {"W1": np.pad(params["W1"], ((0, 1), (0, 0))), "W2": np.append(params["W2"], 100.0)}
    trace, loss = explicit.measured(params, data.x, data.y)
    ratio = trace / complexity.squared_norms(params)
    return Finding(ratio, ratio >= 1 / 16 and loss < explicit.ROUNDING, "d = 30, n = 64")


@_misprint(
    "lemmaA.11-factor", "Proof of Lemma A.11", "tr ∇²L = Σⱼ (W₂ⱼ² (2/n) Σᵢ 1[W₁ⱼxᵢ > 0]‖xᵢ‖² + {} Σᵢ relu(W₁ⱼxᵢ)²).",
    "equal to the trace", printed="", corrected="(2/n)",
)  # fmt: skip
def missing_factor(printed: bool) -> Finding:
    data, params = _sample(), generalising.no_bias_xor(30)
    h, n = data.x @ params["W1"].T, len(data.x)
    first = 2 / n * np.sum(data.x**2, axis=1) @ (h > 0) @ params["W2"] ** 2
    total = float(first + (1 if printed else 2 / n) * np.sum(np.maximum(h, 0) ** 2))
    trace, _ = explicit.measured(params, data.x, data.y)
    return Finding(total, abs(total / trace - 1) < explicit.ROUNDING, f"trace {trace:.4f}")


@_misprint(
    "lemmaA.6-covering", "Proof of Lemma A.6", "By lemma A.9 a 1/64-covering of the sphere has at most {} points.",
    "no smaller than the bound (2/ε + 1)^d of the lemma", printed="128^d", corrected="129^d",
)  # fmt: skip
def covering_number(printed: bool) -> Finding:
    base = 128 if printed else 129
    bound = 2 * 64 + 1
    return Finding(base, base >= bound, f"(2/ε + 1) = {bound} at ε = 1/64")


@_misprint(
    "lemmaA.6-distance", "Proof of Lemma A.6", "At a distance ‖w − w_k‖ ≤ {} the bound 1/8 at w_k leaves 1/16 at w.",
    "1/8 − 2 · 2 ‖w − w_k‖ ≥ 1/16", printed="1/32", corrected="1/64",
)  # fmt: skip
def covering_distance(printed: bool) -> Finding:
    """(1/n) Σ (u·xᵢ)² ≤ 2‖u‖² by lemma A.10, so that each of the two terms is at most √2 · √2 ‖w − w_k‖."""
    left = 1 / 8 - 2 * 2 / (32 if printed else 64)
    return Finding(left, left >= 1 / 16, "what is left of 1/8")
