"""The critical learning rate η_c = 2/s_GF from a gradient flow that runs at least twice, resumed after a kill."""

import math
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

# The intervals are meant to hold the truth with this probability (docs/rates.md has what was measured). Sharpness is
# measured to MEASURED; two runs are compared where it is above TOP of the largest, and SAFETY times their difference is
# taken (1 did not hold the truth on the first ReLU network looked at: runs that part are not off by their gradients).
CONFIDENCE, MEASURED, TOP, SAFETY = 0.95, 1e-3, 0.9, 2.0


@dataclass(frozen=True, repr=False)
class Critical(Result):
    """The flow from the start to one loss ε: `w` there, its sharpness, and s_GF, the largest on the way.

    `outcome` is `reached`. If the flow ended earlier, it is `stalled`, `exhausted` or `diverged`, and s_GF is the
    largest sharpness up to that end. `gradients` counts the gradients of the flow from the start, not the products.
    `s_gf` is s_GF and `eta_c` is η_c with an interval: the truth lies between `lower` and `upper`, at 95%.
    """

    loss: float
    outcome: Outcome
    w: Array
    time: float
    sharpness: float
    initial_sharpness: float
    largest_sharpness: float
    gradients: int
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def s_gf(self) -> Estimate:
        """s_GF as an estimate. It has not converged, and is without bounds, if the flow ran only once."""
        known = math.isfinite(self.upper)
        return Estimate(self.largest_sharpness, self.lower, self.upper, CONFIDENCE if known else 1.0, converged=known)

    @property
    def eta_c(self) -> Estimate:
        """η_c = 2/s_GF as an estimate; `rate` is its value."""
        lower, upper = (2 / s if s > 0 else math.inf for s in (self.upper, self.lower))
        return replace(self.s_gf, value=self.rate, lower=lower, upper=upper)

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


_BOUNDS = ("lower", "upper")
_NUMBERS = ("loss", "time", "sharpness", "initial_sharpness", "largest_sharpness")


class CriticalRates(Result, tuple[Critical, ...]):
    """The critical rates of one flow, the largest loss first."""

    def table(self) -> Table:
        """One row for each loss."""
        found = {"loss": [c.loss for c in self], "outcome": [c.outcome for c in self], "rate": [c.rate for c in self]}
        rest = {name: [getattr(c, name) for c in self] for name in (*_NUMBERS[1:], *_BOUNDS, "gradients")}
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
        "flow.bounds": np.array([[getattr(c, name) for name in _BOUNDS] for c in critical]),
        "flow.counts": np.array([[c.gradients, OUTCOMES.index(c.outcome)] for c in critical]),
        "flow.w": np.stack([np.asarray(c.w) for c in critical]),
    }


def restored_critical(arrays: Mapping[str, NDArray[Any]]) -> CriticalRates:
    """The results that `critical_arrays` saved; none if nothing was saved."""
    if "flow.w" not in arrays:
        return CriticalRates()
    unbounded = np.tile([-np.inf, np.inf], (len(arrays["flow.w"]), 1))  # earlier versions stored no bounds
    kept = dict(arrays) | {"flow.bounds": arrays.get("flow.bounds", unbounded)}
    rows = zip(*(kept[f"flow.{name}"] for name in ("numbers", "bounds", "counts", "w")), strict=True)
    return CriticalRates(
        Critical(
            **dict(zip(_NUMBERS, numbers.tolist(), strict=True)), **dict(zip(_BOUNDS, bounds.tolist(), strict=True)),
            gradients=int(counts[0]), outcome=OUTCOMES[int(counts[1])], w=jnp.asarray(w),
        )
        for numbers, bounds, counts, w in rows
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
    """s₀, s_GF and η_c = 2/s_GF for each of the losses, the largest first, from the gradient flow that starts at w.

    The sharpness is measured along the flow: whenever the number of steps has grown by 2%, and where a loss is reached.
    The default flow, `Flow(3e-3, verify=True)`, runs at least twice, and the difference of the last two runs gives the
    intervals of s_GF and η_c (`s_gf` and `eta_c` of each result). With verify=False it runs once and there is none.
    `stop` limits the way from each loss to the next, for example until.seconds(60).
    With a `checkpoint` of the store a killed flow resumes to the same result. `progress` is called on the way.
    The definition is that of conflicting-biases, section 2.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([0.5, 0.5]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> (c,) = critical_rate(p, losses=[1e-8])                       # ends near w₁ = w₂ = 1 with sharpness w₁² + w₂²
    >>> round(c.largest_sharpness, 2), round(c.rate, 2), c.eta_c.lower <= 1.0 <= c.eta_c.upper
    (2.0, 1.0, True)
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
    flow = flow or Flow(_RTOL, verify=True)
    origin = w if flow.origin is None else flow.origin
    flow = Flow(flow.rtol, method=flow.method, origin=origin, verify=flow.verify)
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
    largest, initial, gradients, half = float(sharpness.max()), float(sharpness[0]), leg.gradients, _uncertainty(leg)
    if before is not None:
        # The runs of a leg start at one point: what is not known of it adds up.
        half += before.upper - before.largest_sharpness
        largest, initial = max(largest, before.largest_sharpness), before.initial_sharpness
        elapsed, gradients = elapsed + before.time, gradients + before.gradients
    ends = float(sharpness[-1]), initial, largest
    return Critical(goal, leg.outcome, leg.w, elapsed, *ends, gradients, largest - half, largest + half)


def _uncertainty(leg: Run) -> float:
    """How far the largest sharpness along the last run may be from that of the flow.

    It is judged by the coarser run before: by the difference of the largest values and, since these may agree by
    chance, by that of all values near the largest.
    """
    if leg.coarser is None:
        return math.inf
    times, values = leg.records["time"], leg.records["sharpness"]
    others = np.interp(times, leg.coarser.records["time"], leg.coarser.records["sharpness"])
    largest = float(values.max())
    top = values >= TOP * largest if largest > 0 else np.full(len(values), fill_value=True)
    apart = float(np.median(np.abs(values - others)[top]))
    highest = abs(largest - float(leg.coarser.records["sharpness"].max()))
    # Between two looks a peak is higher by at most an eighth of what sharpness falls on both sides.
    k = int(values.argmax())
    peak = (largest - float(values[[k - 1, k + 1]].min())) / 8 if 0 < k < len(values) - 1 else 0.0
    return SAFETY * max(highest, apart) + max(peak, 0.0) + MEASURED * abs(largest)
