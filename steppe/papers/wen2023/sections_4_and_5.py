"""Sections 4 and 5 of wen2023 and their appendices: with bias, or simplified LayerNorm, some flattest nets memorise and
others generalise. The nets are explicit; nothing is trained."""

from typing import Any

import numpy as np

import steppe
from steppe.experiments import Finding
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.theory import bounds, generalising, printed

# Section 4: bias.


_NOT_MEMORISING = "tests/papers/wen2023/test_controls.py::test_generalising_nets_do_not_memorise"


def memorises_at_the_least(build: Any, bound: Any, **rest: Any) -> Finding:
    """The excess over the bound of a net that must also be a memorising solution (definition 4.2)."""
    data = steppe.data.xor(30, 100, replace=False, key=0)
    excess = explicit.excess(build, bound, **rest)
    one_each = explicit.memorises(build(data.x, data.y), data.x, data.y, **rest)
    detail = f"d = 30, n = 100; {'one' if one_each else 'not one'} active neuron for each point in each layer"
    return Finding(excess, one_each and abs(excess) < explicit.ROUNDING, detail)


def _claim_memorises(id: str, source: str, statement: str, depth: int) -> None:
    @PAPER.claim(
        id, f"{source}, Definition 4.2", statement, "excess over the bound 0, one active neuron for each point",
        control=_NOT_MEMORISING,
    )  # fmt: skip
    def check() -> Finding:
        return memorises_at_the_least(
            lambda x, y: explicit.memorising(x, y, depth), lambda x, y: bounds.deep_bias(x, y, depth)
        )


_claim_memorises(
    "thm4.1-memorising", "Theorem 4.1", "The memorising net interpolates and has the least trace, 4√31 = 22.271.", 2
)
for _depth, _word in ((3, "three"), (5, "five")):
    _statement = f"The memorising net with {_word} layers interpolates and has the least trace."
    _claim_memorises(f"thm4.1-depth{_depth}", f"Theorem 4.1, D = {_depth}", _statement, _depth)


@PAPER.claim(
    "thm4.1-labels", "Theorem 4.1, Definition 4.2", "A memorising net is flattest for any extreme points and labels.",
    "excess over the bound 0, one active neuron for each point with a label ≠ 0", control=_NOT_MEMORISING,
)  # fmt: skip
def memorises_any_labels() -> Finding:
    """Points with label 0 have no active neuron: one would cost more than the bound allows."""
    rng = np.random.default_rng(0)
    worst, one_each = 0.0, True
    for depth in (2, 3):
        x = rng.normal(size=(12, 20))
        y = rng.normal(size=12) * (rng.random(12) < 0.7)
        params = explicit.memorising(x, y, depth)
        trace, loss = explicit.measured(params, x, y)
        worst = max(worst, abs(trace / bounds.deep_bias(x, y, depth) - 1), float(loss))
        one_each &= explicit.memorises(params, x[y != 0], y[y != 0])
    detail = "Gaussian inputs, real labels, some of them 0, depths 2 and 3"
    return Finding(worst, one_each and worst < explicit.ROUNDING, detail)


@PAPER.claim(
    "lemma4.1-trace", "Lemma 4.1", "At an interpolator tr ∇²L = (2/n) Σ ‖∇f(xᵢ)‖².", "equal to the dense Hessian's"
)  # fmt: skip
def lemma_4_1() -> Finding:
    data = steppe.data.xor(6, 10, replace=False, key=0)
    params = explicit.memorising(data.x, data.y)
    dense, formula = explicit.dense_trace(params, data.x, data.y), explicit.measured(params, data.x, data.y)[0]
    return Finding(dense, abs(dense / formula - 1) < explicit.ROUNDING, f"(2/n) Σ ‖∇f‖² = {formula:.6g}")


def _claim_error(id: str, source: str, statement: str, n: int, **rest: Any) -> None:
    """The error of a memorising net over all corners of the cube."""

    @PAPER.claim(id, source, statement, "error = 1 − n/2^d")
    def check() -> Finding:
        d = 12
        data = steppe.data.xor(d, n, replace=False, key=2)
        error = explicit.error(explicit.memorising(data.x, data.y, **rest), d, **rest)
        expected = 1 - n / 2**d
        detail = f"1 − n/2^d = {expected:.6f} for d = {d}, n = {n}, all corners counted"
        return Finding(error, error == expected, detail)


