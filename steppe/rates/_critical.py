"""The critical learning rate η_c = 2/s_GF from one gradient flow, resumed after a kill."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, linalg, until, when
from steppe._random import seed
from steppe._result import Result, Table, columns, drawn
from steppe.curvature import hessian
from steppe.dynamics import Checkpoint, Flow, Progress, Run, run
from steppe.dynamics._record import part
from steppe.estimate import Accuracy, Estimate
from steppe.outcome import OUTCOMES, Outcome
from steppe.problem import Problem

FINE_POINTS, COARSE_POINTS = 12, 9

# The coarse grid is spaced like the fine one if its own spacing would be smaller by more than this factor.
FINEST = 4

# Sharpness is measured whenever the number of steps has grown by 2%. It changes little in between, and a measurement at
# each step would cost more than the gradients.
_LOOKS = when.logarithmic(per_decade=116)

# The tolerance of the flow. The sharpness along it then has an error of a few tenths of a per cent, also where kinks
# cause most of the error; with 1e-2 it was 1.7% off on MNIST-5k.
_RTOL = 3e-3


@dataclass(frozen=True, repr=False)
class Critical(Result):
    """The flow from the start to one loss ε: `w` there, its sharpness, and s_GF, the largest on the way.

    `outcome` is `reached`. If the flow ended earlier, it is `stalled`, `exhausted` or `diverged`, and s_GF is the
    largest sharpness up to that end. `gradients` counts the gradients of the flow from the start, not the products.
    """

    loss: float
    outcome: Outcome
    w: Array
    time: float
    sharpness: float
    initial_sharpness: float
    largest_sharpness: float
    gradients: int

    @property
    def rate(self) -> float:
        """η_c = 2/s_GF: above it gradient descent leaves the flow before it reaches ε. It is ∞ if s_GF ≤ 0."""
        return float("inf") if self.largest_sharpness <= 0 else 2 / self.largest_sharpness

    def fine_grid(self) -> NDArray[Any]:
        """1/(2 s_GF), 2/(2 s_GF), ..., 6/s_GF (appendix G)."""
        self._refuse_flat()
        return np.arange(1, FINE_POINTS + 1) / (2 * self.largest_sharpness)

    def coarse_grid(self, *, beyond: int = 0, refine: int = 1) -> NDArray[Any]:
        """Nine rates from 6/s_GF to 2/s₀ and, with the same spacing, all positive rates below and `beyond` rates above.

        `refine` divides the spacing, for runs that diverge within the grid. If 2/s₀ is below 6/s_GF or hardly above
        it, there would be more than 48 rates below 6/s_GF: then the spacing is that of the fine grid.
        """
        check.integer("beyond", beyond, minimum=0)
        check.integer("refine", refine, minimum=1)
        self._refuse_flat()
        low = 6 / self.largest_sharpness
        high = 2 / self.initial_sharpness if self.initial_sharpness > 0 else 0.0
        points = (COARSE_POINTS - 1) * refine
        fine, step = 1 / (2 * self.largest_sharpness), (high - low) / (COARSE_POINTS - 1)
        if step < fine / FINEST:
            step = fine
        step = step / refine
        below = int(np.ceil(low / step)) - 1
        grid = low + step * np.arange(-below, points + beyond + 1)
        return grid[grid > 1e-9 * step]  # without a first rate that is 0 up to rounding

    def table(self) -> Table:
        """One row: the loss, η_c and the other numbers."""
        return CriticalRates([self]).table()

    def draw(self) -> Any:
        return CriticalRates([self]).draw()

    def _refuse_flat(self) -> None:
        """A flow without positive curvature has no critical rate; if its loss is not finite, none is known."""
        if not 0 < self.largest_sharpness < np.inf:
            remedy = "Start where there is curvature, follow the flow to a lower loss, or choose the rates yourself."
            check.refuse("s_GF", "a finite number > 0 for a grid of rates", self.largest_sharpness, remedy)


_NUMBERS = ("loss", "time", "sharpness", "initial_sharpness", "largest_sharpness")


class CriticalRates(Result, tuple[Critical, ...]):
    """The critical rates of one flow, the largest loss first."""

    def table(self) -> Table:
        """One row for each loss."""
        found = {"loss": [c.loss for c in self], "outcome": [c.outcome for c in self], "rate": [c.rate for c in self]}
        rest = {name: [getattr(c, name) for c in self] for name in (*_NUMBERS[1:], "gradients")}
        return columns(found | rest)

    def draw(self) -> Any:
        """Each number against the loss."""
        return drawn("gradient flow to each loss", self.table(), kind="points")


_ARRAYS = ("vectors", "values", "watch", "before")
_FLAGS = ("takeover", "settled", "fell", "slows")


@dataclass(frozen=True)
class Followed:
    """λ_max along one run: a tracker and the products it has spent. `measure` is a pure step and returns the next one.

    Runs that start at the same point may share the first `Followed`: then the first measurement is made once.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> estimate, after = Followed.fresh(p, key=0).measure(p, p.w0)
    >>> round(estimate.value, 6), after.products == estimate.matvecs        # ∇²L = [[1, 1], [1, 1]]
    (2.0, True)
    """

    tracker: linalg.Tracker
    products: int = 0

    @classmethod
    def fresh(cls, problem: Problem, *, rtol: float = 1e-3, key: int = 0) -> "Followed":
        return cls(linalg.Tracker(problem.w0.size, accuracy=Accuracy(rtol), key=key))

    def measure(self, problem: Problem, w: Array) -> tuple[Estimate, "Followed"]:
        """λ_max(∇²L(w)) to rtol."""
        with linalg.one_thread():
            estimate, tracker = self.tracker.insist(hessian(problem, w))
        return estimate, Followed(tracker, self.products + estimate.matvecs)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that the next measurement depends on: saved and restored, it continues to the bit."""
        known = {name: getattr(self.tracker, name) for name in _ARRAYS}
        counts = [self.products, self.tracker.calls, *(int(getattr(self.tracker, name)) for name in _FLAGS)]
        exact = {"counts": np.array(counts), "growth": np.array([self.tracker.growth])}
        return exact | {name: array for name, array in known.items() if array is not None}

    def restored(self, arrays: dict[str, NDArray[Any]]) -> "Followed":
        """What `arrays` saved, with the settings of this one."""
        products, calls, *flags = (int(v) for v in arrays["counts"])
        state: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        state |= zip(_FLAGS, map(bool, flags), strict=True)
        state["growth"] = float(arrays["growth"][0])
        return Followed(replace(self.tracker, calls=calls, **state), products)


