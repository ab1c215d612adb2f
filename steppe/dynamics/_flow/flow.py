"""Gradient flow as a dynamics, and its path through time."""

import math
from typing import Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from steppe import check
from steppe.dynamics._base import Dynamics, rate
from steppe.dynamics._flow import refine
from steppe.dynamics._flow.method import AB2, RK4, RKC2, Method
from steppe.dynamics._flow.refine import Course
from steppe.dynamics._flow.step import MOST_STILL, ROUNDING, Point, State, Tolerance, interpolate, start, step
from steppe.kernels.path import Coarser, Indices, Path
from steppe.outcome import Halt
from steppe.problem import Problem
from steppe.until import Stop
from steppe.when import When

_RKC2 = RKC2()

# A gradient may add the error _STEPS · rtol^{1 + 1/p}. On least squares and on networks this constant was measured to
# leave the error at the end a little below rtol.
_STEPS = 1.25

# Gradients of the shortest step.
_FEWEST = 2

# The located loss differs from the goal by at most this share of it.
LOCATED = 1e-6
MOST_BISECTIONS = 60


@final
class Flow(Dynamics):
    """w′ = −∇L(w), the limit of gradient descent as the rate goes to 0. The error is about rtol · ‖w(t) − w(0)‖.

    The error of each step is controlled; on smooth networks that is enough. A network with kinks, such as ReLU, runs
    again with finer steps until two ends differ by as little as rtol asks for. `Run.error` is the error that is left,
    `Run.coarser` the run before the last, and `Run.gradients` counts all of them. With `verify=True` smooth flows run
    twice too, with `verify=False` every flow runs once. Where kinks rule, runs take steps of α/λ_max with one gradient
    each (`AB2`); no run is finer than α = 1/256 or rtol/30, whatever its error.
    A flow that continues another one measures its distance from where that one began, its `origin`.
    The default method, RKC2, takes steps far longer than 2/λ_max for few more gradients: its cost grows with √κ, that
    of gradient descent and of classical methods with κ. `RK4(alpha)` is the classical method at the step α/λ_max and
    `AB2(alpha)` that of Adams and Bashforth; both are without error control, and run once.

    A step of the run is one step of the method. A run ends at `until.time` exactly, and locates `until.loss` within
    the step; `when.times` records at chosen times between the steps.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> r = steppe.run(p, Flow(rtol=1e-6), stop=steppe.until.time(1.0))
    >>> round(float(r.w[0]), 4), r.outcome                                     # e⁻¹
    (0.3679, 'exhausted')
    """

    rtol: Array
    origin: Array | None
    method: Method
    verify: bool | None = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    in_time: ClassVar[bool] = True

    def __init__(
        self, rtol: ArrayLike = 1e-3, *, method: Method = _RKC2, origin: ArrayLike | None = None,
        verify: bool | None = None,
    ):  # fmt: skip
        self.rtol = rate("rtol", rtol)
        if self.rtol.ndim or not 0 < self.rtol < 1:
            check.refuse("rtol", "one number between 0 and 1", rtol, "Pass for example rtol=1e-3.")
        if not isinstance(method, RKC2 | RK4 | AB2):
            check.refuse(
                "method", "RKC2(), RK4(...) or AB2(...) of steppe.dynamics", method, "Pass for example RKC2()."
            )
        if not isinstance(verify, bool | None) or (verify and not isinstance(method, RKC2)):
            remedy = "Pass None (where there are kinks), True (with RKC2 only) or False."
            check.refuse("verify", "None, True or False, and True with RKC2 only", verify, remedy)
        self.method, self.batch_size, self.verify = method, None, verify
        if origin is not None:
            origin = check.converted("origin", origin, jax.dtypes.canonicalize_dtype(float))
            check.finite("origin", origin)
        self.origin = None if origin is None else jnp.asarray(origin)

    def check_precision(self, dtype: Any) -> None:
        if self.rtol < (least := self.least(dtype)):
            check.refuse("rtol", f"at least {least:.1g} in {dtype}", float(self.rtol), "Use float64 for a smaller one.")

    def least(self, dtype: Any) -> float:
        """The least rtol in this precision."""
        p = self.method.order
        return float((ROUNDING * float(np.finfo(dtype).eps) / (_FEWEST * _STEPS)) ** (p / (p + 1)))

    @property
    def tolerance(self) -> Tolerance:
        return self.tolerated(self.rtol)

    def tolerated(self, rtol: Array) -> Tolerance:
        """For each gradient of a step: a sum of h^p is h^{p+1} a step, p the order of the method. Across a kink: rtol,
        because such errors do not add up."""
        return Tolerance(_STEPS * rtol ** (1 + 1 / self.method.order), rtol)

    def gradients(self, state: Any, steps: int) -> int:
        return int(state.spent + state.state.gradients)

    def path(self, problem: Problem, *, stop: Stop, when: When, key: int, use_kernels: bool) -> Path:
        horizon = math.inf if stop.time is None else stop.time
        return FlowPath(problem, self, horizon, np.asarray(when.flow_times or ()))

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        """Refused: the steps of a flow need its own path, so no wrapper and no batch of runs can take them."""
        check.refuse("dynamics", "a dynamics with steps of fixed length", self, "Run the Flow alone, by steppe.run.")


