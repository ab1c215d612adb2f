"""How well a network predicts the data of a problem: train it on one, measure it on `problem.on(x_test, y_test)`."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.estimate import Estimate
from steppe.problems import Problem


def loss(problem: Problem, w: Array) -> Estimate:
    """L(w), in the normalisation of the problem's loss."""
    return Estimate.exact(float(_loss(problem, problem.vector(w))))


def zero_one_error(problem: Problem, w: Array) -> Estimate:
    """The fraction of examples classified wrongly: y f(x) ≤ 0 for one output, argmax f(x) ≠ class for several.

    wen2023 prints Pr(y f > 0); ≤ 0 is meant. An output of exactly 0 decides nothing and counts as wrong.

    >>> import steppe
    >>> p = Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.array([1.0, 2.0, 0.0, 3.0]),
    ...             jnp.array([1.0, 1.0, 1.0, -1.0]), steppe.losses.mse)
    >>> zero_one_error(p, p.w0).value
    0.5
    """
    return Estimate.exact(_wrong_fraction(problem, w))


def accuracy(problem: Problem, w: Array) -> Estimate:
    """1 − zero-one error."""
    return Estimate.exact(1.0 - _wrong_fraction(problem, w))


_loss = eqx.filter_jit(lambda problem, w: problem.loss(w))


def _wrong_fraction(problem: Problem, w: Array) -> float:
    wrong = _wrong(problem, problem.vector(w))
    return int(wrong.sum()) / wrong.size


@eqx.filter_jit
def _wrong(problem: Problem, w: Array) -> Array:
    f, y = problem.predictions(w), problem.y
    if f.ndim == 1 or (f.ndim == 2 and f.shape[1] == 1):
        return f * y <= 0
    classes = y if jnp.issubdtype(y.dtype, jnp.integer) else jnp.argmax(y, axis=-1)
    return jnp.argmax(f, axis=-1) != classes
