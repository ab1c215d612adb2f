"""The runs of a row of table 1: the flow, gradient descent at one rate, and the whole sweep."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.conflicting_biases.networks_setting import Setting
from steppe.sweep._engine import Assembled, Get

# Runs of at most so many steps are made in one process: starting others would take longer.
_FEW_STEPS = 5_000

# Of the flow. On MNIST-5k 1e-2 leaves s_GF 1.7% off, and grids and verdicts of a row hang on it.
_RTOL = 3e-3

if TYPE_CHECKING:
    from steppe.rates import Critical, Descent, Sweep
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class FlowRun:
    """Gradient flow to each of the goals: s₀, s_GF, η_c and the ends."""

    KIND: ClassVar[str] = "conflicting-biases/flow"

    setting: Setting
    goals: tuple[float, ...]
    rtol: float = _RTOL

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe.dynamics._flow import Flow
        from steppe.rates import critical_rate
        from steppe.rates._critical import critical_arrays
        from steppe.store import Computed

        problem, _ = self.setting.problems()
        found = critical_rate(
            problem, losses=self.goals, flow=Flow(self.rtol), checkpoint=checkpoint, progress=progress
        )
        last = found[-1]
        final = {"sharpness": last.sharpness, "initial": last.initial_sharpness, "largest": last.largest_sharpness}
        curves = {"goal": np.array([c.loss for c in found]), "critical": np.array([c.rate for c in found])}
        return Computed(curves, critical_arrays(found), {"outcome": last.outcome, "final": final})


@dataclass(frozen=True)
class DescentRun:
    """Gradient descent at one rate to the last of the goals. `way` is the flow's time to it, 0 where not known."""

    KIND: ClassVar[str] = "conflicting-biases/descent"

    setting: Setting
    goals: tuple[float, ...]
    lr: float
    way: float = 0.0
    share: float = 0.3
    patience: float = 10.0
    steps: int = 1_000_000

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        from steppe.rates._descents import Descents, Limits

        problem, _ = self.setting.problems()
        limits = Limits(self.goals, self.steps, self.way or None, self.patience)
        runs = Descents(
            problem, problem.w0, limits, share=self.share, together=False, key=0, checkpoint=checkpoint,
            progress=progress,
        )  # fmt: skip
        return descent_computed(runs.run([self.lr])[0])


@dataclass(frozen=True)
class Swept(Assembled):
    """All rates of a row's grids, measured at each goal; or these `multiples` of η_c alone.

    The columns `lr`, `goal` and so on are those of `steppe.rates.Sweep.ends`; those of the flow are in the result.
    """

    KIND: ClassVar[str] = "conflicting-biases/sweep"

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

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        from steppe.dynamics._flow import Flow
        from steppe.rates import critical_rate, sweep

        problem, test = self.setting.problems()
        options: dict[str, Any] = self.options() | {"checkpoint": checkpoint, "progress": progress, "test": test}
        if not self.multiples:
            return computed(sweep(problem, flow=Flow(self.rtol), **options))
        critical = critical_rate(problem, losses=self.goals, flow=Flow(self.rtol), progress=progress)
        return computed(sweep(problem, self.rates(critical), critical=critical, **options))

    @property
    def apart(self) -> bool:
        return self.steps > _FEW_STEPS

    def missing(self, get: Get) -> list[Any]:
        from steppe.papers.conflicting_biases import networks_stored

        return networks_stored.missing(self, get)

    def assemble(self, get: Get) -> "Computed":
        from steppe.papers.conflicting_biases import networks_stored

        return networks_stored.assemble(self, get)

    def rates(self, critical: "tuple[Critical, ...]") -> list[float] | None:
        """Those of `multiples`; None for the grids."""
        return [m * critical[-1].rate for m in self.multiples] or None

    def options(self) -> dict[str, Any]:
        """Arguments of `steppe.rates._sweep`."""
        names = ("goals", "fine", "coarse", "share", "patience", "steps", "all_sharpness")
        return {name: getattr(self, name) for name in names}

    def flow(self) -> FlowRun:
        return FlowRun(self.setting, self.goals, self.rtol)

    def descent(self, lr: float, way: float) -> DescentRun:
        return DescentRun(self.setting, self.goals, lr, way, self.share, self.patience, self.steps)


def computed(found: "Sweep") -> "Computed":
    """A sweep as the store keeps it: the table of ends, the trajectories, w at the last goal of each rate."""
    import numpy as np

    from steppe.store import Computed

    paths = {f"path/{k}/{name}": np.asarray(c, np.float32) for k, d in enumerate(found.descents)
             for name, c in d.records.items()}  # fmt: skip
    points = {f"w/{k}": np.asarray(d.reached[-1].w) for k, d in enumerate(found.descents) if d.reached}
    flow = {name: column.tolist() for name, column in found.flow.items()}
    outcomes = [d.outcome for d in found.descents]
    costs = {name: [getattr(d, name) for d in found.descents] for name in ("lr", "steps", "gradients", "products")}
    final = {"critical": flow["critical"][-1], "reached": float(outcomes.count("reached"))}
    return Computed(found.ends, paths | points, {"flow": flow, "outcomes": outcomes, "runs": costs, "final": final})


def descent_computed(descent: "Descent") -> "Computed":
    import numpy as np

    from steppe.store import Computed

    params = {"step": np.array([r.step for r in descent.reached], dtype=int)}
    for name in ("w", "centre"):
        params[name] = np.array([getattr(r, name) for r in descent.reached])
    final = {name: float(column[-1]) for name, column in descent.records.items()}
    measured = descent.records["sharpness"][np.isfinite(descent.records["sharpness"])]
    final |= {"sharpness": float(measured[-1])} if len(measured) else {}
    result = {name: getattr(descent, name) for name in ("lr", "outcome", "steps", "gradients", "products")}
    return Computed(descent.records, params, result | {"final": final})


def descent_of(entry: Any) -> "Descent":
    """The run as the engine had it."""
    import jax.numpy as jnp

    from steppe.rates import Descent, Reached

    params, result = entry.params, entry.result
    rows = zip(entry.spec["goals"], params["step"].tolist(), params["w"], params["centre"], strict=False)
    reached = tuple(Reached(goal, step, jnp.asarray(w), jnp.asarray(c)) for goal, step, w, c in rows)
    names = ("lr", "outcome", "steps", "gradients", "products")
    return Descent(**{name: result[name] for name in names}, reached=reached, records=dict(entry.curves))


def critical_of(entry: Any) -> "tuple[Critical, ...]":
    from steppe.rates._critical import restored_critical

    arrays: Mapping[str, Any] = entry.params
    return restored_critical(arrays)