_claim_error("prop4.1-error", "Proposition 4.1", "The memorising net errs on a share 1 − n/2^d of the hypercube.", 100)


@PAPER.claim(
    "prop4.2-generalising", "Proposition 4.2, Eq. 5 corrected", "With bias another flattest net makes no error at all.",
    "error 0 at the least trace",
)  # fmt: skip
def proposition_4_2() -> Finding:
    excess = explicit.excess(lambda x, y: generalising.xor(30), bounds.two_layer_bias)
    error = explicit.error(generalising.xor(12), 12)
    holds = error == 0 and abs(excess) < explicit.ROUNDING
    return Finding(error, holds, f"trace {excess:.1e} above its bound (d = 30)")


# Section 5: simplified LayerNorm.


@PAPER.claim(
    "thm5.1-memorising", "Theorem 5.1, Definition 4.2",
    "With simplified LayerNorm a memorising net has the least trace.",
    "trace = 2, one active neuron for each point", control=_NOT_MEMORISING,
)  # fmt: skip
def theorem_5_1() -> Finding:
    found = memorises_at_the_least(
        lambda x, y: explicit.memorising(x, y, eps=1e-3), lambda x, y: bounds.sim_ln(x, y, 1e-3), eps=1e-3
    )
    return Finding(2 * (1 + found.measured), found.holds, f"the least trace is 2 on P_xor; {found.detail}")


_claim_error(
    "prop5.1-error", "Proposition 5.1",
    "With LayerNorm too, the memorising net errs on a share 1 − n/2^d of the hypercube.", 77, eps=1e-3,
)  # fmt: skip


@PAPER.claim(
    "prop5.2-generalising", "Proposition 5.2", "With LayerNorm another net of the least trace makes no error.",
    "error 0 at the least trace",
)  # fmt: skip
def proposition_5_2() -> Finding:
    excess = explicit.excess(
        lambda x, y: generalising.sim_ln_xor(30, 1e-3), lambda x, y: bounds.sim_ln(x, y, 1e-3), eps=1e-3
    )
    error = explicit.error(generalising.sim_ln_xor(12, 1e-3), 12, eps=1e-3)
    holds = error == 0 and abs(excess) < explicit.ROUNDING
    return Finding(error, holds, f"trace {excess:.1e} above its bound (d = 30)")


@PAPER.claim(
    "lemmaA.12-bound", "Lemma A.12",
    "No interpolating 2-MLP-Sim-LN is below (2/n) Σ min(1, (2/ε)‖x′ᵢ‖|yᵢ|).", "ratio ≥ 1",
)  # fmt: skip
def lemma_a12() -> Finding:
    """Random Sim-LN nets that interpolate because W₂ is fitted."""
    rng, least = np.random.default_rng(0), np.inf
    for eps in (1e-2, 1.0, 30.0):
        for _ in range(5):
            x, y = rng.normal(size=(6, 4)), rng.normal(size=6)
            params = {"W1": rng.normal(size=(40, 4)), "b1": rng.normal(size=40)}
            a = np.maximum(x @ params["W1"].T + params["b1"][None], 0)
            features = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), eps)
            params["W2"] = np.linalg.lstsq(features, y, rcond=None)[0]
            trace, _ = explicit.measured(params, x, y, eps=eps)
            least = min(least, trace / bounds.sim_ln(x, y, eps))
    return Finding(least, least >= 1, "15 random interpolators, ε = 0.01, 1 and 30")


# Appendix A: labels of a few coordinates, the circle, the logistic loss.