# Two times, the weighted excess of the loss at both (regula falsi), the true excess at the second, and a count.
Bracket = tuple[Array, Array, Array, Array, Array, Array]


@final
class FlowPath(Path):
    """Many steps of a flow in one call. It ends at the time `horizon`, and pauses at each of the chosen `times`."""

    def __init__(self, problem: Problem, flow: Flow, horizon: float, times: NDArray[Any]):
        flow.check_precision(problem.w0.dtype)
        if flow.origin is not None and flow.origin.shape != problem.w0.shape:
            rule = f"a flat vector of {problem.w0.size} parameters"
            check.refuse("origin", rule, f"shape {flow.origin.shape}", "Pass the w at which the flow began.")
        self.problem, self.flow, self.horizon, self.chosen = problem, flow, horizon, times.tolist()
        self.times = jnp.asarray(np.append(times, np.inf), dtype=float)
        single = flow.verify is False or not isinstance(flow.method, RKC2)
        # Without kinks in its equations no loss is ruled by them, though rounding at a minimum can look like it.
        self.kinked = not single and refine.has_kinks(problem)
        self.verified = self.kinked or (not single and bool(flow.verify))

    def start(self, w: Array) -> Course:
        first = refine.FIRST * self.flow.rtol if self.verified else self.flow.rtol
        return self._course(w, jnp.minimum(first, 0.9), plain=False, spent=0)

    def _course(self, w: Array, fineness: ArrayLike, *, plain: bool, spent: int) -> Course:
        state = _start(self._origin(w), w, *_evaluate(self.problem, w), jnp.asarray(self.horizon, dtype=float))
        return Course(state, w, jnp.asarray(fineness, dtype=float), jnp.asarray(plain), jnp.asarray(spent, dtype=int))

    def _origin(self, w: Array) -> Array:
        return w if self.flow.origin is None else self.flow.origin.astype(w.dtype)

    def position(self, state: Course) -> Array:
        return state.state.now.w

    def time(self, state: Course) -> float:
        return float(state.state.now.t)

    def loss(self, state: Course) -> float:
        return float(state.state.now.loss)

    def passed(self, state: Course) -> list[float]:
        t0, t1 = float(state.state.before.t), float(state.state.now.t)
        return [t for t in self.chosen if t0 < t <= t1]

    def at(self, state: Course, time: float) -> Array:
        return _interpolate(state.state.before, state.state.now, jnp.asarray(time, dtype=float))

    def advance(
        self, state: Course, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Course, int, Halt]:
        goal, course, flow = jnp.asarray(target), state, self.flow
        method: Method = AB2(course.fineness) if bool(course.plain) else flow.method
        watched = jnp.asarray(self.kinked and not bool(course.plain))
        options = (self.times, jnp.asarray(count), goal, watched)
        inner, done, halt = _advance(self.problem, method, flow.tolerated(course.fineness), course.state, *options)
        if int(halt) == Halt.REACHED and int(done) > 0:
            t, w = _located(self.problem, inner, goal)
            point = Point(t, w, *_evaluate(self.problem, w))
            inner = inner._replace(now=point, gradients=inner.gradients + 1)
        return course._replace(state=inner), int(done), Halt(int(halt))

    def gradients(self, state: Course) -> int:
        return int(state.state.gradients)

    def is_whole(self, state: Course, halt: Halt) -> bool:
        """Whether this run came to its end: it is not if steps or seconds ended it, or kinks took over."""
        return halt == Halt.REACHED or (halt == Halt.ENDED and self.time(state) >= self.horizon)

    def error(self, state: Course, coarser: Coarser | None) -> float | None:
        """The error of w at the end as a share of the way; None if there is no other run to compare with."""
        if coarser is None or not self.verified:
            return None
        w, before = (np.asarray(v, dtype=float) for v in (self.position(state), coarser.w))
        way = float(np.linalg.norm(w - np.asarray(self._origin(state.begin), dtype=float)))
        distance = float(np.linalg.norm(w - before))
        if way == 0:
            return 0.0 if distance == 0 else math.inf
        return refine.own_error(distance / way, self.gradients(state), coarser.alone, coarser.error)

    def finer(self, state: Course, halt: Halt, coarser: Coarser | None) -> Course | None:
        if not self.verified:
            return None
        spent = self.flow.gradients(state, 0)
        if not self.is_whole(state, halt):
            ruled = halt == Halt.ENDED
            return self._course(state.begin, refine.PLAIN, plain=True, spent=spent) if ruled else None
        plain, rtol = bool(state.plain), float(self.flow.rtol)
        least = self.flow.least(self.problem.w0.dtype)
        error = self.error(state, coarser)
        fineness = refine.finer(float(state.fineness), rtol, error, plain=plain, least=least)
        return None if fineness is None else self._course(state.begin, fineness, plain=plain, spent=spent)


