"""The runs of a row of table 1: gradient flow, gradient descent at one rate, and the whole sweep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steppe.experiments import Experiment
from steppe.papers.conflicting_biases.table_1 import Setting
from steppe.store import Computed, Entry
from steppe.sweep import Composite, Get

if TYPE_CHECKING:
    from steppe.outcome import Outcome
    from steppe.rates import Critical, Descent, Sweep

# A sweep of at most this many steps per run is computed in one process: starting more would take longer.
_FEW_STEPS = 5_000

# The error tolerance of the flow. With 1e-2 s_GF of MNIST-5k is off by 1.7%, and the grids and verdicts depend on it.
_RTOL = 3e-3

_COSTS = ("lr", "steps", "gradients", "products")


@dataclass(frozen=True)
class FlowRun(Experiment, kind="conflicting-biases/flow"):
    """Gradient flow to each of the goals: s₀, s_GF, η_c and the ends."""

    precision = "float32"

    setting: Setting
    goals: tuple[float, ...]
    rtol: float = _RTOL

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        import numpy as np

        from steppe.dynamics import Flow
        from steppe.rates import critical_rate
        from steppe.rates._critical import critical_arrays

        problem, _ = self.setting.problems()
        found = critical_rate(
            problem, losses=self.goals, flow=Flow(self.rtol, verify=False), checkpoint=checkpoint, progress=progress
        )
        last = found[-1]
        final = {"sharpness": last.sharpness, "initial": last.initial_sharpness, "largest": last.largest_sharpness}
        curves = {"goal": np.array([c.loss for c in found]), "critical": np.array([c.rate for c in found])}
        return Computed(curves, critical_arrays(found), {"outcome": last.outcome, "final": final})


@dataclass(frozen=True)
class DescentRun(Experiment, kind="conflicting-biases/descent"):
    """Gradient descent at one rate to the last of the goals. `way` is the flow's time to this goal, 0 if unknown."""

    precision = "float32"

    setting: Setting
    goals: tuple[float, ...]
    lr: float
    way: float = 0.0
    share: float = 0.3
    patience: float = 10.0
    steps: int = 1_000_000

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        from steppe.rates import Descents, Limits

        problem, _ = self.setting.problems()
        limits = Limits(self.goals, self.steps, self.way or None, self.patience)
        runs = Descents(
            problem, problem.w0, limits, share=self.share, together=False, key=0, checkpoint=checkpoint,
            progress=progress,
        )  # fmt: skip
        return _stored_descent(runs.run([self.lr])[0])


@dataclass(frozen=True)
class NetworkSweep(Experiment, Composite, kind="conflicting-biases/sweep"):
    """Gradient descent at all rates of a row's grids, or at these `multiples` of η_c alone, measured at each goal.

    The columns `lr`, `goal` and so on are those of `steppe.rates.Sweep.ends`; those of the flow are in the result.
    A long sweep is composed of runs that are stored one by one: the flow, and one descent for each rate. `missing` says
    which of them are still to be computed.
    """

    precision = "float32"

    setting: Setting
    goals: tuple[float, ...]
    fine: bool = True
    coarse: bool = True
    share: float = 0.3
    patience: float = 10.0
    steps: int = 1_000_000
    all_sharpness: bool = False
    rtol: float = _RTOL
    multiples: tuple[float, ...] = ()

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        """All runs in this process."""
        from steppe.dynamics import Flow
        from steppe.rates import critical_rate, sweep

        problem, test = self.setting.problems()
        options: dict[str, Any] = self._options() | {"checkpoint": checkpoint, "progress": progress, "test": test}
        if not self.multiples:
            return _stored_sweep(sweep(problem, flow=Flow(self.rtol, verify=False), **options))
        critical = critical_rate(problem, losses=self.goals, flow=Flow(self.rtol, verify=False), progress=progress)
        return _stored_sweep(sweep(problem, self.rates(critical), critical=critical, **options))

    @property
    def split(self) -> bool:
        return self.steps > _FEW_STEPS

    def missing(self, get: Get) -> list[Any]:
        """First the flow, then the descents whose rates follow from the flow and from the finished descents."""
        flow = get(self.flow())
        if flow is None:
            return [self.flow()]
        finished = _Finished(self, flow, get)
        return [finished.spec_of(lr) for lr in finished.absent()]

    def compose(self, get: Get) -> Computed:
        import jax

        from steppe.rates import sweep

        with jax.enable_x64(False):
            problem, test = self.setting.problems()
            finished = _Finished(self, get(self.flow()), get)
            finished.absent()  # there are none; this reads all outcomes
            options = self._options() | {"test": test, "critical": finished.critical, "runner": lambda _: finished}
            return _stored_sweep(sweep(problem, self.rates(finished.critical), **options))

    def rates(self, critical: "tuple[Critical, ...]") -> list[float] | None:
        """Those of `multiples`; None for the grids."""
        return [m * critical[-1].rate for m in self.multiples] or None

    def flow(self) -> FlowRun:
        return FlowRun(self.setting, self.goals, self.rtol)

    def descent(self, lr: float, way: float) -> DescentRun:
        return DescentRun(self.setting, self.goals, lr, way, self.share, self.patience, self.steps)

    def _options(self) -> dict[str, Any]:
        """Arguments of `steppe.rates.sweep`."""
        names = ("goals", "fine", "coarse", "share", "patience", "steps", "all_sharpness")
        return {name: getattr(self, name) for name in names}


