"""Jiang et al. 2020 on small networks: does flatness order test errors, as measured and whatever the scale of neurons?

Their protocol: networks over a grid of hyper-parameters, each trained to one value of the training loss; then Kendall's
τ of a measure and the test error, over all pairs and over pairs that differ in one hyper-parameter only. Their networks
and data are larger. The grid, the data and the goal of the training are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from steppe import figures
from steppe.experiments import Experiment, Finding, Paper
from steppe.store import Computed

PAPER = Paper("jiang2020", "Fantastic generalization measures and where to find them", module=__name__)

Runs = Sequence[Any]
Data = Literal["digits", "mnist"]
Loss = Literal["half_mse", "cross_entropy"]
AXES = ("depth", "width", "batch", "rate")
# `trace` and `sharpness` are of the Gauss-Newton matrix of the training loss, `invariant_*` their least values over all
# rescalings of neurons. `gap` is the relative gap of the least sharpness, `norm` = ‖w‖, `steps` those to the goal.
COLUMNS = (
    "seed", *AXES, "reached", "loss", "train_error", "test_error", "trace", "sharpness", "invariant_trace",
    "invariant_sharpness", "gap", "norm", "steps",
)  # fmt: skip
MEASURES = {
    "trace": "trace",
    "invariant_trace": "least trace over rescalings",
    "sharpness": "sharpness",
    "invariant_sharpness": "least sharpness over rescalings",
    "norm": "‖w‖",
    "loss": "training loss at the end",
    "steps": "steps to the goal",
}


@dataclass(frozen=True)
class Grid(Experiment, kind="jiang2020/grid"):
    """A network for each seed, depth, width, batch size and learning rate, trained until its loss is `goal`.

    A seed draws the n training images, the starts and the orders of the examples. MNIST is averaged over 2×2 pixels.
    """

    precision = "float32"
    data: Data = "digits"
    loss: Loss = "half_mse"
    n: int = 256
    depths: tuple[int, ...] = (1, 2)
    widths: tuple[int, ...] = (24, 64)
    batches: tuple[int, ...] = (8, 64)
    rates: tuple[float, ...] = (0.02, 0.05, 0.1)
    goal: float = 0.01
    max_steps: int = 60_000
    seeds: int = 5

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        cells = list(product(range(self.seeds), product(self.depths, self.widths, self.batches, self.rates)))
        saved = None if checkpoint is None else checkpoint.load()
        done = [] if saved is None else list(saved["rows"])
        for seed, cell in cells[len(done) :]:
            found = self.network(seed, *cell, *self.images(seed)) | {"seed": seed}
            done.append([found[name] for name in COLUMNS])
            if checkpoint is not None and checkpoint.due():
                checkpoint.save({"rows": np.array(done)})
        return Computed(dict(zip(COLUMNS, np.array(done, dtype=float).T, strict=True)), {}, {})

    def images(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """(x, y, x_test, y_test): a random training set of n images."""
        from steppe.data import digits, mnist

        rng = np.random.default_rng([seed, 0])
        if self.data == "digits":
            every = digits(1796)
            x, y = np.concatenate([every.x, every.x_test]), np.concatenate([every.y, every.y_test])
            order = rng.permutation(len(y))
            train, test = order[: self.n], order[self.n :]
            return x[train], y[train], x[test], y[test]
        every = mnist(10_000, test=5_000)
        train = rng.permutation(len(every.y))[: self.n]
        return _halved(every.x[train]), every.y[train], _halved(every.x_test), every.y_test

    def network(
        self, seed: int, depth: int, width: int, batch: int, rate: float, x: Any, y: Any, x_test: Any, y_test: Any
    ) -> dict[str, float]:
        """Train one network and measure it; NaN where the training diverged."""
        import steppe
        from steppe import losses, measures
        from steppe.networks import FCN

        net, rng = FCN(widths=(width,) * depth), np.random.default_rng([seed, depth, width])
        targets = np.eye(10, dtype=np.float32)[y] if self.loss == "half_mse" else y
        start = net.init(x.shape[1:], 10, rng)
        problem = steppe.Problem(net, start, x, targets, getattr(losses, self.loss))
        stop = steppe.until.loss(self.goal) | steppe.until.steps(self.max_steps)
        trained = steppe.run(
            problem, steppe.dynamics.GD(rate, batch_size=batch), stop=stop, when=steppe.when.steps([0]), key=seed
        )
        found = dict.fromkeys(COLUMNS, np.nan) | {
            "depth": depth, "width": width, "batch": batch, "rate": rate,
            "reached": float(trained.outcome == "reached"), "steps": trained.steps,
        }  # fmt: skip
        if trained.outcome == "diverged":
            return found
        w = trained.w

        def error(images: Any, labels: Any) -> float:
            return float(np.mean(np.asarray(net(problem.unravel(w), images)).argmax(axis=1) != labels))

        trace = steppe.flatten(problem, w)
        # Kendall's τ needs the order of networks whose sharpness differs by much more than this.
        top = steppe.flatten(problem, w, measure="sharpness", rtol=0.05)
        return found | {
            "loss": measures.loss(problem, w).value, "train_error": error(x, y), "test_error": error(x_test, y_test),
            "trace": trace.before, "invariant_trace": trace.value, "sharpness": top.before,
            "invariant_sharpness": top.value, "gap": top.gap, "norm": measures.norm(problem, w).value,
        }  # fmt: skip


def _halved(images: Any) -> Any:
    """Means over 2×2 pixels."""
    n, rows, columns = images.shape[:3]
    return images.reshape(n, rows // 2, 2, columns // 2, 2).mean(axis=(2, 4))


# Kendall's τ, with hyper-parameters controlled.


def concordance(measure: Any, error: Any, axis: int) -> float:
    """Kendall's τ_a over the pairs along one axis, at equal places on all others; a pair with a NaN does not count.

    >>> concordance(np.array([[1.0, 2.0, 3.0]]), np.array([[0.1, 0.3, 0.2]]), axis=1)       # two pairs of three agree
    0.3333333333333333
    """
    m, e = (np.moveaxis(np.asarray(a, dtype=float), axis, -1) for a in (measure, error))
    i, j = np.triu_indices(m.shape[-1], 1)
    signs = np.sign(m[..., i] - m[..., j]) * np.sign(e[..., i] - e[..., j])
    return float(np.nanmean(signs)) if np.isfinite(signs).any() else np.nan


def over_all(measure: Any, error: Any) -> float:
    """τ over all pairs of networks of one seed, with nothing controlled. Arrays are (seeds, depths, widths, …)."""
    m, e = (np.reshape(a, (len(a), -1)) for a in (measure, error))
    return concordance(m, e, 1)


def controlled(measure: Any, error: Any) -> float:
    """Ψ of Jiang et al.: τ over pairs that differ in one hyper-parameter only, the mean over the hyper-parameters."""
    varied = [k for k in range(1, np.ndim(measure)) if np.shape(measure)[k] > 1]
    return float(np.mean([concordance(measure, error, k) for k in varied]))


def across_seeds(measure: Any, error: Any) -> float:
    """τ over pairs of equal hyper-parameters that differ in the seed only."""
    return concordance(measure, error, 0)


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def jackknife(statistic: Callable[..., float], *arrays: Any) -> Interval:
    """A statistic of arrays whose first axis is the seed, with Student's 95% interval from leaving out each seed."""
    from scipy.stats import t

    count = len(arrays[0])
    left_out = np.array([statistic(*(np.delete(a, k, axis=0) for a in arrays)) for k in range(count)])
    error = np.sqrt((count - 1) * np.mean((left_out - left_out.mean()) ** 2))
    reach = float(t.ppf(0.975, count - 1) * error)
    value = statistic(*arrays)
    return Interval(value, value - reach, value + reach)