@eqx.filter_jit
def _evaluate(problem: Problem, w: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(problem.loss)(w)


_start, _interpolate = eqx.filter_jit(start), eqx.filter_jit(interpolate)


@eqx.filter_jit
def _advance(
    problem: Problem, method: Method, tolerance: Tolerance, state: State, times: Array, count: Array, target: Array,
    watched: Array,
) -> tuple[State, Array, Array]:  # fmt: skip
    """Up to `count` steps. A `watched` run also ends where kinks rule it."""

    def halted(state: State) -> Array:
        ends = (state.now.t >= state.horizon) | (watched & refine.ruled_by_kinks(state))
        halt = jnp.where(ends, Halt.ENDED, Halt.NOT)
        stalled = (state.still >= MOST_STILL) & jnp.isinf(state.horizon)
        halt = jnp.where(stalled | state.stuck, Halt.STALLED, halt)
        halt = jnp.where(state.now.loss <= target, Halt.REACHED, halt)
        return jnp.where(jnp.isfinite(state.now.loss), halt, Halt.DIVERGED).astype(jnp.int32)

    mark = times[jnp.searchsorted(times, state.now.t, side="right")]

    def goes_on(carry: tuple[State, Array, Array]) -> Array:
        state, done, halt = carry
        return (done < count) & (halt == Halt.NOT) & (state.now.t < mark)

    def body(carry: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, done, _ = carry
        new = step(problem, method, tolerance, state)
        return new, done + (new.now.t > state.now.t), halted(new)

    begin = (state, jnp.zeros_like(count), halted(state))
    return jax.lax.while_loop(goes_on, body, begin)


@eqx.filter_jit
def _located(problem: Problem, state: State, target: Array) -> tuple[Array, Array]:
    """Time and point within the last step at which the loss fell below the target, by regula falsi (Illinois)."""
    before, now = state.before, state.now

    def excess(t: Array) -> Array:
        return (problem.loss(interpolate(before, now, t)) - target).astype(float)

    def body(carry: Bracket) -> Bracket:
        low, high, f_low, f_high, excess_high, i = carry
        t = high - f_high * (high - low) / (f_high - f_low)
        # Every fourth time a bisection, since the loss may be far from a straight line.
        t = jnp.where((i % 4 == 3) | ~((low < t) & (t < high)), 0.5 * (low + high), t)
        f = excess(t)
        above = f > 0
        return (
            jnp.where(above, t, low), jnp.where(above, high, t),
            jnp.where(above, f, f_low / 2), jnp.where(above, f_high / 2, f), jnp.where(above, excess_high, f), i + 1,
        )  # fmt: skip

    def wide(carry: Bracket) -> Array:
        low, high, _, _, excess_high, i = carry
        return (excess_high < -LOCATED * jnp.abs(target)) & (low < high) & (i < MOST_BISECTIONS)

    f_low, f_high = (before.loss - target).astype(float), (now.loss - target).astype(float)
    _, t, *_ = jax.lax.while_loop(wide, body, (before.t, now.t, f_low, f_high, f_high, jnp.asarray(0)))
    return t, interpolate(before, now, t)
