"""Norms of what the network computes, whatever the parameters that compute it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems import Problem

# Examples whose derivative is looked at, the first ones.
EXAMPLES = 256


def predictor_norms(problem: Problem, w: Array) -> dict[str, float]:
    """`output`: the root mean square of ‖f(x)‖ over the data; `derivative` and `derivative_nuclear`: the mean over the
    first examples of the Frobenius and the nuclear norm of ∂f/∂x.

    For a linear network ∂f/∂x is the product of its matrices. Inputs that are not real numbers have no derivative.

    >>> import steppe
    >>> x, y = jnp.array([[3.0, 4.0]]), jnp.zeros((1, 2))
    >>> p = Problem(lambda w, x: x @ w, jnp.diag(jnp.array([1.0, 2.0])), x, y, steppe.losses.half_mse)
    >>> {k: round(v, 3) for k, v in predictor_norms(p, p.w0).items()}       # f(x) = (3, 8); √(1 + 4) and 1 + 2
    {'output': 8.544, 'derivative': 2.236, 'derivative_nuclear': 3.0}
    """
    f = np.asarray(_predictions(problem, problem.vector(w)), dtype=float)
    norms = {"output": float(np.sqrt(np.mean(np.sum(f.reshape(len(f), -1) ** 2, axis=1))))}
    if not isinstance(problem.x, Array) or not jnp.issubdtype(problem.x.dtype, jnp.floating):
        return norms
    J = np.asarray(_derivatives(problem, problem.vector(w)), dtype=float)
    singular = np.linalg.svd(J, compute_uv=False)
    frobenius = np.sqrt(np.sum(singular**2, axis=1))
    return norms | {"derivative": float(frobenius.mean()), "derivative_nuclear": float(singular.sum(axis=1).mean())}


_predictions = eqx.filter_jit(lambda problem, w: problem.predictions(w))


@eqx.filter_jit
def _derivatives(problem: Problem, w: Array) -> Array:
    """(examples, outputs, inputs). A backward pass for each output; where examples see each other, summed over them."""
    params, x = problem.unravel(w), problem.x[:EXAMPLES]
    f, back = jax.vjp(lambda x: problem.predict(params, x).reshape(x.shape[0], -1), x)
    units = jnp.broadcast_to(jnp.eye(f.shape[1], dtype=f.dtype)[:, None, :], (f.shape[1], *f.shape))
    (rows,) = jax.lax.map(back, units)
    return jnp.moveaxis(rows.reshape(*rows.shape[:2], -1), 0, 1)
