"""The claims of wen2023 about its figures 1 and 4, Eq. 3 and Eq. 5, measured."""

from collections.abc import Callable, Sequence
from typing import Any

from steppe.papers.catalogue import Claim, Evidence, Finding
from steppe.papers.wen2023.figures import lower_bound

PERFECT = 0.999


def _last(entries: Sequence[Any], name: str) -> list[float]:
    return [e.result["final"][name] for e in entries]


def _median(values: Sequence[float]) -> float:
    ordered, k = sorted(values), len(values)
    return (ordered[(k - 1) // 2] + ordered[k // 2]) / 2


def _spread(values: Sequence[float]) -> str:
    return f"median of {len(values)} seeds {_median(values):.4g}, from {min(values):.4g} to {max(values):.4g}"


def _accuracy(figure: str, rule: Callable[[float], bool]) -> Callable[[Evidence], Finding]:
    def check(evidence: Evidence) -> Finding:
        accuracies = _last(evidence[figure], "test_accuracy")
        return Finding(_median(accuracies), rule(_median(accuracies)), _spread(accuracies))

    return check


def _falls_from_peak(figure: str, name: str, least: float) -> Callable[[Evidence], Finding]:
    """How far below its own peak a curve ends, relative to the peak; it must fall in every seed."""

    def check(evidence: Evidence) -> Finding:
        falls = []
        for entry in evidence[figure]:
            curve = entry.curves[name]
            falls.append(float(1 - curve[-1] / curve.max()))
        return Finding(_median(falls), min(falls) > least, _spread(falls))

    return check


def _attains_bound(evidence: Evidence) -> Finding:
    """The trace against the least one of a net with the same outputs, so that a small residual does not matter."""
    excesses = [e.result["final"]["trace"] / e.result["final"]["least_trace"] - 1 for e in evidence["fig4b"]]
    traces = _last(evidence["fig4b"], "trace")
    detail = (
        f"{_spread(excesses)}; trace {_spread(traces)}, bound at interpolation {lower_bound(evidence['fig4b']):.3f}"
    )
    return Finding(_median(excesses), min(excesses) >= 0 and max(excesses) <= 0.01, detail)


def _never_below_bound(evidence: Evidence) -> Finding:
    """The smallest ratio of trace to its bound along all runs with bias."""
    ratios = [
        float((e.curves["trace"] / e.curves["least_trace"]).min()) for id in ("fig4a", "fig4b") for e in evidence[id]
    ]
    # The trace is summed in float32 over some 10⁴ terms.
    return Finding(min(ratios), min(ratios) >= 1 - 1e-5, f"{len(ratios)} runs, every record")


def _ratio(name: str, above: str, below: str) -> Callable[[Evidence], Finding]:
    """The ratio of the last values in two figures, seed by seed; above 1 in every one."""

    def check(evidence: Evidence) -> Finding:
        pairs = zip(_last(evidence[above], name), _last(evidence[below], name), strict=True)
        ratios = [a / b for a, b in pairs]
        return Finding(_median(ratios), min(ratios) > 1, _spread(ratios))

    return check


def _generalising_trace(printed: bool) -> Callable[[Evidence], Finding]:
    def check(evidence: Evidence) -> Finding:
        from steppe.papers.wen2023.theory import four_neuron_trace

        trace, bound = four_neuron_trace(d=30, printed=printed)
        holds = abs(trace / bound - 1) < 1e-12  # both are sums of a few float64 terms
        return Finding(trace, holds, f"bound 4√31 = {bound:.4f}")

    return check


def _memorising(evidence: Evidence) -> Finding:
    from steppe.papers.wen2023.theory import memorising_trace

    trace, bound, loss = memorising_trace(d=30, n=100)
    return Finding(trace, abs(trace / bound - 1) < 1e-12 and loss < 1e-24, f"bound {bound:.4f}, train loss {loss:.1e}")


CLAIMS = (
    Claim(
        "fig1a-generalises", "Figure 1a", "Without bias, GD with weight decay reaches perfect generalisation.",
        f"test accuracy ≥ {PERFECT}", _accuracy("fig1a", lambda a: a >= PERFECT), ("fig1a",),
    ),
    Claim(
        "fig1b-generalises", "Figure 1b, Theorem 3.1", "Without bias, 1-SAM reaches perfect generalisation.",
        f"test accuracy ≥ {PERFECT}", _accuracy("fig1b", lambda a: a >= PERFECT), ("fig1b",),
    ),
    Claim(
        "fig1a-flattens", "Figure 1, caption",
        "Weight decay does not regularise sharpness explicitly, yet the trace falls through training.",
        "the trace ends below its peak in every seed", _falls_from_peak("fig1a", "trace", 0.0), ("fig1a",),
    ),
    Claim(
        "fig1-sam-flatter", "Figure 1", "1-SAM ends flatter than gradient descent with weight decay (no bias).",
        "ratio of traces 1a/1b above 1 in every seed", _ratio("trace", "fig1a", "fig1b"), ("fig1a", "fig1b"),
    ),
    Claim(
        "eq3-bound", "Eq. 3", "tr ∇²L ≥ (4/n) Σ ‖x′ᵢ‖ |f(xᵢ)| for every 2-MLP-Bias.",
        "ratio of trace to bound ≥ 1 at every record", _never_below_bound, ("fig4a", "fig4b"),
    ),
    Claim(
        "fig4b-attains-bound", "Figure 4b, Theorem 4.1", "With bias, 1-SAM reaches the least trace there is.",
        "trace within 1% of the bound in every seed", _attains_bound, ("fig4b",),
    ),
    Claim(
        "fig4b-accuracy-falls", "Figure 4b, caption", "Meanwhile the test accuracy of 1-SAM with bias degenerates.",
        "ends below its peak in every seed", _falls_from_peak("fig4b", "test_accuracy", 0.0), ("fig4b",),
    ),
    Claim(
        "fig4b-fails-to-generalise", "Figure 4b, caption", "With bias, 1-SAM fails to generalise.",
        f"test accuracy < {PERFECT}", _accuracy("fig4b", lambda a: a < PERFECT), ("fig4b",),
    ),
    Claim(
        "fig4-baseline-sharper", "Figure 4", "GD with weight decay ends sharper than 1-SAM (bias).",
        "ratio of traces 4a/4b above 1 in every seed", _ratio("trace", "fig4a", "fig4b"), ("fig4a", "fig4b"),
    ),
    Claim(
        "fig4-baseline-generalises-better", "Figure 4", "… and generalises better.",
        "ratio of accuracies 4a/4b above 1 in every seed", _ratio("test_accuracy", "fig4a", "fig4b"),
        ("fig4a", "fig4b"),
    ),
    Claim(
        "fig1b-fig4b-architecture", "Figure 4, caption",
        "The bias alone makes the difference: the same 1-SAM generalises better without it.",
        "ratio of accuracies 1b/4b above 1 in every seed", _ratio("test_accuracy", "fig1b", "fig4b"),
        ("fig1b", "fig4b"),
    ),
    Claim(
        "thm4.1-memorising", "Theorem 4.1",
        "The memorising net interpolates and has the least trace (d = 30, n = 100).",
        "trace = 4√31 = 22.271", _memorising,
    ),
    Claim(
        "eq5-printed", "Eq. 5", "The four-neuron net with r = (d² + 1)^¼ attains the bound (d = 30).",
        "trace = 4√31 = 22.271", _generalising_trace(printed=True), misprint=True,
    ),
    Claim(
        "eq5-corrected", "Eq. 5, corrected", "The four-neuron net with r = (d + 1)^¼ attains the bound (d = 30).",
        "trace = 4√31 = 22.271", _generalising_trace(printed=False),
    ),
)  # fmt: skip
