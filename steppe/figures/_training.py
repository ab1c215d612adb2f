"""Training: curves against epochs, the neurons at the end, and a network in the plane."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.figures._style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, headline, plain_ticks, styled

_MOST_LINES = 4  # more seeds than this are drawn as bands

_LABELS = {"test_accuracy": "test accuracy", "test_loss": "test loss"}


@styled
def training_curves(numbers: Mapping[str, Any]) -> Any:
    """Loss, test accuracy and trace of the Hessian against epochs, with the least trace of nets that fit exactly.

    A thick line is the median over the seeds, a thin line is one seed. More than four seeds are drawn as two bands: all
    seeds, and their middle half. `numbers`: title, runs (each with seed, epoch, train_loss, test_accuracy or test_loss,
    trace), bound (or None), and stages, the epochs at which the training changes.
    """
    import numpy as np
    from matplotlib.patheffects import withStroke

    figure, axes = canvas(3, 1, width=4.6, height=5.2)
    runs = numbers["runs"]
    test = next(name for name in _LABELS if name in runs[0])
    panels = (("train_loss", "train loss", BLUE), (test, _LABELS[test], GREEN), ("trace", "tr ∇²L", ORANGE))
    for axis, (name, label, colour) in zip(axes[:, 0], panels, strict=True):
        epoch, values = _together(runs, name)
        if len(runs) > _MOST_LINES:
            for quantiles, alpha, share in (((0, 1), 0.18, "all seeds"), ((0.25, 0.75), 0.35, "middle half")):
                low, high = np.quantile(values, quantiles, axis=0)
                axis.fill_between(_shifted(epoch), low, high, color=colour, alpha=alpha, linewidth=0, label=share)
        else:
            for run in runs:
                axis.plot(_shifted(run["epoch"]), run[name], color=colour, linewidth=0.7, alpha=0.45)
        seeds = f"median of {len(runs)} seeds" if len(runs) > 1 else None
        axis.plot(_shifted(epoch), np.median(values, axis=0), color=colour, label=seeds)
        axis.set(ylabel=label, xscale="log")
        for stage in numbers["stages"]:
            axis.axvline(stage, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
    top, middle_axis, bottom = axes[:, 0]
    top.set(yscale="log", title=numbers["title"])
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
        text = f"least for an exact fit: {numbers['bound']:.2f}"
        label = bottom.annotate(
            text, (0.01, numbers["bound"]), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", color=INK, fontsize=8, va="bottom",
        )  # fmt: skip
        label.set_path_effects([withStroke(linewidth=3, foreground="white")])  # readable where the curve passes
    bottom.set_xlabel("epochs (the start is drawn at ½)")
    plain_ticks(bottom, "y")
    return figure


def _shifted(epoch: Sequence[float]) -> Any:
    """Epoch 0 has no place on a logarithmic axis: it is drawn at ½."""
    import numpy as np

    return np.maximum(np.asarray(epoch, dtype=float), 0.5)


def _together(runs: Sequence[Mapping[str, Any]], name: str) -> tuple[Any, Any]:
    """The epochs that all seeds have recorded, and the values there, one row for each seed."""
    import numpy as np

    common = sorted(set.intersection(*(set(run["epoch"]) for run in runs)))
    columns = [[dict(zip(run["epoch"], run[name], strict=True))[e] for e in common] for run in runs]
    return common, np.asarray(columns, dtype=float)


def _trace_axis(axis: Any, values: Sequence[float]) -> None:
    """A logarithmic axis. It is linear around 0 if a trace is negative, as for a normalised net far from a minimum."""
    import numpy as np

    if min(values) <= 0:
        axis.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(np.median(np.abs(values)))))
        return
    axis.set_yscale("log")


@styled
def neurons(numbers: Mapping[str, Any]) -> Any:
    """First-layer weights: neurons in the plane of two inputs, a table of the longest, and norms of the columns.

    `numbers`: title and runs, each with seed, neurons (m, 2), rows (4, 3) and columns (d,). The first run is drawn.
    """
    import numpy as np

    run = numbers["runs"][0]
    figure, axes = canvas(1, 3, width=10.4, height=3.4, share_x=False)
    plane, text, bars = axes[0]
    weights = np.asarray(run["neurons"])
    plane.scatter(weights[:, 0], weights[:, 1], s=12, color=BLUE, alpha=0.5, linewidths=0)
    rows = np.asarray(run["rows"])
    plane.scatter(rows[:, 0], rows[:, 1], s=46, facecolors="none", edgecolors=ORANGE, linewidths=1.4)
    reach = 1.15 * np.abs(weights).max()
    for slope in (1, -1):
        plane.plot([-reach, reach], [-slope * reach, slope * reach], color=FAINT, linewidth=0.8, zorder=0)
    plane.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="W₁[1]", ylabel="W₁[2]")
    text.axis("off")
    cells = [[f"{a:.3f}", f"{b:.3f}", f"{c:.2f}"] for a, b, c in rows]
    drawn = text.table(cells, colLabels=["W₁[1]", "W₁[2]", "‖W₁[3:d]‖"], loc="center", edges="horizontal")
    drawn.scale(1, 1.5)
    columns = np.asarray(run["columns"])
    colours = [ORANGE, ORANGE, *[BLUE] * (len(columns) - 2)]
    bars.bar(np.arange(1, len(columns) + 1), columns, color=colours, width=0.8)
    bars.set(xlabel="input", ylabel="norm of the column of W₁")
    plane.set_title(f"neurons (seed {run['seed']})", color=INK)
    text.set_title("the four longest")
    bars.set_title("columns")
    headline(figure, numbers["title"])
    return figure


@styled
def memorising(numbers: Mapping[str, Any]) -> Any:
    """A two-layer net in the plane: its output as colour, the training points, and the kink of each neuron.

    `numbers`: title, side (grid coordinates), output on the grid, x, y, W1, b1.
    """
    import numpy as np

    figure, axes = canvas(1, 1, width=4.9, height=4.5)
    axis = axes[0, 0]
    output, side = np.asarray(numbers["output"]), np.asarray(numbers["side"])
    reach = np.abs(np.asarray(numbers["y"])).max()
    shown = axis.pcolormesh(side, side, output, cmap="RdBu_r", vmin=-1.5 * reach, vmax=1.5 * reach, shading="gouraud")
    figure.colorbar(shown, ax=axis, label="f(x)", shrink=0.85)
    turn = np.linspace(0, 2 * np.pi, 200)
    axis.plot(np.cos(turn), np.sin(turn), color=INK, linewidth=0.7, alpha=0.6)
    for (a, b), c in zip(numbers["W1"], numbers["b1"], strict=True):
        axis.axline((-a * c / (a * a + b * b), -b * c / (a * a + b * b)), slope=-a / b if b else np.inf,
                    color=INK, linewidth=0.7, linestyle=(0, (3, 2)))  # fmt: skip
    x, y = np.asarray(numbers["x"]), np.asarray(numbers["y"])
    for sign, marker in ((1, "P"), (-1, "o")):
        chosen = np.sign(y) == sign
        axis.scatter(*x[chosen].T, marker=marker, s=48, color=INK, edgecolors="white", zorder=3,
                     label=f"y = {sign:+d}")  # fmt: skip
    axis.set(xlim=(side[0], side[-1]), ylim=(side[0], side[-1]), aspect="equal", xlabel="x₁", ylabel="x₂")
    axis.grid(False)
    axis.legend(loc="lower right", frameon=True)
    # Not a title of the axes, which would overlap the colour bar.
    headline(figure, numbers["title"])
    return figure
