"""Measures of the function and of the size of the parameters: loss, accuracy, margin, norms, distance."""

from typing import Any, Literal

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.curvature import AnyProblem, backend
from steppe.curvature._backend import Scores
from steppe.estimate import Estimate
from steppe.measures._policy import read_off

Order = Literal[1, 2, "nuclear"]

# How well a network predicts the data of its problem; `problem.on(x_test, y_test)` is the same network on test data.


def loss(problem: AnyProblem, w: Array | None = None) -> Estimate:
    """L(w), with the normalisation of the problem's loss. NaN, from a run that diverged, has not converged."""
    here = backend(problem)
    return read_off(here.loss_value(problem, here.reproducible(problem, w)))


def zero_one_error(problem: AnyProblem, w: Array | None = None) -> Estimate:
    """The fraction of wrong predictions, read as in `margin`: y f ≤ 0 for one output, and for each output of the
    logistic loss; argmax f ≠ class for an axis of classes, the last one.

    wen2023 prints Pr(y f > 0); ≤ 0 is meant. An output of exactly 0 decides nothing and counts as wrong, and so does
    NaN: a run that diverged has error 1.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.array([1.0, 2.0, 0.0, 3.0]),
    ...             jnp.array([1.0, 1.0, 1.0, -1.0]), steppe.losses.mse)
    >>> zero_one_error(p).value
    0.5
    """
    return Estimate.exact(_wrong_fraction(problem, w))


def accuracy(problem: AnyProblem, w: Array | None = None) -> Estimate:
    """1 − zero-one error."""
    return Estimate.exact(1.0 - _wrong_fraction(problem, w))


def margin(problem: AnyProblem, w: Array | None = None, *, quantile: float = 0.0) -> Estimate:
    """The smallest margin of the predictions: negative if one of them is wrong. The loss and the shape of f decide what
    a margin is:

        logistic; mse of shape (n,) or (…, 1)     y f, for each output
        cross_entropy; mse of several outputs     f_class − max of the other f_k along the last axis

    half_mse and users' losses are read as mse, with the largest target as the class; a user's loss whose targets are
    class numbers is read as cross_entropy. `quantile` > 0 gives that quantile instead of the smallest; 0.5 is the
    median margin. NaN, from a run that diverged, has not converged.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([2.0]), jnp.array([1.0, -3.0]), jnp.array([1.0, -1.0]),
    ...             steppe.losses.logistic())
    >>> margin(p).value
    2.0
    """
    if check.number("quantile", quantile, minimum=0.0) > 1.0:
        check.refuse("quantile", "between 0 and 1", quantile, "0 is the smallest margin, 0.5 the median one.")
    scores = _scores(problem, w)
    with np.errstate(invalid="ignore", over="ignore"):  # a diverged run has infinite predictions
        margins = _margins(scores)
        # Interpolation between infinite margins gives NaN; the minimum needs none.
        return read_off(float(np.quantile(margins, quantile) if quantile else np.min(margins)))


def _scores(problem: AnyProblem, w: Any) -> Scores:
    here = backend(problem)
    return here.scores(problem, here.reproducible(problem, w))


def _margins(scores: Scores) -> NDArray[Any]:
    f, classes = scores.f, _classes(scores)
    if classes is None:
        return np.ravel(f * scores.y)
    classes = classes[..., None]
    others = f.copy()
    np.put_along_axis(others, classes, -np.inf, axis=-1)
    return np.ravel(np.take_along_axis(f, classes, axis=-1)[..., 0] - others.max(axis=-1))


def _wrong_fraction(problem: AnyProblem, w: Array | None) -> float:
    scores = _scores(problem, w)
    f, classes = scores.f, _classes(scores)
    if classes is None:
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = ~(f * scores.y > 0)  # f y ≤ 0 is false for NaN
    else:
        # argmax takes NaN for the largest value.
        wrong = (np.argmax(f, axis=-1) != classes) | np.isnan(f).any(axis=-1)
    return int(wrong.sum()) / wrong.size


def _classes(scores: Scores) -> NDArray[Any] | None:
    """The class of each row of the predictions f; None if each output has to have the sign of its target."""
    f, y = scores.f, scores.y
    if y.shape == f.shape[:-1]:
        return y.astype(int)
    if y.shape != f.shape:
        # Our losses have checked the shape; a user's loss need not.
        rule = f"of the shape of the predictions, {f.shape}, or class numbers of shape {f.shape[:-1]}"
        check.refuse("y", rule, y.shape, "No other shape says which predictions are right.")
    return None if scores.signs else np.argmax(y, axis=-1)


# Norms of the parameters, whole and layer by layer, and how far they have moved.


def norm(problem: AnyProblem, w: Array | None = None, *, order: Order = 2) -> Estimate:
    """‖w‖₁, ‖w‖₂, or the sum of the nuclear norms of the weight matrices.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.array([3.0, -4.0]), jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> norm(p).value, norm(p, order=1).value
    (5.0, 7.0)
    """
    layers = [part.value for part in layer_norms(problem, w, order=order).values()]
    return read_off(sum(v * v for v in layers) ** 0.5 if order == 2 else sum(layers))


def layer_norms(problem: AnyProblem, w: Array | None = None, *, order: Order = 2) -> dict[str, Estimate]:
    """The norm of each array of parameters, by its path; nuclear norms only of arrays with two axes or more.

    A convolution (out, in, ...) counts as the matrix (out, rest).
    """
    if order not in (1, 2, "nuclear"):
        check.refuse("order", "1, 2 or 'nuclear'", order, "Pass one of them.")
    w, norms = backend(problem).vector(problem, w), {}
    for path, array in jax.tree_util.tree_leaves_with_path(problem.unravel(w)):
        array = np.asarray(array)  # noqa: PLW2901  a tensor of any backend
        if order == "nuclear" and array.ndim < 2:
            continue
        flat = array.reshape(array.shape[0], -1) if order == "nuclear" else array.ravel()
        norms[jax.tree_util.keystr(path)] = read_off(_norm(flat, order))
    return norms


def _norm(array: NDArray[Any], order: Order) -> float:
    if order != "nuclear":
        return float(np.linalg.norm(array, order))
    # LAPACK raises for a matrix that is not finite.
    return float(np.linalg.norm(array, "nuc")) if np.isfinite(array).all() else float("nan")


def distance(problem: AnyProblem, w: Array | None = None, *, to: Any = None, order: Order = 2) -> Estimate:
    """‖w − to‖ in the norms of `norm`; `to` is the initialisation problem.w0 unless another point is given.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.array([1.0, 1.0]), jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> distance(p, jnp.array([4.0, 5.0])).value
    5.0
    """
    w = backend(problem).vector(problem, w)
    return norm(problem, w - problem.vector(problem.w0 if to is None else to), order=order)
