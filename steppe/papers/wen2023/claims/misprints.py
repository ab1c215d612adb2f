"""Statements of wen2023 that are wrong as printed, each beside its correction."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steppe.papers.catalogue import Claim, Evidence, Finding

# printed → (number, whether the statement holds, detail)
Measure = Callable[[bool], tuple[float, bool, str]]


def _pair(
    id: str, source: str, statement: str, as_printed: str, corrected: str, measure: Measure
) -> tuple[Claim, Claim]:
    def check(printed: bool) -> Callable[[Evidence], Finding]:
        def run(evidence: Evidence) -> Finding:
            value, holds, detail = measure(printed)
            return Finding(value, bool(holds), detail)

        return run

    return (
        Claim(f"{id}-printed", source, statement, as_printed, check(True), misprint=True),
        Claim(f"{id}-corrected", f"{source}, corrected", statement, corrected, check(False)),
    )


def _xor(d: int = 30, n: int = 64) -> Any:
    from steppe.problems.data import xor

    return xor(d, n, key=0)


def _eq5(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import bounds, generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    data = _xor()
    trace, _ = theory.measured((as_printed if printed else generalising).xor(30), data.x, data.y)
    bound = bounds.two_layer_bias(data.x, data.y)
    return trace, abs(trace / bound - 1) < theory.ROUNDING, f"bound 4√31 = {bound:.4f}"


def _a13(printed: bool) -> tuple[float, bool, str]:
    """The factor between the traces of the logistic and of the squared loss at the same outputs."""
    from steppe import losses
    from steppe.constructions import memorising, smoothing
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    data, p = _xor(n=30), 0.2
    params = memorising.two_layer(data.x, smoothing.target(data.y, p))
    logistic = theory.measured(params, data.x, data.y, losses.logistic(smoothing=p))[0]
    square = theory.measured(params, data.x, smoothing.target(data.y, p), losses.half_mse)[0]
    stated = as_printed.logistic_curvature(p) if printed else smoothing.curvature(p)
    return stated, abs(logistic / square / stated - 1) < theory.ROUNDING, f"measured {logistic / square:.4f}"


def _definition_a2(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import printed as as_printed
    from steppe.constructions import smoothing

    a, p = np.linspace(-5, 5, 100_001), 0.2
    (stated,) = smoothing.target([1.0], p)
    found = float(a[np.argmin(as_printed.logistic_loss(a, 1, p if printed else 1 - p))])
    return found, abs(found - stated) < 2e-4, f"γ_p = {stated:.4f}"  # the grid's step is 1e-4


def _a3(printed: bool) -> tuple[float, bool, str]:
    """Is 4 ‖γ ⊙ W₂‖₁, the infimum of the bound over rescalings, the infimum of the trace?"""
    from steppe.constructions import bounds, generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x = theory.cube(4)
    params = generalising.sim_bn_xor(4, scale=1e4)
    trace, _ = theory.measured(params, x, x[:, 0] * x[:, 1])
    bound = (as_printed if printed else bounds).sim_bn_norms(params["gamma"], params["W2"])
    return bound, abs(trace - bound) < 1e-6, f"trace {trace:.6f}"  # the excess is 4/s² = 4e-8


def _a1(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x = theory.cube(4)
    f = theory.outputs((as_printed if printed else generalising).sim_bn_xor(4), x, train=x)
    off = float(np.abs(f - x[:, 0] * x[:, 1]).max())
    return off, off < theory.ROUNDING, "largest |f(x) − x₁x₂| on the cube"


def _zero_one(printed: bool) -> tuple[float, bool, str]:
    """The error of a net that is always right."""
    from steppe.constructions import generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x = theory.cube(6)
    y, f = x[:, 0] * x[:, 1], theory.outputs(generalising.xor(6), x)
    value = as_printed.zero_one(y, f) if printed else theory.error(generalising.xor(6), 6)
    return value, value == 0, "of the net of Proposition 4.2"


def _zero_labels(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import bounds, memorising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x, y = theory.cube(4)[:6], np.array([1.0, 0, -2, 0, 0.5, 0])
    trace, _ = theory.measured((as_printed if printed else memorising).deep(x, y, 2), x, y)
    bound = bounds.deep_bias(x, y, 2)
    return trace, abs(trace - bound) < theory.ROUNDING, f"bound {bound:.4f}; three labels of six are 0"


def _kink(printed: bool) -> tuple[float, bool, str]:
    """Second differences of L along every axis add up to the trace where L is twice differentiable."""
    from steppe.constructions import bounds, memorising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x, y, step = theory.cube(3)[[0, 3, 5, 6]], np.array([1.0, -1.0, 2.0, -0.5]), 1e-4
    params = (as_printed if printed else memorising).deep(x, y, 3)
    total = 0.0
    for name, W in params.items():
        for at in np.ndindex(W.shape):
            for sign in (step, -step):
                moved = params | {name: W.copy()}
                moved[name][at] += sign
                a = np.maximum(np.maximum(x @ moved["W1"].T + moved["b1"][None], 0) @ moved["W2"].T, 0)
                total += float(np.mean((a @ moved["W3"] - y) ** 2)) / step**2
    bound = bounds.deep_bias(x, y, 3)
    # Within a region of activity the differences are exact but for rounding, ε/step² each.
    return total, abs(total - bound) < 1e-5, f"bound {bound:.4f}"


def _theorem_5_1(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import bounds, memorising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    x, y, eps = theory.cube(3)[:4], np.array([1.5, 0.0, -0.5, 4.0]), 4.0
    trace, _ = theory.measured((as_printed if printed else memorising).sim_ln(x, y, eps), x, y, eps=eps)
    bound = bounds.sim_ln(x, y, eps)
    return trace, abs(trace - bound) < theory.ROUNDING, f"bound {bound:.4f}; ε = 4, ‖x′‖|y| = 3, 0, 1, 8"


def _eq16(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    data, support = _xor(), theory.cube(2)
    build = as_printed.junta if printed else generalising.junta
    params = build(support, support.prod(axis=1), 30, np.sqrt(30))
    _, loss = theory.measured(params, data.x, data.y)
    return loss, loss < theory.ROUNDING, "train loss"


def _eq17(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import generalising
    from steppe.constructions import printed as as_printed
    from steppe.papers.wen2023 import theory

    angle = 2 * np.pi * np.arange(20) / 20
    x = np.column_stack([np.cos(angle), np.sin(angle)])
    params = (as_printed if printed else generalising).circle(x, x[:, 0])
    _, loss = theory.measured(params, x, x[:, 0])
    return loss, loss < theory.ROUNDING, "train loss on 20 points of the circle"


def _a19(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import moments
    from steppe.constructions import printed as as_printed

    bound = (as_printed if printed else moments).fourth_moment(30, 1.0)
    return bound, bound >= 30**2, "E‖x‖⁴ = d² = 900 on the hypercube, where σ = 1"


def _a19_probability(printed: bool) -> tuple[float, bool, str]:
    from steppe.constructions import moments
    from steppe.constructions import printed as as_printed

    least = (as_printed if printed else moments).long_probability(30, 1.0)
    return least, 0 < least <= 1, "a lower bound of a probability, Pr(‖x‖² > d/2), d = 30"


def _unseen(printed: bool) -> tuple[float, bool, str]:
    """1 − n/2^d is the error over the whole cube; on unseen points, as definition 4.2 has it, it is 1."""
    from steppe.constructions import memorising
    from steppe.papers.wen2023 import theory
    from steppe.problems.data import xor

    d, n = 10, 64
    data = xor(d, n, replace=False, key=3)
    x = theory.cube(d)
    seen = (x[:, None] == data.x[None]).all(axis=2).any(axis=1)
    wrong = x[:, 0] * x[:, 1] * theory.outputs(memorising.two_layer(data.x, data.y), x) <= 0
    value = float(np.mean(wrong[~seen] if printed else wrong))
    return value, value == 1 - n / 2**d, f"1 − n/2^d = {1 - n / 2**d:.4f}"


MISPRINTS = (
    *_pair(
        "eq5",
        "Eq. 5",
        "The four-neuron net of Proposition 4.2 attains the bound (d = 30).",
        "trace = 4√31 with r = (d² + 1)^¼",
        "trace = 4√31 with r = (d + 1)^¼",
        _eq5,
    ),
    *_pair(
        "lemmaA.13",
        "Lemma A.13",
        "The logistic trace is that of ½‖·‖² times a factor of p (p = 0.2).",
        "1/(p(1 − p))",
        "p(1 − p)",
        _a13,
    ),
    *_pair(
        "defA.2",
        "Definition A.2",
        "The smoothed logistic loss is minimal at γ_p for the label 1 (p = 0.2).",
        "with p as printed",
        "with p and 1 − p exchanged",
        _definition_a2,
    ),
    *_pair(
        "lemmaA.3",
        "Lemma A.3",
        "The bound by ‖W₂‖² + ‖γ‖² is the infimum of the trace of Sim-BN.",
        "‖W₂‖² + ‖γ‖²",
        "2(‖W₂‖² + ‖γ‖²)",
        _a3,
    ),
    *_pair(
        "lemmaA.1-signs",
        "Proof of Lemma A.1",
        "The net of the proof computes x₁x₂.",
        "W₂ = ½ for all neurons",
        "W₂ with the signs (−1)^{i+j}",
        _a1,
    ),
    *_pair(
        "zero-one",
        "Section 2",
        "The zero-one loss of a net that is always right is 0.",
        "Pr(y f > 0)",
        "Pr(y f ≤ 0)",
        _zero_one,
    ),
    *_pair(
        "thm4.1-zero-labels",
        "Proof of Theorem 4.1",
        "The memorising net attains the bound where some labels are 0.",
        "r = u = 1 for yᵢ = 0",
        "a silent neuron for yᵢ = 0",
        _zero_labels,
    ),
    *_pair(
        "thm4.1-kink",
        "Proof of Theorem 4.1, D = 3",
        "The loss is twice differentiable at the memorising net, with trace the bound.",
        "W₂ diagonal: on a kink",
        "W₂ with negative entries off the diagonal",
        _kink,
    ),
    *_pair(
        "thm5.1-switch",
        "Proof of Theorem 5.1",
        "The memorising Sim-LN net attains the bound for any ε and labels.",
        "changes over at ‖x′‖|y| = ε",
        "changes over at ε/2, silent for yᵢ = 0",
        _theorem_5_1,
    ),
    *_pair("eq16", "Eq. 16", "The net of Proposition A.1 interpolates.", "with vⱼ in W₁", "with wⱼ in W₁", _eq16),
    *_pair("eq17", "Eq. 17", "The net of Proposition A.2 interpolates.", "width n, as printed", "width 3n", _eq17),
    *_pair(
        "lemmaA.19-moment",
        "Proof of Lemma A.19",
        "E‖x‖⁴ is at most the stated bound.",
        "(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3",
        "8 d(d + 2)(e^{σ²/2} − 3/2)",
        _a19,
    ),
    *_pair(
        "lemmaA.19-probability",
        "Lemma A.19",
        "The lower bound of Pr(‖x‖² > d/2) is a probability.",
        "3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2))",
        "d/(32(d + 2)(e^{σ²/2} − 3/2))",
        _a19_probability,
    ),
    *_pair(
        "prop4.1-unseen",
        "MATH.md, section 1",
        "The memorising net errs on 1 − n/2^d of …",
        "the unseen points",
        "the whole hypercube",
        _unseen,
    ),
)
