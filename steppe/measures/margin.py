"""How clearly the examples are classified."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.measures.inputs import steady_vector
from steppe.measures.read_off import read_off
from steppe.problems import Problem


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
    signs = problem.criterion.name == "logistic" or f.ndim == 1 or f.shape[-1] == 1
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
