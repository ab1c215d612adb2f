"""The paper, and the two kinds of figures that it is made of: one training run, and the runs of several figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from steppe.experiments import Experiment, Figure, Paper, Scale, Shown, seeds
from steppe.figures import training_curves
from steppe.papers.wen2023.training import Training

PAPER = Paper(
    "wen2023",
    "Sharpness minimization algorithms do not only minimize sharpness to achieve better generalization",
    module="steppe.papers.wen2023",
)


def training_figure(
    id: str,
    title: str,
    paper: Training,
    *,
    smoke: Sequence[int],
    smoke_width: int = 200,
    smoke_seeds: int = 2,
    paper_seeds: int = 10,
    heading: str = "",
) -> Figure:
    """Declare a figure of one training run: loss, accuracy and trace against epochs, for several seeds.

    At smoke scale stage k lasts smoke[k] epochs, later stages are left out, and the net is narrower: the same effects
    show within seconds.
    """
    stages = tuple(replace(row, epochs=epochs) for row, epochs in zip(paper.stages, smoke, strict=False))
    small = replace(paper, stages=stages, width=smoke_width, test=4_000, per_decade=10)
    drawn_title = f"{heading or 'Fig. ' + id.removeprefix('fig')} · {title}"
    return PAPER.figure(
        id,
        title,
        runs={"smoke": seeds(small, smoke_seeds), "paper": seeds(paper, paper_seeds)},
        show=Shown(lambda runs: curves(honest(drawn_title, runs, [paper]), runs), training_curves),
    )


def honest(title: str, runs: Sequence[Any], paper: Iterable[Any]) -> str:
    """The title of what the paper shows; if the runs are smaller than those of `paper`, it says so and names them."""
    published = {(spec.width, sum(row.epochs for row in spec.stages)) for spec in paper}
    used = {(e.spec["width"], sum(row["epochs"] for row in e.spec["stages"])) for e in runs}
    if used <= published:
        return title
    widths, epochs = ([f"{size:,}" for size in sorted(set(sizes))] for sizes in zip(*used, strict=True))
    span = " to ".join(dict.fromkeys((epochs[0], epochs[-1])))
    return f"Stand-in for {title}\nwidth {', '.join(widths)}, {span} epochs"


def curves(title: str, runs: Sequence[Any]) -> dict[str, Any]:
    """What a figure of one training run draws."""
    first = runs[0].spec
    ends = [sum(row["epochs"] for row in first["stages"][: k + 1]) for k in range(len(first["stages"]) - 1)]
    # The labels of the ball are numbers, not classes.
    test = "test_loss" if first["data"] == "ball" else "test_accuracy"
    columns = ("epoch", "train_loss", test, "trace")
    return {
        "title": title,
        "bound": _median_bound(runs),
        "stages": ends,
        "runs": [
            {"seed": e.spec["seed"], "id": e.id} | {name: e.curves[name].tolist() for name in columns} for e in runs
        ],
    }


def _median_bound(runs: Sequence[Any]) -> float | None:
    """The least trace at interpolation: the median over the training sets of the seeds."""
    bounds = [e.result["bound"] for e in runs if e.result["bound"] is not None]
    # No net of two layers without bias comes near its bound but at a kink.
    spec = runs[0].spec
    return median(bounds) if bounds and (spec["network"] != "no-bias" or spec.get("depth", 2) > 2) else None


def joint_figure(
    id: str,
    title: str,
    figures: Sequence[Figure],
    numbers: Callable[..., dict[str, Any]],
    draw: Callable[[Mapping[str, Any]], Any],
) -> Figure:
    """Declare a figure of the runs of several others. `numbers` gets one list of runs for each of them."""
    scales: tuple[Scale, ...] = ("smoke", "paper")
    runs: dict[Scale, tuple[Experiment, ...]] = {s: tuple(e for f in figures for e in f.runs[s]) for s in scales}

    def together(found: Sequence[Any]) -> dict[str, Any]:
        shown = numbers(*split(figures, found))
        return shown | {"title": honest(shown["title"], found, runs["paper"])}

    return PAPER.figure(id, title, runs=runs, show=Shown(together, draw))


def split(figures: Sequence[Figure], runs: Sequence[Any]) -> list[list[Any]]:
    """The runs of each figure. The number of runs tells the scale."""
    for scale in ("smoke", "paper"):
        counts = [len(figure.runs[scale]) for figure in figures]
        if sum(counts) == len(runs):
            rest = iter(runs)
            return [[next(rest) for _ in range(count)] for count in counts]
    raise AssertionError(f"no scale has {len(runs)} runs")
