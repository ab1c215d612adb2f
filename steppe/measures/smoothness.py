"""A loss without second derivative where the predictions are has no curvature there."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe import check, losses
from steppe.measures.kink_sites import is_jump, jumps, margins, shifted, tolerance
from steppe.problems import Problem

_SMOOTH = (losses.mse, losses.half_mse, losses.cross_entropy)


def refuse_kinked_loss(problem: Problem, w: Array) -> None:
    """Refuses a loss whose slope jumps at a prediction, |f − y| at an interpolator for example.

    The losses of steppe.losses are smooth; those of users are looked at.
    """
    loss = problem.criterion
    if loss in _SMOOTH or (loss.name == "logistic" and loss == losses.logistic(smoothing=loss.smoothing)):
        return
    f = _predictions(problem, w)
    across = tolerance(float(jnp.max(jnp.abs(f))), f.dtype)
    shifts = [jnp.where(jnp.abs(m) <= across, 8 * across, 0.0).astype(m.dtype) for m in _margins(problem, f)]
    if not any(bool(jnp.any(s > 0)) for s in shifts):
        return
    sharp = sum(int(jnp.sum(is_jump(*pair))) for pair in zip(*_jumps(problem, f, shifts), strict=True))
    if sharp:
        check.refuse(
            "loss",
            "twice differentiable at the predictions",
            f"{loss.name!r}, whose slope jumps at {sharp} of them",
            "Measure at other parameters, or smooth the loss where it bends.",
        )


@eqx.filter_jit
def _predictions(problem: Problem, w: Array) -> Array:
    return problem.predictions(w)


@eqx.filter_jit
def _margins(problem: Problem, f: Array) -> list[Array]:
    return margins(problem.criterion, f, problem.y)[1]


@eqx.filter_jit
def _jumps(problem: Problem, f: Array, shifts: list[Array]) -> tuple[list[Array], list[Array]]:
    return jumps(lambda s: shifted(problem.criterion, s, f, problem.y), shifts)
