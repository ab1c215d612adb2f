"""How well a network predicts the data of a problem: train it on one, measure it on `problem.on(x_test, y_test)`."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.estimate import Estimate
from steppe.measures.inputs import steady_vector
from steppe.measures.margin import classes
from steppe.measures.read_off import read_off
from steppe.problems import Problem


def loss(problem: Problem, w: Array) -> Estimate:
    """L(w), in the normalisation of the problem's loss. NaN, of a run that diverged, has not converged."""
    return read_off(float(_loss(problem, steady_vector(problem, w))))


def zero_one_error(problem: Problem, w: Array) -> Estimate:
    """The fraction of predictions that are wrong, read as `margin` reads them: y f ≤ 0 for one output, and for each of
    several with the logistic loss; argmax f ≠ class for an axis of classes, the last one.

    wen2023 prints Pr(y f > 0); ≤ 0 is meant. An output of exactly 0 decides nothing and counts as wrong, and so does
    NaN: a run that diverged has error 1.

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
    wrong = _wrong(problem, steady_vector(problem, w))
    return int(wrong.sum()) / wrong.size


@eqx.filter_jit
def _wrong(problem: Problem, w: Array) -> Array:
    f = problem.predictions(w)
    true = classes(problem, f)
    if true is None:
        return ~(f * problem.y > 0)  # and not f y ≤ 0, which NaN is not
    # argmax would take a NaN for the largest.
    return (jnp.argmax(f, axis=-1) != true) | jnp.isnan(f).any(axis=-1)
