"""A loss without second derivative where the predictions are has no curvature there."""

from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, losses
from steppe.measures.kink_sites import tolerance
from steppe.problems import Problem
from steppe.problems.flat import Unravel
from steppe.problems.problem import Predict

_SMOOTH = (losses.mse, losses.half_mse, losses.cross_entropy)
# The share of Σ|ℓ″| that may be in doubt: the relative precision that `sharpness` works to.
_SHARE = 1e-3
_TIMES = (-4, -1, 0, 1, 4)
_SIGNS = np.sign(_TIMES)[:, None]


def refuse_kinked_loss(problem: Problem, w: Array) -> None:
    """Refuses a loss without second derivative at the predictions, |f − y| at an interpolator for example.

    The losses of steppe.losses are smooth; those of users are looked at along a direction d that no structure knows,
    φᵢ(t) = ℓ(fᵢ + t d, yᵢ). One whose φᵢ or its derivatives are not finite is refused; so is one with a φᵢ′ that
    jumps, for any example, and one with φᵢ″ that jump, or that autodiff gets wrong at t = 0, for more than 1e-3 of
    the sum of all |φᵢ″|: less is below the precision of the measures. A jump is what stays when the step across,
    some 10² ulp of the predictions, is made four times longer; a smooth change grows with it.
    """
    loss = problem.criterion
    if loss in _SMOOTH or (loss.name == "logistic" and loss == losses.logistic(smoothing=loss.smoothing)):
        return
    f = _predictions(problem.predict, problem.unravel, problem.x, w)
    seen = np.asarray(f)
    if not np.isfinite(seen).all():
        return  # the parameters are to blame, and the measure says so
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
    # Where the slope is constant its rounding errors are left, an ulp of it over a step.
    floor = np.maximum(half * size, half**2 * np.abs(slopes).max(axis=0) / step)
    if size[jumping := _jumps(bends, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative jumps", jumping)
    # Where two equal terms meet in a maximum, autodiff takes half of each: wrong for max(r, 0)² + min(r, 0)² at 0.
    if size[wrong := ~jumping & _jumps(np.abs(bends - bends[2]) * _SIGNS, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative autodiff gets wrong", wrong)


def _jumps(values: NDArray[Any], floor: NDArray[Any]) -> NDArray[Any]:
    """Where values at −4, −1, 0, 1, 4 steps jump at 0: by more than the floor, at one step as at four."""
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


# Compiled once for all losses of a network, and once for all networks with a loss.
@eqx.filter_jit
def _predictions(predict: Predict, unravel: Unravel, x: Any, w: Array) -> Array:
    return predict(unravel(w), x)


@eqx.filter_jit
def _along(loss: losses.Loss, f: Array, y: Array, times: Array) -> tuple[Array, Array]:
    """φᵢ′(t) and φᵢ″(t), (times, examples)."""
    # Of both signs and of all sizes from ½ to 1½: no two outputs move alike, and none stays.
    angles = 1.0 + jnp.arange(f.size, dtype=f.dtype).reshape(f.shape)
    direction = jnp.sign(jnp.cos(angles)) + jnp.sin(jnp.sqrt(2.0) * angles) / 2

    def values(t: Array) -> Array:
        return jax.vmap(loss.example)(f + t * direction, y)

    def slopes(t: Array) -> Array:
        return jax.jvp(values, (t,), (jnp.ones_like(t),))[1]

    # Not vmap: it would hold all of them at once.
    return jax.lax.map(lambda t: jax.jvp(slopes, (t,), (jnp.ones_like(t),)), times)