def critical_arrays(critical: Sequence[Critical]) -> dict[str, NDArray[Any]]:
    """The results of a flow as arrays, for a checkpoint or a store."""
    if not critical:
        return {}
    return {
        "flow.numbers": np.array([[getattr(c, name) for name in _NUMBERS] for c in critical]),
        "flow.counts": np.array([[c.gradients, OUTCOMES.index(c.outcome)] for c in critical]),
        "flow.w": np.stack([np.asarray(c.w) for c in critical]),
    }


def restored_critical(arrays: Mapping[str, NDArray[Any]]) -> CriticalRates:
    """The results that `critical_arrays` saved; none if nothing was saved."""
    if "flow.w" not in arrays:
        return CriticalRates()
    rows = zip(*(arrays[f"flow.{name}"] for name in ("numbers", "counts", "w")), strict=True)
    return CriticalRates(
        Critical(
            **dict(zip(_NUMBERS, numbers.tolist(), strict=True)), gradients=int(counts[0]),
            outcome=OUTCOMES[int(counts[1])], w=jnp.asarray(w),
        )
        for numbers, counts, w in rows
    )  # fmt: skip


class Follow:
    """λ_max as a function to record; it keeps its tracker between the calls."""

    def __init__(self, followed: Followed):
        self.followed = followed

    def __call__(self, problem: Problem, w: Array) -> Estimate:
        estimate, self.followed = self.followed.measure(problem, w)
        return estimate


