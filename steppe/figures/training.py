"""Training curves against epochs: loss, test accuracy, trace of the Hessian with its lower bound."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, styled

# More seeds than this are drawn as bands.
MOST_LINES = 4

_LABELS = {"test_accuracy": "test accuracy", "test_loss": "test loss"}


@styled
def training_curves(numbers: Mapping[str, Any]) -> Any:
    """Three panels over one logarithmic axis of epochs: a thick line for the median over the seeds, and a thin line for
    each of them; where they are more than four, bands in their place, for all of them and for their middle half.

    `numbers`: title, runs (each with seed, epoch, train_loss, test_accuracy or test_loss, trace), bound (or None), and
    stages, the epochs at which the training changes.
    """
    from matplotlib.patheffects import withStroke

    figure, axes = canvas(3, 1, width=4.6, height=5.2)
    runs = numbers["runs"]
    test = next(name for name in _LABELS if name in runs[0])
    panels = (("train_loss", "train loss", BLUE), (test, _LABELS[test], GREEN), ("trace", "tr ∇²L", ORANGE))
    for axis, (name, label, colour) in zip(axes[:, 0], panels, strict=True):
        epoch, values = _together(runs, name)
        if len(runs) > MOST_LINES:
            for quantiles, alpha, share in (((0, 1), 0.18, "all seeds"), ((0.25, 0.75), 0.35, "middle half")):
                low, high = np.quantile(values, quantiles, axis=0)
                axis.fill_between(_shifted(epoch), low, high, color=colour, alpha=alpha, linewidth=0, label=share)
        else:
            for run in runs:
                axis.plot(_shifted(run["epoch"]), run[name], color=colour, linewidth=0.7, alpha=0.45)
        seeds = f"median of {len(runs)} seeds" if len(runs) > 1 else None
        axis.plot(_shifted(epoch), np.median(values, axis=0), color=colour, label=seeds)
        axis.set_ylabel(label)
        axis.set_xscale("log")
        for stage in numbers["stages"]:
            axis.axvline(stage, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
    top, middle_axis, bottom = axes[:, 0]
    top.set_yscale("log")
    top.set_title(numbers["title"])
    if len(runs) > 1:
        top.legend(loc="best")
    if test == "test_accuracy":
        middle_axis.set_ylim(0.45, 1.02)
        middle_axis.axhline(1.0, color=FAINT, linewidth=0.8)
    else:
        middle_axis.set_yscale("log")
    _trace_axis(bottom, [value for run in runs for value in run["trace"]])
    if numbers.get("bound") is not None:
        bottom.axhline(numbers["bound"], color=INK, linewidth=1.1, linestyle="--")
        text = f"lower bound {numbers['bound']:.2f}"
        label = bottom.annotate(
            text, (0.01, numbers["bound"]), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", color=INK, fontsize=8, va="bottom",
        )  # fmt: skip
        label.set_path_effects([withStroke(linewidth=3, foreground="white")])  # readable where the curve passes
    bottom.set_xlabel("epochs (the start is drawn at ½)")
    return figure


def _shifted(epoch: Sequence[float]) -> Any:
    """The start, epoch 0, has no place on a logarithmic axis: it is drawn at ½."""
    return np.maximum(np.asarray(epoch, dtype=float), 0.5)


def _together(runs: Sequence[Mapping[str, Any]], name: str) -> tuple[Any, Any]:
    """The epochs at which all seeds were recorded, and the values there, a row for each seed."""
    common = sorted(set.intersection(*(set(run["epoch"]) for run in runs)))
    columns = [[dict(zip(run["epoch"], run[name], strict=True))[e] for e in common] for run in runs]
    return common, np.asarray(columns, dtype=float)


def _trace_axis(axis: Any, values: Sequence[float]) -> None:
    """Logarithmic; linear around 0 where a trace is negative, as that of a normalised net far from a minimum can be."""
    if min(values) <= 0:
        axis.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(np.median(np.abs(values)))))
        return
    axis.set_yscale("log")
    if max(values) < 50 * min(values):
        _plain_log_ticks(axis)


def _plain_log_ticks(axis: Any) -> None:
    """20, 30, 50 instead of 2 × 10¹, for an axis that spans little more than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_formatter(NullFormatter())
