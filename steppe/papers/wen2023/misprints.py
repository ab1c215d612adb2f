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
    "At the infimum of the trace of Sim-BN, ‖W₁ⱼ[3:]‖ = 0 for every neuron j{}.", "largest ‖W₁ⱼ[3:]‖/‖W₁ⱼ‖ = 0",
    printed="", corrected=" with γⱼW₂ⱼ ≠ 0",
)  # fmt: skip
def silent_neuron(printed: bool) -> Finding:
    """A fifth neuron with γ = W₂ = 0 that looks at x₃: the largest ‖W₁ⱼ[3:]‖/‖W₁ⱼ‖ of a net at the infimum."""
    d = 6
    data, params = steppe.data.complete(d, key=0), generalising.sim_bn_xor(d, scale=1e4)
    params["W1"] = np.concatenate([params["W1"], np.eye(1, d, 2)])
    params |= {name: np.append(params[name], 0.0) for name in ("b1", "gamma", "W2")}
    trace, loss = explicit.measured(params, data.x, data.y)
    counted = params["W1"] if printed else params["W1"][params["gamma"] * params["W2"] != 0]
    share = float((np.linalg.norm(counted[:, 2:], axis=1) / np.linalg.norm(counted, axis=1)).max())
    return Finding(share, share == 0 and loss < 1e-20, f"trace {trace:.7f}, infimum 8")


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
    "lemmaA.19-moment", "Proof of Lemma A.19", "E‖x‖⁴ ≤ {}.", "bound ≥ d² on the hypercube",
    printed="(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3", corrected="8 d(d + 2)(e^{σ²/2} − 3/2)",
)  # fmt: skip
def lemma_a19_moment(printed: bool) -> Finding:
    bound = (as_printed if printed else complexity).fourth_moment(30, 1.0)
    return Finding(bound, bound >= 30**2, "E‖x‖⁴ = d² = 900 on the hypercube, where σ = 1")


@_misprint(
    "lemmaA.19-probability", "Lemma A.19", "Pr(‖x‖² > d/2) ≥ {}.", "bound ≤ 1",
    printed="3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2))", corrected="d/(32(d + 2)(e^{σ²/2} − 3/2))",
)  # fmt: skip
def lemma_a19_probability(printed: bool) -> Finding:
    least = (as_printed if printed else complexity).long_probability(30, 1.0)
    return Finding(least, 0 < least <= 1, "a lower bound of a probability, Pr(‖x‖² > d/2), d = 30")


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