class _Finished:
    """The finished descents of one sweep, as the runner that `steppe.rates.sweep` calls."""

    together = True

    def __init__(self, spec: NetworkSweep, flow: Entry | None, get: Get):
        self.spec, self.critical, self.get = spec, critical_of(flow), get
        self.known: dict[float, Outcome] = {}

    def spec_of(self, lr: float) -> DescentRun:
        last = self.critical[-1]
        return self.spec.descent(lr, last.time if last.outcome == "reached" else 0.0)

    def absent(self) -> list[float]:
        """The rates to compute next. A plan depends on outcomes alone, so it is replayed from the finished runs."""
        from steppe.rates import Plan

        rates = self.spec.rates(self.critical)
        if rates is not None:
            return [lr for lr in rates if self.get(self.spec_of(lr)) is None]
        plan = Plan(self.critical[-1], self.spec.fine, self.spec.coarse)
        while wanted := plan.next(self.known):
            entries = {lr: self.get(self.spec_of(lr)) for lr in wanted}
            found = {lr: entry.result["outcome"] for lr, entry in entries.items() if entry is not None}
            if not found:
                return wanted
            self.known |= found
        return []

    def outcomes(self) -> "dict[float, Outcome]":
        return self.known

    def run(self, rates: Sequence[float]) -> "tuple[Descent, ...]":
        return tuple(_restored_descent(self.get(self.spec_of(lr))) for lr in rates)


def critical_of(entry: Any) -> "tuple[Critical, ...]":
    """s₀, s_GF and η_c for each goal, from a finished flow."""
    from steppe.rates._critical import restored_critical

    return restored_critical(entry.params)


def _stored_sweep(found: "Sweep") -> Computed:
    """What is stored: the table of ends, the trajectories, and w at the last goal of each rate."""
    import numpy as np

    paths = {f"path/{k}/{name}": np.asarray(c, np.float32) for k, d in enumerate(found.descents)
             for name, c in d.records.items()}  # fmt: skip
    points = {f"w/{k}": np.asarray(d.reached[-1].w) for k, d in enumerate(found.descents) if d.reached}
    flow = {name: column.tolist() for name, column in found.flow.items()}
    outcomes = [d.outcome for d in found.descents]
    costs = {name: [getattr(d, name) for d in found.descents] for name in _COSTS}
    final = {"critical": flow["critical"][-1], "reached": float(outcomes.count("reached"))}
    return Computed(found.ends, paths | points, {"flow": flow, "outcomes": outcomes, "runs": costs, "final": final})


def _stored_descent(descent: "Descent") -> Computed:
    import numpy as np

    params = {"step": np.array([r.step for r in descent.reached], dtype=int)}
    for name in ("w", "centre"):
        params[name] = np.array([getattr(r, name) for r in descent.reached])
    final = {name: float(column[-1]) for name, column in descent.records.items()}
    measured = descent.records["sharpness"][np.isfinite(descent.records["sharpness"])]
    final |= {"sharpness": float(measured[-1])} if len(measured) else {}
    result = {name: getattr(descent, name) for name in ("outcome", *_COSTS)}
    return Computed(descent.records, params, result | {"final": final})


def _restored_descent(entry: Any) -> "Descent":
    import jax.numpy as jnp

    from steppe.rates import Descent, Reached

    params, result = entry.params, entry.result
    rows = zip(entry.spec["goals"], params["step"].tolist(), params["w"], params["centre"], strict=False)
    reached = tuple(Reached(goal, step, jnp.asarray(w), jnp.asarray(c)) for goal, step, w, c in rows)
    numbers = {name: result[name] for name in ("outcome", *_COSTS)}
    return Descent(**numbers, reached=reached, records=dict(entry.curves))
