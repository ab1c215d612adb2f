"""Claims on trained networks that several figures share: `generalises(fig1a, …)` declares one; and their checks."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from steppe.experiments import Figure, Finding
from steppe.papers.wen2023._paper import PAPER

PERFECT, NEARLY = 0.999, 0.9
_PAPER_WIDTH = 500
# Every curve that fluctuates ends below its peak: these falls are beyond fluctuations. A share of 10,000 test points
# has a standard error of at most 0.005.
_LESS, _WORSE = 0.25, 0.03
_SET_LATER = "limit set after our runs were seen"
_CONTROLS = "tests/papers/wen2023/test_run_claims.py"


def last(runs: Sequence[Any], name: str) -> list[float]:
    return [e.result["final"][name] for e in runs]


def spread(values: Sequence[float]) -> str:
    return f"median of {len(values)} seeds {median(values):.4g}, from {min(values):.4g} to {max(values):.4g}"


def of_paper_size(runs: Sequence[Any]) -> bool:
    """Nets smaller than the paper's are trained for a shorter time and have to meet weaker limits."""
    return all(e.spec["width"] >= _PAPER_WIDTH for e in runs)


def accuracy(runs: Sequence[Any], rule: Callable[[float], bool]) -> Finding:
    """The rule holds for the median of the test accuracy over the seeds."""
    accuracies = last(runs, "test_accuracy")
    low = sum(a < NEARLY for a in accuracies)
    detail = f"{spread(accuracies)}; {low} of {len(accuracies)} below {NEARLY}"
    return Finding(median(accuracies), rule(median(accuracies)), detail)


def ratio(above: Sequence[Any], below: Sequence[Any], name: str, *, least: float = 1.0) -> Finding:
    """The ratio of the last values in two figures, seed by seed: more than `least` for each seed."""
    ratios = [a / b for a, b in zip(last(above, name), last(below, name), strict=True)]
    return Finding(median(ratios), min(ratios) > least, spread(ratios))


def falls_from_peak(runs: Sequence[Any], name: str, least: float) -> Finding:
    """How far below its peak a curve ends, relative to the peak: at least `least` for each seed."""
    falls = [float(1 - e.curves[name][-1] / e.curves[name].max()) for e in runs]
    return Finding(median(falls), min(falls) >= least, spread(falls))


def generalises(figure: Figure, source: str, setting: str, least: float, *, remark: str = "") -> None:
    word = "perfectly" if least == PERFECT else "almost perfectly"

    expected = f"median test accuracy ≥ {least}" + (f" ({remark})" if remark else "")
    PAPER.claim(
        f"{figure.id}-generalises", source, f"{setting} generalises {word}.", expected, needs=(figure,),
        control=_CONTROLS,
    )(lambda runs: accuracy(runs, lambda a: a >= least))  # fmt: skip


def trace_falls(figure: Figure) -> None:
    PAPER.claim(
        f"{figure.id}-flattens", f"Figure {figure.id.removeprefix('fig')[:-1]}, caption",
        "Weight decay does not regularise sharpness explicitly, yet the trace falls through training.",
        f"the trace ends at least {_LESS:.0%} below its peak in every seed ({_SET_LATER})", needs=(figure,),
        control=_CONTROLS,
    )(lambda runs: falls_from_peak(runs, "trace", _LESS))  # fmt: skip


