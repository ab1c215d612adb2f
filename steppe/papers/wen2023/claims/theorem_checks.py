"""The theorems, propositions and lemmas of wen2023 measured: each check gives (number, whether it holds, detail)."""

from typing import Any

import numpy as np

from steppe import losses
from steppe.data import complete, parity, xor
from steppe.flattening import _memorising as memorising
from steppe.papers.wen2023 import cube as theory
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.papers.wen2023.theory.complexity import linear, no_bias, norm_constants, squared_norms
from steppe.papers.wen2023.theory.smoothing import target


def lemma_3_1() -> tuple[float, bool, str]:
    data = xor(10, 200, key=0)
    constants = norm_constants(data.x)
    ratios = []
    for epsilon in (0.1, 0.5, 0.9):
        for scale in (0.5, 1.0, 3.0):
            params = generalising.no_bias_xor(10, epsilon=epsilon, scale=scale)
            ratios.append(theory.measured(params, data.x, data.y)[0] / squared_norms(params))
    inside = constants.lower <= min(ratios) and max(ratios) <= constants.upper
    return min(ratios), inside, f"to {max(ratios):.3g}; constants {constants.lower:.3g} and {constants.upper:.3g}"


def theorem_3_2() -> tuple[float, bool, str]:
    data = complete(8, key=0)
    params = generalising.sim_bn_xor(8, scale=1e4)
    trace, loss = theory.measured(params, data.x, data.y)
    error = theory.error(params, 8, train=data.x)
    least = bounds.sim_bn_complete(data.x, data.y)
    # tr = 8 + 2V/s², V the spread of at most d: 2d/s² above the infimum.
    return trace, loss < 1e-20 and error == 0 and 0 <= trace - least < 2 * 8 / 1e8 + 1e-9, f"infimum {least:g}"


def memorises(depth: int) -> tuple[float, bool, str]:
    excess = theory.excess(lambda x, y: memorising.deep(x, y, depth), lambda x, y: bounds.deep_bias(x, y, depth))
    return excess, abs(excess) < theory.ROUNDING, f"depth {depth}, d = 30, n = 100"


def memorises_any_labels() -> tuple[float, bool, str]:
    rng = np.random.default_rng(0)
    worst = 0.0
    for depth in (2, 3):
        x = rng.normal(size=(12, 20))
        y = rng.normal(size=12) * (rng.random(12) < 0.7)
        trace, loss = theory.measured(memorising.deep(x, y, depth), x, y)
        worst = max(worst, abs(trace / bounds.deep_bias(x, y, depth) - 1), float(loss))
    return worst, worst < theory.ROUNDING, "Gaussian inputs, real labels, some of them 0, depths 2 and 3"


def cube_error(kind: str, n: int) -> tuple[float, bool, str]:
    d = 12
    data = xor(d, n, replace=False, key=2)
    rest: dict[str, Any] = {"eps": 1e-3} if kind == "sim-ln" else {}
    build = memorising.sim_ln(data.x, data.y, **rest) if rest else memorising.two_layer(data.x, data.y)
    error = theory.error(build, d, **rest)
    return error, error == 1 - n / 2**d, f"1 − n/2^d = {1 - n / 2**d:.6f} for d = {d}, n = {n}, all corners counted"


def generalises(kind: str) -> tuple[float, bool, str]:
    if kind == "sim-ln":
        excess = theory.excess(
            lambda x, y: generalising.sim_ln_xor(30, 1e-3), lambda x, y: bounds.sim_ln(x, y, 1e-3), eps=1e-3
        )
        error = theory.error(generalising.sim_ln_xor(12, 1e-3), 12, eps=1e-3)
    else:
        excess = theory.excess(lambda x, y: generalising.xor(30), bounds.two_layer_bias)
        error = theory.error(generalising.xor(12), 12)
    return error, error == 0 and abs(excess) < theory.ROUNDING, f"trace {excess:.1e} above its bound (d = 30)"


def lemma_4_1() -> tuple[float, bool, str]:
    data = xor(6, 10, replace=False, key=0)
    params = memorising.two_layer(data.x, data.y)
    dense, formula = theory.dense_trace(params, data.x, data.y), theory.measured(params, data.x, data.y)[0]
    return dense, abs(dense / formula - 1) < theory.ROUNDING, f"(2/n) Σ ‖∇f‖² = {formula:.6g}"


def theorem_5_1() -> tuple[float, bool, str]:
    excess = theory.excess(lambda x, y: memorising.sim_ln(x, y, 1e-3), lambda x, y: bounds.sim_ln(x, y, 1e-3), eps=1e-3)
    return 2 * (1 + excess), abs(excess) < theory.ROUNDING, "the least trace is 2 on P_xor"