@PAPER.claim(
    "propA.1-junta", "Proposition A.1", "A label of a few coordinates has a flattest net that makes no error.",
    "error 0 at the least trace (3-parity, d = 14)",
)  # fmt: skip
def proposition_a1() -> Finding:
    data = steppe.data.parity(14, 200, (2, 5, 11), key=0)
    params = generalising.parity(14, (2, 5, 11))
    trace, loss = explicit.measured(params, data.x, data.y)
    everywhere = explicit.cube(14)
    wrong = float(np.mean(everywhere[:, [2, 5, 11]].prod(axis=1) * explicit.outputs(params, everywhere) <= 0))
    excess = trace / bounds.two_layer_bias(data.x, data.y) - 1
    holds = wrong == 0 and loss < 1e-20 and abs(excess) < explicit.ROUNDING
    return Finding(wrong, holds, f"3-parity, excess trace {excess:.1e}")


@PAPER.claim(
    "propA.2-circle", "Proposition A.2, at width 3n",
    "On the circle the error of a flattest net is of the order of the square of the largest arc.",
    "exponent > 1.9 at the least trace",
)  # fmt: skip
def proposition_a2() -> Finding:
    """Equal arcs, the label v₁: the exponent of the error in the length of the arcs."""
    errors, excess = [], 0.0
    for n in (20, 80):
        x = explicit.circle(n)
        params = generalising.circle(x, x[:, 0])
        errors.append(_error_on_circle(params))
        trace, _ = explicit.measured(params, x, x[:, 0])
        excess = max(excess, abs(trace / bounds.two_layer_bias(x, x[:, 0]) - 1))
    exponent = float(np.log(errors[0] / errors[1]) / np.log(4))
    # Needles on arcs of width δ² lose half of the digits.
    return Finding(exponent, exponent > 1.9 and excess < 1e-6, f"excess trace {excess:.0e}")


def _exponent_on_circle(build: Any) -> float:
    """The exponent of the error in the length of equal arcs, for the label v₁ + 2."""
    errors = []
    for n in (20, 80):
        x = explicit.circle(n)
        params = build(x, x[:, 0] + 2)
        v = explicit.circle(40_000)
        f = np.maximum(v @ params["W1"].T + params["b1"][None], 0) @ params["W2"]
        errors.append(float(np.mean((f - v[:, 0] - 2) ** 2)))
    return float(np.log(errors[0] / errors[1]) / np.log(4))


@PAPER.misprint(
    "propA.2-width", "Proposition A.2",
    printed=("The flattest net of the proof, of width n, has an error of the order of the square of the arcs.",
             "exponent > 1.9"),
    corrected=("A flattest net of width 3n has an error of the order of the square of the arcs.", "exponent > 1.9"),
)  # fmt: skip
def width_on_the_circle(as_printed: bool) -> Finding:
    """Width n is Eq. 17 with the bias that interpolates (`printed.circle_arcs`): f is 0 between any two points.

    More is true. In a flattest net a neuron has one height at all points that it fires on. On a circle these are one
    point or two neighbours, so that for labels in general position all n neurons fire, and f is concave between kinks.
    """
    exponent = _exponent_on_circle(printed.circle_arcs if as_printed else generalising.circle)
    return Finding(exponent, exponent > 1.9, "equal arcs, n = 20 and 80, the label v₁ + 2")


def _error_on_circle(params: dict[str, Any]) -> float:
    v = explicit.circle(200_000)
    neurons = zip(params["W1"][:, :2], params["b1"], params["W2"], strict=True)
    f = sum(c * np.maximum(v @ w + b, 0) for w, b, c in neurons)
    return float(np.mean((f - v[:, 0]) ** 2))


@PAPER.claim(
    "thmA.2-logistic", "Theorem A.2, Lemma A.13 corrected",
    "With the logistic loss and labels y the flattest nets are those of the squared loss with labels γ_p y.",
    "trace = bound",
)  # fmt: skip
def theorem_a2() -> Finding:
    data, p = steppe.data.xor(30, 100, replace=False, key=0), 0.2
    params = explicit.memorising(data.x, bounds.logistic_target(data.y, p))
    trace, _ = explicit.measured(params, data.x, data.y, steppe.losses.logistic(smoothing=p))
    bound = bounds.logistic(bounds.two_layer_bias, data.x, data.y, smoothing=p)
    detail = f"bound ½p(1 − p) · 4√31 · ln 4 = {bound:.4f}"
    return Finding(trace, abs(trace / bound - 1) < explicit.ROUNDING, detail)
