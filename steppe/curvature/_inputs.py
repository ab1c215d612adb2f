"""The function at w: checked parameters, predictions and loss; refusals of random networks and of losses with kinks."""

from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, losses
from steppe.curvature._equations import tolerance
from steppe.problem import Predict, Problem, Unravel

# Parameters and networks.


def check_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        remedy = "Build steppe.Problem(predict, params, x, y, loss): this works on JAX networks only."
        check.refuse("problem", "a steppe.Problem", problem, remedy)


def vector(problem: Problem, w: Any = None) -> Array:
    """`w` as a flat vector of the problem; None means `problem.w0`.

    It need not be finite: a measure of the function can be recorded along a run that diverges.
    """
    check_problem(problem)
    if w is None:
        return problem.w0
    for leaf in jax.tree.leaves(w):
        dtype = np.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            check.refuse("w", "of a real floating type", str(dtype), "Convert it: w.astype(float).")
    return problem.vector(w)


def reproducible(problem: Problem, w: Any = None) -> Array:
    """The same for a network that is one function in JAX; a network that draws new random numbers is refused.

    Callbacks out of JAX are not checked: a check would cost two evaluations at every recorded step of a run.
    """
    v = vector(problem, w)
    problem.content()
    return v


def prepared(problem: Problem, w: Any = None) -> Array:
    """The vector for a measure of curvature: finite, of at least 32 bits, of a network that is the same function at
    every call, callbacks included."""
    v = vector(problem, w)
    check.finite("w", v, "Curvature is defined at finite parameters only: has the run diverged?")
    for dtype in problem.unravel.dtypes:
        if dtype.itemsize < 4:
            # Rounded to three digits, ∇²L v is neither linear in v nor symmetric.
            remedy = 'Build the problem from params.astype("float32") or float64.'
            check.refuse("params", "float32 or float64 for curvature", str(dtype), remedy)
    problem.expect_same_function(v)
    return v


# The values of the function.


def predictions(problem: Problem, w: Array) -> NDArray[Any]:
    return np.asarray(_predictions(problem.predict, problem.unravel, problem.x, w))


def loss_value(problem: Problem, w: Array) -> float:
    return float(_loss(problem, w))


_loss = eqx.filter_jit(lambda problem, w: problem.loss(w))


# A loss without second derivative at the predictions has no curvature there.

# The share of Σ|ℓ″| that may be wrong: the relative precision of `sharpness`.
_SHARE = 1e-3
_TIMES = (-4, -1, 0, 1, 4)
_SIGNS = np.sign(_TIMES)[:, None]


def refuse_kinked_loss(problem: Problem, w: Array) -> None:
    """Refuses a loss without second derivative at the predictions, for example |f − y| at an interpolator.

    The losses of steppe.losses are smooth. A user's loss is tested along a generic direction d,
    φᵢ(t) = ℓ(fᵢ + t d, yᵢ). It is refused
    - if φᵢ′ or φᵢ″ is not finite for some example,
    - if φᵢ′ jumps at t = 0 for some example,
    - if φᵢ″ jumps there, or autodiff computes it wrongly, for more than 1e-3 of the sum of all |φᵢ″|; a smaller share
      is below the precision of the measures.
    A jump stays the same when the step across, some 10² ulp of the predictions, becomes four times longer; a smooth
    change grows with it.
    """
    loss = problem.loss_function
    if losses.ours(loss):
        return
    f = _predictions(problem.predict, problem.unravel, problem.x, w)
    seen = np.asarray(f)
    if not np.isfinite(seen).all():
        return  # the parameters are the cause; the measure reports them
    step = 8 * tolerance(float(np.abs(seen).max()), f.dtype)
    times = jnp.asarray(step * np.array(_TIMES, f.dtype))
    slopes, bends = (np.asarray(a, dtype=float) for a in _along(loss, f, problem.y, times))
    finite = np.isfinite(slopes) & np.isfinite(bends)
    if not finite.all():
        _refuse(loss, "whose derivatives are not finite", ~finite.all(axis=0))
    half = float(np.finfo(f.dtype).eps) ** 0.5
    if (kinked := _jumps(slopes, half * np.abs(slopes).max(axis=0))).any():
        _refuse(loss, "whose slope jumps", kinked)
    size = np.abs(bends).max(axis=0)
    # If the slope is constant, its rounding errors remain: an ulp of it over a step.
    floor = np.maximum(half * size, half**2 * np.abs(slopes).max(axis=0) / step)
    if size[jumping := _jumps(bends, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative jumps", jumping)
    # At a tie in a maximum, autodiff takes half of each side: wrong for max(r, 0)² + min(r, 0)² at 0.
    if size[wrong := ~jumping & _jumps(np.abs(bends - bends[2]) * _SIGNS, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative autodiff gets wrong", wrong)


def _jumps(values: NDArray[Any], floor: NDArray[Any]) -> NDArray[Any]:
    """Which columns jump at 0, given the values at −4, −1, 0, 1 and 4 steps: the change across exceeds the floor and
    does not grow with the step."""
    furthest, below, _, above, last = values
    change = np.abs(above - below)
    jumps: NDArray[Any] = (change > floor) & (change > 0.5 * np.abs(last - furthest))
    return jumps


def _refuse(loss: losses.Loss, trouble: str, where: NDArray[Any]) -> NoReturn:
    check.refuse(
        "loss",
        "twice differentiable at the predictions",
        f"{loss.name!r}, {trouble} at {int(where.sum())} of them",
        "Measure at other parameters, or smooth the loss where it bends.",
    )


# Compiled once for all losses of a network; `_along` once for all networks of a loss.
@eqx.filter_jit
def _predictions(predict: Predict, unravel: Unravel, x: Any, w: Array) -> Array:
    return predict(unravel(w), x)


@eqx.filter_jit
def _along(loss: losses.Loss, f: Array, y: Array, times: Array) -> tuple[Array, Array]:
    """φᵢ′(t) and φᵢ″(t), (times, examples)."""
    # Both signs and all sizes from ½ to 1½: each output moves, no two alike.
    angles = 1.0 + jnp.arange(f.size, dtype=f.dtype).reshape(f.shape)
    direction = jnp.sign(jnp.cos(angles)) + jnp.sin(jnp.sqrt(2.0) * angles) / 2

    def values(t: Array) -> Array:
        return jax.vmap(loss.example)(f + t * direction, y)

    def slopes(t: Array) -> Array:
        return jax.jvp(values, (t,), (jnp.ones_like(t),))[1]

    # vmap would hold all of them at once.
    return jax.lax.map(lambda t: jax.jvp(slopes, (t,), (jnp.ones_like(t),)), times)