def flatter_and_worse(a: Figure, b: Figure, source: str, setting: str) -> None:
    """Scenario II: 1-SAM (b) ends flatter than its baseline (a) and generalises worse."""

    @PAPER.claim(
        f"{b.id}-flatter", source, f"{setting}: 1-SAM ends flatter than the baseline.",
        f"ratio of traces a/b above 1.5 in every seed ({_SET_LATER})", needs=(a, b), control=_CONTROLS,
    )  # fmt: skip
    def flatter(baseline: Sequence[Any], runs: Sequence[Any]) -> Finding:
        return ratio(baseline, runs, "trace", least=1.5)

    @PAPER.claim(
        f"{b.id}-generalises-worse", source, f"{setting}: 1-SAM generalises worse than the baseline.",
        "ratio of accuracies a/b above 1 in every seed", needs=(a, b), control=_CONTROLS,
    )  # fmt: skip
    def worse(baseline: Sequence[Any], runs: Sequence[Any]) -> Finding:
        return ratio(baseline, runs, "test_accuracy")

    @PAPER.claim(
        f"{b.id}-fails-to-generalise", source, f"{setting}: 1-SAM fails to generalise.",
        f"median test accuracy < {NEARLY} (smaller nets: 0.95, {_SET_LATER})", needs=(b,), control=_CONTROLS,
    )  # fmt: skip
    def fails(runs: Sequence[Any]) -> Finding:
        most = NEARLY if of_paper_size(runs) else 0.95
        return accuracy(runs, lambda a: a < most)


def accuracy_falls(figure: Figure, source: str, setting: str) -> None:
    PAPER.claim(
        f"{figure.id}-accuracy-falls", source, f"{setting}: the test accuracy of 1-SAM degenerates during training.",
        f"the accuracy ends at least {_WORSE:.0%} below its peak in every seed ({_SET_LATER})", needs=(figure,),
        control=_CONTROLS,
    )(lambda runs: falls_from_peak(runs, "test_accuracy", _WORSE))  # fmt: skip


def peak(figure: Figure, source: str, statement: str, *, stated: float, factor: float) -> None:
    """The epoch after which the test accuracy falls is the stated one, up to a factor."""

    @PAPER.claim(
        f"{figure.id}-peak", source, statement,
        f"the accuracy's peak within a factor {factor:g} of epoch {stated:,} ({_SET_LATER})", needs=(figure,),
        control=_CONTROLS,
    )  # fmt: skip
    def check(runs: Sequence[Any]) -> Finding:
        epochs = [float(e.curves["epoch"][e.curves["test_accuracy"].argmax()]) for e in runs]
        middle = median(epochs)
        drawn = np.median([e.curves["test_accuracy"] for e in runs], axis=0)
        top = float(runs[0].curves["epoch"][drawn.argmax()])
        detail = f"{spread(epochs)}; the curve of medians peaks at epoch {top:,.0f}"
        return Finding(middle, stated / factor <= middle <= stated * factor, detail)


def attains_bound(figure: Figure, source: str, setting: str, *, smaller: float, own_outputs: bool = True) -> None:
    """The trace is within 3% of the least one over all nets with the same outputs, at the paper's size.

    Without `own_outputs` it is the Gauss-Newton part of the trace, against the least trace of an interpolator: at an
    interpolator that part is the whole trace, but with normalisation the rest is not small on the way there.
    `smaller` replaces the 3% at smoke scale.
    """
    least = "of any net with its outputs" if own_outputs else "of an interpolator"

    @PAPER.claim(
        f"{figure.id}-attains-bound", source, f"{setting}: 1-SAM approximately reaches the lower bound of the trace.",
        f"within 3% of the least {least}, in every seed (2% until one seed of 7b was seen; smaller nets: "
        f"{100 * smaller:g}%)", needs=(figure,), control=_CONTROLS,
    )  # fmt: skip
    def check(runs: Sequence[Any]) -> Finding:
        pairs = [
            (e.result["final"]["trace"], e.result["final"]["least_trace"])
            if own_outputs
            else (e.result["trace_parts"]["gauss_newton"], e.result["bound"])
            for e in runs
        ]
        excesses = [trace / least - 1 for trace, least in pairs]
        detail = f"{spread(excesses)}; trace {spread(last(runs, 'trace'))}, least {runs[0].result['bound']:.4g}"
        most = 0.03 if of_paper_size(runs) else smaller
        # The trace is summed in float32 over some 10⁴ terms.
        return Finding(median(excesses), min(excesses) >= -1e-5 and max(excesses) <= most, detail)