def lemma_a12() -> tuple[float, bool, str]:
    """Random interpolating Sim-LN nets, made by fitting W₂, never go below the bound."""
    rng, least = np.random.default_rng(0), np.inf
    for eps in (1e-2, 1.0, 30.0):
        for _ in range(5):
            x, y = rng.normal(size=(6, 4)), rng.normal(size=6)
            params = {"W1": rng.normal(size=(40, 4)), "b1": rng.normal(size=40)}
            a = np.maximum(x @ params["W1"].T + params["b1"][None], 0)
            features = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), eps)
            params["W2"] = np.linalg.lstsq(features, y, rcond=None)[0]
            trace, _ = theory.measured(params, x, y, eps=eps)
            least = min(least, trace / bounds.sim_ln(x, y, eps))
    return float(least), least >= 1, "15 random interpolators, ε = 0.01, 1 and 30"


def proposition_a1() -> tuple[float, bool, str]:
    data = parity(14, 200, (2, 5, 11), key=0)
    params = generalising.parity(14, (2, 5, 11))
    trace, loss = theory.measured(params, data.x, data.y)
    everywhere = theory.cube(14)
    wrong = float(np.mean(everywhere[:, [2, 5, 11]].prod(axis=1) * theory.outputs(params, everywhere) <= 0))
    excess = trace / bounds.two_layer_bias(data.x, data.y) - 1
    return wrong, wrong == 0 and loss < 1e-20 and abs(excess) < theory.ROUNDING, f"3-parity, excess trace {excess:.1e}"


def circle_error(params: dict[str, Any]) -> float:
    angle = 2 * np.pi * np.arange(200_000) / 200_000
    v = np.column_stack([np.cos(angle), np.sin(angle)])
    neurons = zip(params["W1"][:, :2], params["b1"], params["W2"], strict=True)
    f = sum(c * np.maximum(v @ w + b, 0) for w, b, c in neurons)
    return float(np.mean((f - v[:, 0]) ** 2))


def proposition_a2() -> tuple[float, bool, str]:
    """Equal arcs, the label v₁: the exponent of the error in the length of the arcs."""
    errors, excess = [], 0.0
    for n in (20, 80):
        angle = 2 * np.pi * np.arange(n) / n
        x = np.column_stack([np.cos(angle), np.sin(angle)])
        params = generalising.circle(x, x[:, 0])
        errors.append(circle_error(params))
        trace, _ = theory.measured(params, x, x[:, 0])
        excess = max(excess, abs(trace / bounds.two_layer_bias(x, x[:, 0]) - 1))
    exponent = float(np.log(errors[0] / errors[1]) / np.log(4))
    # Needles on arcs of width δ² lose half of the digits.
    return exponent, exponent > 1.9 and excess < 1e-6, f"excess trace {excess:.0e}"


def theorem_a2() -> tuple[float, bool, str]:
    data, p = xor(30, 100, replace=False, key=0), 0.2
    params = memorising.two_layer(data.x, target(data.y, p))
    trace, _ = theory.measured(params, data.x, data.y, losses.logistic(smoothing=p))
    bound = bounds.logistic(bounds.two_layer_bias, data.x, data.y, smoothing=p)
    return trace, abs(trace / bound - 1) < theory.ROUNDING, f"bound ½p(1 − p) · 4√31 · ln 4 = {bound:.4f}"


def signs(n: int) -> Any:
    return 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0


def lemma_a24() -> tuple[float, bool, str]:
    worst = 0.0
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(8, 2))
        angle = np.linspace(0, 2 * np.pi, 2000)
        features = np.maximum(np.stack([np.cos(angle), np.sin(angle)], axis=1) @ x.T, 0)
        exact = np.mean(np.max(np.abs(signs(8) @ features.T), axis=1)) / 8
        worst = max(worst, exact / no_bias(1.0, float(np.linalg.norm(x, axis=1).max()), 8))
    return float(worst), worst <= 1, "complexity over its bound 2CB/√n, all 2⁸ signs, 5 sets"


def lemma_a25() -> tuple[float, bool, str]:
    ratios = []
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(8, 3))
        ratios.append(float(np.mean(np.linalg.norm(signs(8) @ x, axis=1)) / 8 / linear(x)))
    return max(ratios), max(ratios) <= 1, "E‖Σ σᵢxᵢ‖/n over √(Σ‖xᵢ‖²)/n, all 2⁸ signs, 5 sets"


def lemma_a26() -> tuple[float, bool, str]:
    x, y = np.random.default_rng(0).normal(size=(2, 100_000))
    left = np.abs(np.maximum(x, 0) ** 2 - np.maximum(y, 0) ** 2)
    worst = float((left / ((np.abs(x) + np.abs(y)) * np.abs(x - y))).max())
    return worst, worst <= 1 + 1e-12, "largest of 100,000 random ratios"


def lemma_a27() -> tuple[float, bool, str]:
    a, b, c = np.random.default_rng(0).normal(size=(3, 100_000))
    d = b + c - a
    r = [np.maximum(v, 0) for v in (a, b, c, d)]
    left, right = (r[0] + r[3] - r[1] - r[2]) ** 2, sum(v**2 for v in r)
    alone = sum((v > 0).astype(int) for v in (a, b, c, d)) <= 1
    equal = np.abs(left - right) <= 1e-12 * np.maximum(right, 1e-300)
    worst = float((left / np.where(right > 0, right, 1)).max())
    return worst, worst <= 1 + 1e-12 and bool((equal == alone).all()), "equality exactly where at most one is positive"
