"""Checks on finished runs that many claims share, and checks that need none."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from steppe.experiments._paper import Evidence, Finding

Check = Callable[[Evidence], Finding]
PERFECT, NEARLY = 0.999, 0.9
_PAPER_WIDTH = 500


def computed(module: str, name: str, *arguments: Any) -> Check:
    """A function of a module beside this one that gives (number, whether it holds, detail)."""

    def check(evidence: Evidence) -> Finding:
        # Here and not above: a list of claims imports no numpy.
        function = getattr(importlib.import_module(f"steppe.papers.wen2023.claims.{module}"), name)
        value, holds, detail = function(*arguments)
        return Finding(float(value), bool(holds), detail)

    return check


def last(entries: Sequence[Any], name: str) -> list[float]:
    return [e.result["final"][name] for e in entries]


def median(values: Sequence[float]) -> float:
    ordered, k = sorted(values), len(values)
    return (ordered[(k - 1) // 2] + ordered[k // 2]) / 2


def spread(values: Sequence[float]) -> str:
    return f"median of {len(values)} seeds {median(values):.4g}, from {min(values):.4g} to {max(values):.4g}"


def of_paper_size(entries: Sequence[Any]) -> bool:
    """Smaller nets, trained for less, are asked for less."""
    return all(e.spec["width"] >= _PAPER_WIDTH for e in entries)


def accuracy(figure: str, rule: Callable[[float], bool]) -> Check:
    """The rule holds for the median over the seeds."""

    def check(evidence: Evidence) -> Finding:
        accuracies = last(evidence[figure], "test_accuracy")
        return Finding(median(accuracies), rule(median(accuracies)), spread(accuracies))

    return check


def fails(figure: str, *, smaller: float) -> Check:
    """The median accuracy is below what "almost perfectly" asks for."""

    def check(evidence: Evidence) -> Finding:
        return accuracy(figure, lambda a: a < (NEARLY if of_paper_size(evidence[figure]) else smaller))(evidence)

    return check


def falls_from_peak(figure: str, name: str) -> Check:
    """How far below its own peak a curve ends, relative to the peak; it must fall in every seed."""

    def check(evidence: Evidence) -> Finding:
        falls = []
        for entry in evidence[figure]:
            curve = entry.curves[name]
            falls.append(float(1 - curve[-1] / curve.max()))
        return Finding(median(falls), min(falls) > 0, spread(falls))

    return check


def peak_epoch(figure: str, stated: float, factor: float) -> Check:
    """The epoch after which the test accuracy falls, within a factor of what is stated."""

    def check(evidence: Evidence) -> Finding:
        epochs = [float(e.curves["epoch"][e.curves["test_accuracy"].argmax()]) for e in evidence[figure]]
        middle = median(epochs)
        return Finding(middle, stated / factor <= middle <= stated * factor, spread(epochs))

    return check


def ratio(name: str, above: str, below: str) -> Check:
    """The ratio of the last values in two figures, seed by seed; above 1 in every one."""

    def check(evidence: Evidence) -> Finding:
        pairs = zip(last(evidence[above], name), last(evidence[below], name), strict=False)
        ratios = [a / b for a, b in pairs]
        return Finding(median(ratios), min(ratios) > 1, spread(ratios))

    return check


def attains(figure: str, within: float, *, smaller: float, own_outputs: bool) -> Check:
    """The trace against the least one of a net with the same outputs; or its Gauss-Newton part, which is the trace
    at an interpolator, against the least one of an interpolator: with normalisation the other part is not small.
    """

    def check(evidence: Evidence) -> Finding:
        entries = evidence[figure]
        pairs = [
            (e.result["final"]["trace"], e.result["final"]["least_trace"])
            if own_outputs
            else (e.result["trace_parts"]["gauss_newton"], e.result["bound"])
            for e in entries
        ]
        excesses = [trace / least - 1 for trace, least in pairs]
        detail = f"{spread(excesses)}; trace {spread(last(entries, 'trace'))}, least {entries[0].result['bound']:.4g}"
        # The trace is summed in float32 over some 10⁴ terms.
        most = within if of_paper_size(entries) else smaller
        return Finding(median(excesses), min(excesses) >= -1e-5 and max(excesses) <= most, detail)

    return check
