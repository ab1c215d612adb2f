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
from steppe.dynamics._flow.method import RK4, RKC2, Method
from steppe.dynamics._flow.step import MOST_STILL, ROUNDING, Point, State, Tolerance, interpolate, start, step
from steppe.kernels.path import Indices, Path
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

    The error of each step is controlled. How the errors add up depends on whether the flow brings neighbours together.
    A flow that continues another one measures its distance from where that one began, its `origin`.
    The default method, RKC2, takes steps far longer than 2/λ_max for few more gradients: its cost grows with √κ, that
    of gradient descent and of classical methods with κ. `RK4(alpha)` is the classical method at the step α/λ_max,
    without error control.

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
    method: Method = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    in_time: ClassVar[bool] = True

    def __init__(self, rtol: ArrayLike = 1e-3, *, method: Method = _RKC2, origin: ArrayLike | None = None):
        self.rtol = rate("rtol", rtol)
        if self.rtol.ndim or not 0 < self.rtol < 1:
            check.refuse("rtol", "one number between 0 and 1", rtol, "Pass for example rtol=1e-3.")
        if not isinstance(method, RKC2 | RK4):
            check.refuse("method", "RKC2(...) or RK4(...) of steppe.dynamics", method, "Pass for example RKC2().")
        self.method, self.batch_size = method, None
        if origin is not None:
            origin = check.converted("origin", origin, jax.dtypes.canonicalize_dtype(float))
            check.finite("origin", origin)
        self.origin = None if origin is None else jnp.asarray(origin)

    def check_precision(self, dtype: Any) -> None:
        p = self.method.order
        least = (ROUNDING * float(np.finfo(dtype).eps) / (_FEWEST * _STEPS)) ** (p / (p + 1))
        if self.rtol < least:
            check.refuse("rtol", f"at least {least:.1g} in {dtype}", float(self.rtol), "Use float64 for a smaller one.")

    @property
    def tolerance(self) -> Tolerance:
        """For each gradient of a step: a sum of h^p is h^{p+1} a step, p the order of the method. Across a kink: rtol,
        because such errors do not add up."""
        return Tolerance(_STEPS * self.rtol ** (1 + 1 / self.method.order), self.rtol)

    def gradients(self, state: Any, steps: int) -> int:
        return int(state.gradients)

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

    def start(self, w: Array) -> State:
        origin = w if self.flow.origin is None else self.flow.origin.astype(w.dtype)
        return _start(origin, w, *_evaluate(self.problem, w), jnp.asarray(self.horizon, dtype=float))

    def position(self, state: State) -> Array:
        return state.now.w

    def time(self, state: State) -> float:
        return float(state.now.t)

    def loss(self, state: State) -> float:
        return float(state.now.loss)

    def passed(self, state: State) -> list[float]:
        t0, t1 = float(state.before.t), float(state.now.t)
        return [t for t in self.chosen if t0 < t <= t1]

    def at(self, state: State, time: float) -> Array:
        return _interpolate(state.before, state.now, jnp.asarray(time, dtype=float))

    def advance(
        self, state: State, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[State, int, Halt]:
        goal = jnp.asarray(target)
        state, done, halt = _advance(self.problem, self.flow, state, self.times, jnp.asarray(count), goal)
        if int(halt) == Halt.REACHED and int(done) > 0:
            t, w = _located(self.problem, state, goal)
            point = Point(t, w, *_evaluate(self.problem, w))
            state = state._replace(now=point, gradients=state.gradients + 1)
        return state, int(done), Halt(int(halt))


@eqx.filter_jit
def _evaluate(problem: Problem, w: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(problem.loss)(w)


_start, _interpolate = eqx.filter_jit(start), eqx.filter_jit(interpolate)


@eqx.filter_jit
def _advance(
    problem: Problem, flow: Flow, state: State, times: Array, count: Array, target: Array
) -> tuple[State, Array, Array]:
    def halted(state: State) -> Array:
        halt = jnp.where(state.now.t >= state.horizon, Halt.ENDED, Halt.NOT)
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
        new = step(problem, flow.method, flow.tolerance, state)
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
