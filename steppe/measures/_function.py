"""Read off the function and the parameters: loss, accuracy, margin, norms, distance."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.curvature._inputs import steady_vector, vector
from steppe.estimate import Estimate
from steppe.measures._policy import read_off
from steppe.problem import Problem

# How clearly the examples are classified.


def margin(problem: Problem, w: Array, *, quantile: float = 0.0) -> Estimate:
    """The smallest margin over the predictions. Negative where one is wrong. The loss and the shape of f say how they
    are read:

        logistic; mse of shape (n,) or (…, 1)     y f, for each output
        cross_entropy; mse of several outputs     f_class − max of the other f_k along the last axis

    with half_mse, and any loss of your own, as mse, where the class is the largest target; or as cross_entropy where
    the targets are class numbers. `quantile` > 0 gives that quantile instead of the
    smallest; 0.5 is the median margin. NaN, of a run that diverged, has not converged.

    >>> import steppe
    >>> p = Problem(lambda w, x: w * x, jnp.array([2.0]), jnp.array([1.0, -3.0]), jnp.array([1.0, -1.0]),
    ...             steppe.losses.logistic())
    >>> margin(p, p.w0).value
    2.0
    """
    if check.number("quantile", quantile, minimum=0.0) > 1.0:
        check.refuse("quantile", "between 0 and 1", quantile, "0 is the smallest margin, 0.5 the median one.")
    margins = _margins(problem, steady_vector(problem, w))
    # Interpolating between infinite margins gives NaN; their minimum needs no interpolating.
    return read_off(float(jnp.quantile(margins, quantile) if quantile else jnp.min(margins)))


def classes(problem: Problem, f: Array) -> Array | None:
    """The class of each row of the predictions f; None where each output is to have the sign of its target."""
    y = problem.y
    if y.shape == f.shape[:-1]:
        return y.astype(int)
    if y.shape != f.shape:
        # Ours have checked that; a user's loss may take anything.
        rule = f"of the shape of the predictions, {f.shape}, or class numbers of shape {f.shape[:-1]}"
        check.refuse("y", rule, y.shape, "No other shape says which predictions are right.")
    signs = problem.loss_function.name == "logistic" or f.ndim == 1 or f.shape[-1] == 1
    return None if signs else jnp.argmax(y, axis=-1)


@eqx.filter_jit
def _margins(problem: Problem, w: Array) -> Array:
    f = problem.predictions(w)
    true = classes(problem, f)
    if true is None:
        return (f * problem.y).ravel()
    right = jnp.take_along_axis(f, true[..., None], axis=-1)[..., 0]
    others = jnp.where(jax.nn.one_hot(true, f.shape[-1], dtype=bool), -jnp.inf, f)
    return (right - jnp.max(others, axis=-1)).ravel()


# How well a network predicts the data of a problem: train it on one, measure it on `problem.on(x_test, y_test)`.


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


# Norms of the parameters, whole and layer by layer.

Order = Literal[1, 2, "nuclear"]


def norm(problem: Problem, w: Array, *, order: Order = 2) -> Estimate:
    """‖w‖₁, ‖w‖₂, or the sum of the nuclear norms of the weight matrices.

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.array([3.0, -4.0]), jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> norm(p, p.w0).value, norm(p, p.w0, order=1).value
    (5.0, 7.0)
    """
    layers = [part.value for part in layer_norms(problem, w, order=order).values()]
    return read_off(sum(v * v for v in layers) ** 0.5 if order == 2 else sum(layers))


def layer_norms(problem: Problem, w: Array, *, order: Order = 2) -> dict[str, Estimate]:
    """The norm of each array of parameters, by its path; the nuclear norm only of those with two axes or more.

    A convolution (out, in, ...) counts as the matrix (out, rest).
    """
    if order not in (1, 2, "nuclear"):
        check.refuse("order", "1, 2 or 'nuclear'", order, "Pass one of them.")
    w, norms = vector(problem, w), {}
    for path, array in jax.tree_util.tree_leaves_with_path(problem.unravel(w)):
        if order == "nuclear" and array.ndim < 2:
            continue
        flat = array.reshape(array.shape[0], -1) if order == "nuclear" else array.ravel()
        value = float(jnp.linalg.norm(flat, "nuc" if order == "nuclear" else order))
        norms[jax.tree_util.keystr(path)] = read_off(value)
    return norms


# How far the parameters have moved.


def distance(problem: Problem, w: Array, *, to: Any = None, order: Order = 2) -> Estimate:
    """‖w − to‖ in the norms of `norm`; `to` is the initialisation problem.w0 unless another point is given.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.array([1.0, 1.0]), jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> distance(p, jnp.array([4.0, 5.0])).value
    5.0
    """
    w = vector(problem, w)
    return norm(problem, w - problem.vector(problem.w0 if to is None else to), order=order)
