"""The rise of the loss under perturbation: adaptive sharpness, on average and at worst; random directions."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core
from numpy.typing import NDArray

from steppe import check
from steppe._random import Key, generator
from steppe.curvature import FULL_BATCH, MEMORY, Statistics, hessian
from steppe.curvature._equations import bodies, shaped, traced
from steppe.curvature._inputs import prepared
from steppe.curvature._operator import settled
from steppe.curvature._statistics import Pieces, Start, part
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._operator import ROUNDING
from steppe.linalg._probes import looks
from steppe.measures._policy import check_policy, interval, measured
from steppe.problem import Problem, ravel

# What rounding does to a difference of two losses, and the same problem in double precision, where it does less.


def unit(problem: Problem) -> float:
    """The relative error of a computed loss: 16 ulp of the narrowest real numbers that the network works with."""
    leaves, structure = jax.tree.flatten(problem)
    return _unit(structure, tuple((a.shape, a.dtype) for a in leaves), jax.dtypes.canonicalize_dtype(float))


@lru_cache(maxsize=256)  # a network is looked at once, not at every step of a trajectory
def _unit(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...], widest: Any) -> float:
    problem = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    closed = traced(lambda problem: problem.loss(problem.w0), problem)
    dtypes = {problem.w0.dtype, *problem.unravel.dtypes, *_reals(closed)}
    return ROUNDING * max(float(jnp.finfo(dtype).eps) for dtype in dtypes)  # type: ignore[no-untyped-call]


def _reals(closed: core.ClosedJaxpr) -> Iterator[jnp.dtype]:
    for equation in closed.jaxpr.eqns:
        yield from (v.aval.dtype for v in equation.outvars if jnp.issubdtype(v.aval.dtype, jnp.floating))
        for body in bodies(equation):
            yield from _reals(body)


def rounding(problem: Problem, w: Array, pieces: Pieces, moves: Array) -> float:
    """A bound on the error of a computed L(w + move) − L(w), for moves like the rows given.

    An example's computed loss is that of parameters and predictions with relative errors of `unit`, layer by layer
    (Higham 2002, section 3.5), rounded once more: it is off by unit · (|ℓᵢ| + ‖∇ℓᵢ ⊙ w‖ + ‖∇_f ℓᵢ ⊙ f‖). The norms are
    those of products with random signs, and the largest sum over the moves counts.
    """
    u = unit(problem)
    size = float(_condition(problem, w, pieces, moves, jnp.asarray(u, w.dtype)))
    return u * size if np.isfinite(size) else np.inf


@eqx.filter_jit
def _condition(problem: Problem, w: Array, pieces: Pieces, moves: Array, u: Array) -> Array:
    def one(row: tuple[Array, Array]) -> Array:
        move, draw = row
        spread, signs, outer = jax.random.split(draw, 3)
        # Where the slope is zero it is not so at the parameters that w may have been rounded to.
        v = w + move + u * jnp.abs(w) * jax.random.normal(spread, w.shape, w.dtype)
        tangent = v * jax.random.rademacher(signs, w.shape, w.dtype)

        def summed(start: Start, size: int) -> Array:
            piece = part(problem, start, size)
            f, df = jax.jvp(piece.predictions, (v,), (tangent,))
            df = df + f * jax.random.rademacher(outer, f.shape, f.dtype)
            values, slopes = jax.jvp(lambda f: jax.vmap(problem.loss_function.example)(f, piece.y), (f,), (df,))
            return jnp.sum(jnp.abs(values) + jnp.abs(slopes))

        return pieces.total(summed) / pieces.n

    return jnp.max(jax.lax.map(one, (moves, jax.random.split(jax.random.key(0), len(moves)))))


def in_double(problem: Problem, w: Array) -> tuple[Problem, Array] | None:
    """The same problem and parameters in float64, for use while JAX runs in 64 bits; None where nothing is gained, in a
    network that is in float64 already or that fixes its own precision."""

    def wide(a: Array) -> np.ndarray:
        return np.asarray(a, np.float64) if jnp.issubdtype(a.dtype, jnp.floating) else np.asarray(a)

    params, x = (jax.tree.map(wide, tree) for tree in (problem.unravel(w), problem.x))
    try:
        other = Problem(problem.predict, params, x, np.asarray(problem.y), problem.loss_function)
        narrower = unit(other) < unit(problem)
    except TypeError:  # constants of its own in float32, where JAX mixes no precisions
        return None
    return (other, ravel(params)[0]) if narrower else None


# The expected increase of the loss under a Gaussian step.

# Draws between two looks at the interval, and the fewest that the interval is known to hold for.
_BATCH, _FEWEST = 16, 64
# Draws whose rounding is looked at, and the share of the width asked for that it may take up in float32.
_ROUNDED, _SHARE = 8, 0.1


def expected_increase(
    problem: Problem,
    w: Array,
    scale: Array,
    *,
    rtol: float,
    confidence: float,
    max_evaluations: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    """E L(w + scale ⊙ g) − L(w), g standard normal, to an interval of relative width rtol.

    Draws come in pairs ±g, which cancels the gradient: ½[L(w + s g) + L(w − s g)] − L(w). What rounding may do to that
    difference is part of the interval; where a few draws show it to be too much, the others are taken in float64.
    `matvecs` counts the evaluations of the loss.
    """
    delta = Accuracy(rtol, confidence).delta
    remedy = f"The interval takes {_FEWEST} pairs."
    max_evaluations = check.integer("max_evaluations", max_evaluations, minimum=2 * _FEWEST, remedy=remedy)
    root = jax.random.key(int(generator(key).integers(2**63)))

    def at(problem: Problem, w: Array) -> _Increase:
        problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
        return _Increase(problem, w, jnp.asarray(np.asarray(scale), w.dtype), pieces)

    def sampled(increase: _Increase) -> Estimate:
        return _sampled(increase, rtol=rtol, delta=delta, max_evaluations=max_evaluations, key=root)

    increase = at(problem, w)
    if problem.w0.dtype == np.float64:
        return sampled(increase)
    # Draws of their own: the sample does not know what they decide.
    trial = jax.random.fold_in(root, max_evaluations)
    too_much = 2.0 * increase.rounding(trial) > _SHARE * rtol * abs(increase.pairs(trial).mean())
    with jax.enable_x64(True) if too_much else nullcontext():
        wide = in_double(problem, increase.w) if too_much else None
        found = sampled(increase if wide is None else at(*wide))
    return replace(found, matvecs=found.matvecs + 2 * _BATCH)


class _Increase(NamedTuple):
    """L(w + scale ⊙ g) − L(w), for batches of draws."""

    problem: Problem
    w: Array
    scale: Array
    pieces: Pieces

    def pairs(self, key: Array) -> NDArray[np.float64]:
        pairs = np.asarray(_increases(*self, jax.random.split(key, _BATCH)), dtype=float)
        check.finite("L(w + step)", pairs, "The loss overflows at that distance: take a smaller radius.")
        return pairs

    def rounding(self, key: Array) -> float:
        return rounding(self.problem, self.w, self.pieces, _steps(self.scale, key))


def _sampled(increase: _Increase, *, rtol: float, delta: float, max_evaluations: int, key: Array) -> Estimate:
    sample, error = np.empty(0), 0.0
    for count, share in looks(_FEWEST, max_evaluations // 2, delta, keep=0.8):
        while len(sample) < count:
            pairs = increase.pairs(jax.random.fold_in(key, len(sample)))
            error = error if len(sample) else increase.rounding(key)
            sample = np.concatenate([sample, pairs])
        value, lower, upper = interval(sample, share)
        # Closer than the rounding no further draw can bring the bounds.
        if upper - lower <= max(rtol * abs(value) - 2.0 * error, error):
            break
    lower, upper = lower - error, upper + error
    converged = upper - lower <= rtol * abs(value)
    return Estimate(value, lower, upper, 1.0 - delta, 2 * len(sample) + 1, converged=converged)


@jax.jit
def _steps(scale: Array, key: Array) -> Array:
    return scale[None] * jax.random.normal(key, (_ROUNDED, scale.size), scale.dtype)


@eqx.filter_jit
def _increases(problem: Problem, w: Array, scale: Array, pieces: Pieces, draws: Array) -> Array:
    def loss(v: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(v))

    def pair(draw: Array) -> Array:
        step = scale * jax.random.normal(draw, w.shape, w.dtype)
        return 0.5 * (loss(w + step) + loss(w - step)) - loss(w)

    return jax.lax.map(pair, draws)


# The largest increase of the loss within an ellipsoid, by projected ascent with restarts.

# The ascent rests when its step, relative to the radius, is this short; the rounding may hide as much of its height.
_REST = 1e-4
# Times that the rounding at its end is looked at.
_ASCENT_ROUNDED = 8


def largest_increase(
    problem: Problem,
    w: Array,
    scale: Array,
    radius: float,
    *,
    steps: int,
    restarts: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    """max L(w + scale ⊙ ε) − L(w) over ‖ε‖₂ ≤ radius: the best point found, sought again in float64 where rounding
    hides the difference."""
    steps = check.integer("steps", steps, minimum=1)
    restarts = check.integer("restarts", restarts, minimum=0)
    root = jax.random.key(int(generator(key).integers(2**63)))

    def found(problem: Problem, w: Array) -> tuple[float, float, int, bool]:
        """(increase, its rounding, gradients, whether all ascents came to rest)."""
        problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
        rho, size = jnp.asarray(radius, w.dtype), jnp.asarray(np.asarray(scale), w.dtype)
        # From 0 the first step goes along the gradient, to the edge: the point that ASAM itself takes.
        draws = jax.random.split(root, restarts)
        starts = [jnp.zeros_like(w), *(jax.random.normal(k, w.shape, w.dtype) for k in draws)]
        ends = [_ascent(problem, w, size, rho, start, steps, pieces) for start in starts]
        value, e, _, _ = max(ends, key=lambda end: float(end[0]))
        check.finite("L(w + step)", float(value), "The loss overflows at that distance: take a smaller radius.")
        error = rounding(problem, w, pieces, jnp.tile(size * e, (_ASCENT_ROUNDED, 1)))
        return float(value), error, sum(int(end[2]) for end in ends), all(bool(end[3]) for end in ends)

    best, error, gradients, at_rest = found(problem, w)
    if error > _REST * best and problem.w0.dtype != np.float64:
        with jax.enable_x64(True):
            wide = in_double(problem, problem.vector(w))
            if wide is not None:
                best, error, more, at_rest = found(*wide)
                gradients += more
    # No step at all attains 0.
    lower = max(best - error, 0.0)
    return Estimate(best, lower, math.inf, 1.0, gradients, converged=at_rest and error <= _REST * best)


@eqx.filter_jit
def _ascent(
    problem: Problem, w: Array, scale: Array, radius: Array, start: Array, steps: int, pieces: Pieces
) -> tuple[Array, Array, Array, Array]:
    """(increase, ε, gradients, whether it came to rest): a step longer by half after each success, half as long after
    each failure, so that the loss never falls."""

    def loss(e: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(w + scale * e))

    def inside(e: Array) -> Array:
        return e * jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(e), float(np.finfo(e.dtype).tiny)))

    def unit(g: Array) -> Array:
        # A point without slope stays where it is.
        length = jnp.linalg.norm(g)
        return jnp.where(length > 0, g / jnp.where(length > 0, length, 1.0), 0.0)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        e, value, g, length, count = state
        trial = inside(e + length * radius * unit(g))
        trial_value, trial_g = jax.value_and_grad(loss)(trial)
        better = trial_value > value
        e, value, g = (jnp.where(better, a, b) for a, b in ((trial, e), (trial_value, value), (trial_g, g)))
        return e, value, g, jnp.where(better, 1.5, 0.5) * length, count + 1

    def going(state: tuple[Array, ...]) -> Array:
        return (state[4] <= steps) & (state[3] > _REST)

    first = inside(start)
    state: tuple[Array, ...] = (first, *jax.value_and_grad(loss)(first), jnp.ones((), w.dtype), jnp.ones((), int))
    e, value, _, length, count = jax.lax.while_loop(going, step, state)
    return value - loss(jnp.zeros_like(w)), e, count, length <= _REST


# Adaptive sharpness: the increase of the loss under steps relative to the size of each parameter.


def adaptive_sharpness(
    problem: Problem,
    w: Array,
    *,
    kind: Literal["average", "worst"] = "average",
    radius: float = 0.1,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_evaluations: int = 10_000,
    steps: int = 50,
    restarts: int = 4,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """The increase of the loss under a step δ_k = |w_k| ε_k, element-wise relative to the parameters:

        average   E L(w + |w| ⊙ ε) − L(w),  ε ~ N(0, ρ² I)
        worst     max L(w + |w| ⊙ ε) − L(w)  over  ‖ε‖₂ ≤ ρ

    with ρ = `radius`. Rescaling a neuron (incoming weights times s, outgoing ones divided by s) changes neither.

    The average is sampled, to an interval of relative width rtol. The worst case is sought by projected ascent of at
    most `steps` steps from the gradient and from `restarts` random points: what it finds is attained, hence `lower`;
    nothing proves that there is no higher point, hence `upper` is infinite, and `converged` tells whether every
    ascent came to rest. `matvecs` counts evaluations of the loss, or of its gradient.

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.array([2.0]), jnp.ones((1, 1)), jnp.array([2.0]), steppe.losses.half_mse)
    >>> round(adaptive_sharpness(p, p.w0, kind="worst", radius=0.5).value, 6)   # L = ½(w − 2)² at w = 2: step 2 · 0.5
    0.5

    Kwon, Kim, Park and Choi 2021 (element-wise, ℓ₂); Andriushchenko et al. 2023 for the average.
    """
    if kind not in ("average", "worst"):
        check.refuse("kind", "'average' or 'worst'", kind, "Pass one of them.")
    check_policy(problem, rtol=rtol, confidence=confidence, statistics=statistics, memory=memory, key=key)
    radius = check.number("radius", radius, above=0.0)
    check.integer("max_evaluations", max_evaluations, minimum=1)
    check.integer("steps", steps, minimum=1)
    check.integer("restarts", restarts, minimum=0)
    w = prepared(problem, w)
    size = np.abs(w)
    if kind == "average":
        estimate = expected_increase(
            problem, w, jnp.asarray(radius * size), rtol=rtol, confidence=confidence, max_evaluations=max_evaluations,
            statistics=statistics, memory=memory, key=key,
        )  # fmt: skip
    else:
        estimate = largest_increase(
            problem, w, jnp.asarray(size), radius, steps=steps, restarts=restarts,
            statistics=statistics, memory=memory, key=key,
        )  # fmt: skip
    return measured(estimate, statistics)


# The other definition of sharpness in wen2023: the expected increase of the loss in a random direction.


def random_direction_sharpness(
    problem: Problem,
    w: Array,
    *,
    sigma: float = 0.01,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_evaluations: int = 10_000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """E L(w + σ g) − L(w), g standard normal in all parameters: (σ²/2) tr ∇²L(w) to leading order in σ.

    `matvecs` counts evaluations of the loss.

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), jnp.eye(2), jnp.zeros(2), steppe.losses.half_mse)
    >>> e = random_direction_sharpness(p, p.w0, sigma=1.0)          # tr ∇²L = 1, and L is quadratic
    >>> e.lower <= 0.5 <= e.upper
    True

    wen2023, section 2, after Foret et al. 2021 and Orvieto et al. 2022.
    """
    check_policy(problem, rtol=rtol, confidence=confidence, statistics=statistics, memory=memory, key=key)
    sigma = check.number("sigma", sigma, above=0.0)
    scale = jnp.asarray(np.full(problem.w0.shape, sigma, problem.w0.dtype))
    estimate = expected_increase(
        problem,
        w,
        scale,
        rtol=rtol,
        confidence=confidence,
        max_evaluations=max_evaluations,
        statistics=statistics,
        memory=memory,
        key=key,
    )
    return measured(estimate, statistics)