class Legs:
    """The checkpoint of a flow that runs in legs, one for each loss; `done` holds the results of those that ended.

    `steppe.run` sees it as the checkpoint of the leg under way.
    """

    def __init__(self, inner: Checkpoint, follow: Follow):
        self.inner, self.follow = inner, follow
        saved = inner.load() or {}
        self.done = restored_critical(saved)
        vectors, scalars = part(saved, "leg/"), part(saved, "scalar/")
        self.leg = vectors | {name: a.reshape(()) for name, a in scalars.items()} or None
        if self.leg is not None:
            follow.followed = follow.followed.restored(part(saved, "followed/"))

    def load(self) -> dict[str, NDArray[Any]] | None:
        """Once, what the leg under way had saved; the legs after it start without a checkpoint."""
        leg, self.leg = self.leg, None
        return leg

    def due(self) -> bool:
        return self.inner.due()

    def save(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        # A file may return a number as an array of one entry, so its name says that it is a number.
        kinds = {name: "leg" if np.ndim(a) else "scalar" for name, a in arrays.items()}
        whole = critical_arrays(self.done) | {f"{kinds[name]}/{name}": a for name, a in arrays.items()}
        self.inner.save(whole | {f"followed/{name}": a for name, a in self.follow.followed.arrays().items()})


class ReadOnce:
    """A checkpoint whose every `load` returns what it held at the start."""

    def __init__(self, inner: Checkpoint):
        self.inner, self.saved = inner, inner.load()

    def load(self) -> dict[str, NDArray[Any]] | None:
        return None if self.saved is None else dict(self.saved)

    def due(self) -> bool:
        return self.inner.due()

    def save(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.inner.save(arrays)


def critical_rate(
    problem: Problem,
    w: Any = None,
    *,
    losses: Sequence[float] = (1e-1, 1e-2, 1e-3),
    flow: Flow | None = None,
    stop: until.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
    key: int | Array = 0,
) -> CriticalRates:
    """s₀, s_GF and η_c = 2/s_GF for each of the losses, the largest first, from one gradient flow that starts at w.

    The sharpness is measured along the flow (default rtol 3e-3): whenever the number of steps has grown by 2%, and
    where a loss is reached. `stop` limits the way from each loss to the next, for example until.seconds(60).
    With a `checkpoint` of the store a killed flow resumes to the same result. `progress` is called on the way.
    The definition is that of conflicting-biases, section 2.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([0.5, 0.5]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> (c,) = critical_rate(p, losses=[1e-8])                       # ends near w₁ = w₂ = 1 with sharpness w₁² + w₂²
    >>> round(c.largest_sharpness, 2), round(c.rate, 2)
    (2.0, 1.0)
    """
    Problem.expected(problem)
    if flow is not None and not isinstance(flow, Flow):
        check.refuse("flow", "a steppe.dynamics.Flow", flow, "Pass for example Flow(rtol=1e-3).")
    if stop is not None and not isinstance(stop, until.Stop):
        check.refuse("stop", "a condition of steppe.until", stop, "Pass for example steppe.until.seconds(60).")
    goals = check.numbers("losses", losses, rule="a list of at least one loss", remedy="Pass for example [0.01].")[::-1]
    w = problem.vector(problem.w0 if w is None else w)
    key = seed(key)
    follow = Follow(Followed.fresh(problem, key=key))
    legs = None if checkpoint is None else Legs(checkpoint, follow)
    found = [] if legs is None else list(legs.done)
    flow = flow or Flow(_RTOL)
    flow = Flow(flow.rtol, method=flow.method, origin=w if flow.origin is None else flow.origin)
    for goal in goals[len(found) :]:
        # Each leg continues where the one before ended, but searches for the length of its first step again.
        condition = until.loss(goal) if stop is None else until.loss(goal) | stop
        before = found[-1] if found else None
        leg = run(
            problem, flow, w if before is None else before.w, stop=condition, record={"sharpness": follow},
            when=_LOOKS, checkpoint=legs, progress=progress, key=key,
        )  # fmt: skip
        found.append(_after(leg, goal, before))
        if legs is not None:
            legs.done = CriticalRates(found)
        if leg.outcome != "reached":
            break
    return CriticalRates(found)


def _after(leg: Run, goal: float, before: Critical | None) -> Critical:
    """The flow from its start to the end of this leg."""
    sharpness = leg.records.get("sharpness", np.array([np.nan]))
    elapsed = float(leg.records["time"][-1]) if leg.records else 0.0
    largest, initial, gradients = float(sharpness.max()), float(sharpness[0]), leg.gradients
    if before is not None:
        largest, initial = max(largest, before.largest_sharpness), before.initial_sharpness
        elapsed, gradients = elapsed + before.time, gradients + before.gradients
    return Critical(goal, leg.outcome, leg.w, elapsed, float(sharpness[-1]), initial, largest, gradients)
