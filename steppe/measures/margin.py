"""How clearly the examples are classified."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.problems import Problem


def margin(problem: Problem, w: Array, *, quantile: float = 0.0) -> Estimate:
    """The smallest margin over the examples: y f(x) for one output (and for each of several with labels ±1 and the
    logistic loss), f_class − max of the other f_k for classes. Negative where an example is classified wrongly.

    `quantile` > 0 gives that quantile instead of the smallest; 0.5 is the median margin.

    >>> import steppe
    >>> p = Problem(lambda w, x: w * x, jnp.array([2.0]), jnp.array([1.0, -3.0]), jnp.array([1.0, -1.0]),
    ...             steppe.losses.logistic())
    >>> margin(p, p.w0).value
    2.0
    """
    if check.number("quantile", quantile, minimum=0.0) > 1.0:
        check.refuse("quantile", "between 0 and 1", quantile, "0 is the smallest margin, 0.5 the median one.")
    return Estimate.exact(float(jnp.quantile(_margins(problem, problem.vector(w)), quantile)))


@eqx.filter_jit
def _margins(problem: Problem, w: Array) -> Array:
    f, y = problem.predictions(w), problem.y
    if f.ndim == 1 or (f.ndim == 2 and f.shape[1] == 1) or problem.criterion.name == "logistic":
        return (f * y).ravel()
    classes = y if jnp.issubdtype(y.dtype, jnp.integer) else jnp.argmax(y, axis=-1)
    right = jnp.take_along_axis(f, classes[..., None], axis=-1)[..., 0]
    others = jnp.where(jax.nn.one_hot(classes, f.shape[-1], dtype=bool), -jnp.inf, f)
    return (right - jnp.max(others, axis=-1)).ravel()