class Setting(NamedTuple):
    """All seeds of one data set and loss: columns of shape (seeds, depths, widths, batches, rates)."""

    name: str
    columns: Mapping[str, Any]

    def tau(self, how: Callable[[Any, Any], float], measure: str) -> Interval:
        return jackknife(how, self.columns[measure], self.columns["test_error"])

    def lead(self, first: str, second: str) -> Interval:
        """The controlled τ of the first measure minus that of the second, with the interval of the difference."""
        every = (self.columns[first], self.columns[second], self.columns["test_error"])
        return jackknife(lambda a, b, e: controlled(a, e) - controlled(b, e), *every)


LABELS = {"half_mse": "squared loss", "cross_entropy": "cross-entropy"}


def settings(runs: Runs) -> list[Setting]:
    tables = []
    for run in runs:
        shape = (run.spec["seeds"], *(len(run.spec[axis]) for axis in ("depths", "widths", "batches", "rates")))
        columns = {name: column.reshape(shape) for name, column in run.curves.items()}
        tables.append(Setting(f"{run.spec['data']}, {LABELS[run.spec['loss']]}", columns))
    return tables


# The figures and the claims.

SETTINGS: tuple[tuple[Loss, tuple[float, ...]], ...] = (
    ("half_mse", (0.02, 0.05, 0.1)),
    ("cross_entropy", (0.03, 0.1, 0.3)),
)
DATA: tuple[Data, ...] = ("digits", "mnist")
EVERY = [Grid(data=data, loss=loss, rates=rates) for loss, rates in SETTINGS for data in DATA]
SMALL = [
    Grid(loss="cross_entropy", n=32, depths=(1,), widths=(16,), batches=(8,), rates=(0.1, 0.3), goal=0.05, seeds=3)
]


