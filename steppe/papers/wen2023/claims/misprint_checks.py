"""Statements of wen2023 as printed and as corrected: each check gives (number, whether it holds, detail)."""

from typing import Any

import numpy as np

from steppe import losses
from steppe.data import xor
from steppe.flattening import _memorising as memorising
from steppe.papers.wen2023 import cube as theory
from steppe.papers.wen2023.theory import bounds, generalising, moments
from steppe.papers.wen2023.theory import printed as as_printed
from steppe.papers.wen2023.theory.smoothing import curvature, target


def sample(d: int = 30, n: int = 64) -> Any:
    return xor(d, n, key=0)


def eq5(printed: bool) -> tuple[float, bool, str]:
    data = sample()
    trace, _ = theory.measured((as_printed if printed else generalising).xor(30), data.x, data.y)
    bound = bounds.two_layer_bias(data.x, data.y)
    return trace, abs(trace / bound - 1) < theory.ROUNDING, f"bound 4√31 = {bound:.4f}"


def a13(printed: bool) -> tuple[float, bool, str]:
    """The factor between the traces of the logistic and of the squared loss at the same outputs."""
    data, p = sample(n=30), 0.2
    params = memorising.two_layer(data.x, target(data.y, p))
    logistic = theory.measured(params, data.x, data.y, losses.logistic(smoothing=p))[0]
    square = theory.measured(params, data.x, target(data.y, p), losses.half_mse)[0]
    stated = as_printed.logistic_curvature(p) if printed else curvature(p)
    return stated, abs(logistic / square / stated - 1) < theory.ROUNDING, f"measured {logistic / square:.4f}"


def definition_a2(printed: bool) -> tuple[float, bool, str]:
    a, p = np.linspace(-5, 5, 100_001), 0.2
    (stated,) = target([1.0], p)
    found = float(a[np.argmin(as_printed.logistic_loss(a, 1, p if printed else 1 - p))])
    return found, abs(found - stated) < 2e-4, f"γ_p = {stated:.4f}"  # the grid's step is 1e-4


def a3(printed: bool) -> tuple[float, bool, str]:
    """Is 4 ‖γ ⊙ W₂‖₁, the infimum of the bound over rescalings, the infimum of the trace?"""
    x = theory.cube(4)
    params = generalising.sim_bn_xor(4, scale=1e4)
    trace, _ = theory.measured(params, x, x[:, 0] * x[:, 1])
    bound = (as_printed if printed else bounds).sim_bn_norms(params["gamma"], params["W2"])
    return bound, abs(trace - bound) < 1e-6, f"trace {trace:.6f}"  # the excess is 4/s² = 4e-8


def a1(printed: bool) -> tuple[float, bool, str]:
    x = theory.cube(4)
    f = theory.outputs((as_printed if printed else generalising).sim_bn_xor(4), x, train=x)
    off = float(np.abs(f - x[:, 0] * x[:, 1]).max())
    return off, off < theory.ROUNDING, "largest |f(x) − x₁x₂| on the cube"


def zero_one(printed: bool) -> tuple[float, bool, str]:
    """The error of a net that is always right."""
    x = theory.cube(6)
    y, f = x[:, 0] * x[:, 1], theory.outputs(generalising.xor(6), x)
    value = as_printed.zero_one(y, f) if printed else theory.error(generalising.xor(6), 6)
    return value, value == 0, "of the net of Proposition 4.2"


def zero_labels(printed: bool) -> tuple[float, bool, str]:
    x, y = theory.cube(4)[:6], np.array([1.0, 0, -2, 0, 0.5, 0])
    trace, _ = theory.measured((as_printed if printed else memorising).deep(x, y, 2), x, y)
    bound = bounds.deep_bias(x, y, 2)
    return trace, abs(trace - bound) < theory.ROUNDING, f"bound {bound:.4f}; three labels of six are 0"


def kink(printed: bool) -> tuple[float, bool, str]:
    """Second differences of L along every axis add up to the trace where L is twice differentiable."""
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


def theorem_5_1(printed: bool) -> tuple[float, bool, str]:
    x, y, eps = theory.cube(3)[:4], np.array([1.5, 0.0, -0.5, 4.0]), 4.0
    trace, _ = theory.measured((as_printed if printed else memorising).sim_ln(x, y, eps), x, y, eps=eps)
    bound = bounds.sim_ln(x, y, eps)
    return trace, abs(trace - bound) < theory.ROUNDING, f"bound {bound:.4f}; ε = 4, ‖x′‖|y| = 3, 0, 1, 8"


def eq16(printed: bool) -> tuple[float, bool, str]:
    data, support = sample(), theory.cube(2)
    build = as_printed.junta if printed else generalising.junta
    params = build(support, support.prod(axis=1), 30, np.sqrt(30))
    _, loss = theory.measured(params, data.x, data.y)
    return loss, loss < theory.ROUNDING, "train loss"


def eq17(printed: bool) -> tuple[float, bool, str]:
    angle = 2 * np.pi * np.arange(20) / 20
    x = np.column_stack([np.cos(angle), np.sin(angle)])
    params = (as_printed if printed else generalising).circle(x, x[:, 0])
    _, loss = theory.measured(params, x, x[:, 0])
    return loss, loss < theory.ROUNDING, "train loss on 20 points of the circle"


def a19(printed: bool) -> tuple[float, bool, str]:
    bound = (as_printed if printed else moments).fourth_moment(30, 1.0)
    return bound, bound >= 30**2, "E‖x‖⁴ = d² = 900 on the hypercube, where σ = 1"


def a19_probability(printed: bool) -> tuple[float, bool, str]:
    least = (as_printed if printed else moments).long_probability(30, 1.0)
    return least, 0 < least <= 1, "a lower bound of a probability, Pr(‖x‖² > d/2), d = 30"


def unseen(printed: bool) -> tuple[float, bool, str]:
    """1 − n/2^d is the error over the whole cube; on unseen points, as definition 4.2 has it, it is 1."""
    d, n = 10, 64
    data = xor(d, n, replace=False, key=3)
    x = theory.cube(d)
    seen = (x[:, None] == data.x[None]).all(axis=2).any(axis=1)
    wrong = x[:, 0] * x[:, 1] * theory.outputs(memorising.two_layer(data.x, data.y), x) <= 0
    value = float(np.mean(wrong[~seen] if printed else wrong))
    return value, value == 1 - n / 2**d, f"1 − n/2^d = {1 - n / 2**d:.4f}"