@PAPER.plot(
    "kendall", "Kendall's τ of flatness and test error, raw and controlled", figures.correlations,
    runs={"smoke": SMALL, "paper": EVERY},
)  # fmt: skip
def kendall(runs: Runs) -> dict[str, Any]:
    kinds = (
        ("all pairs of one seed", over_all),
        ("pairs that differ in one hyper-parameter", controlled),
        ("pairs that differ in the seed", across_seeds),
    )
    panels = []
    for setting in settings(runs):
        marks = [{"label": label, "values": [setting.tau(how, m) for m in MEASURES]} for label, how in kinds]
        count = setting.columns["trace"].size
        panels.append({"title": f"{setting.name}: {count} networks", "rows": list(MEASURES.values()), "marks": marks})
    return {"title": "Does flatness order test errors?", "x": "Kendall's τ with the test error", "panels": panels}


@PAPER.plot(
    "axes", "Kendall's τ over pairs that differ in one hyper-parameter", figures.correlations, runs={"paper": EVERY}
)
def axes(runs: Runs) -> dict[str, Any]:
    panels = []
    for setting in settings(runs):
        marks = []
        for m in ("trace", "invariant_trace", "invariant_sharpness"):
            of_axis = [setting.tau(partial(concordance, axis=k), m) for k in range(1, len(AXES) + 1)]
            marks.append({"label": MEASURES[m], "values": of_axis})
        panels.append({"title": setting.name, "rows": list(AXES), "marks": marks})
    return {"title": "Which pairs does flatness order?", "x": "Kendall's τ with the test error", "panels": panels}


@PAPER.claim(
    "fit", "Section 4", "Every network reaches the goal of the training loss and fits its training set.",
    "all reach it, training error ≤ 1%", needs=(kendall,),
)  # fmt: skip
def all_fit(runs: Runs) -> Finding:
    """The largest training error."""
    columns = {c: np.concatenate([run.curves[c] for run in runs]) for c in ("reached", "train_error")}
    missed, worst = int((columns["reached"] == 0).sum()), float(np.nanmax(columns["train_error"]))
    return Finding(
        worst, missed == 0 and worst <= 0.01, f"{len(columns['reached'])} networks, {missed} not at the goal"
    )


def orders(measure: str, runs: Runs) -> Finding:
    """The controlled τ of a measure and the test error: the smallest over data sets and losses."""
    found = {s.name: s.tau(controlled, measure) for s in settings(runs)}
    least = min(found.values(), key=lambda i: i.value)
    return Finding(least.value, all(i.low > 0 for i in found.values()), _listed(found))


@PAPER.claim(
    "trace", "Sections 4, 7", "Hyper-parameters controlled, networks of smaller trace have a smaller test error.",
    "Ψ > 0 with its interval, for every data set and loss", needs=(axes,),
)  # fmt: skip
def trace_orders(runs: Runs) -> Finding:
    return orders("trace", runs)


@PAPER.claim(
    "invariant-trace", "Ours",
    "Hyper-parameters controlled, networks of smaller least trace over rescalings have a smaller test error.",
    "Ψ > 0 with its interval, for every data set and loss", needs=(axes,),
)  # fmt: skip
def invariant_trace_orders(runs: Runs) -> Finding:
    return orders("invariant_trace", runs)


@PAPER.claim(
    "invariant-better", "Ours",
    "The least trace over rescalings orders test errors better than the trace as measured.",
    "difference of Ψ > 0 with its interval, for every data set and loss", needs=(axes,),
)  # fmt: skip
def invariance_helps(runs: Runs) -> Finding:
    """Ψ of the least trace minus Ψ of the trace: the smallest over data sets and losses."""
    found = {s.name: s.lead("invariant_trace", "trace") for s in settings(runs)}
    least = min(found.values(), key=lambda i: i.value)
    return Finding(least.value, all(i.low > 0 for i in found.values()), _listed(found))


def _listed(found: Mapping[str, Interval]) -> str:
    return "; ".join(f"{name}: {interval}" for name, interval in found.items())
