"""What a sweep measures where a run reaches a goal."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import linalg, measures
from steppe.curvature import hessian
from steppe.estimate import Accuracy
from steppe.problem import Problem

# The derivative is taken at the first EXAMPLES examples.
EXAMPLES = 256

ORDERS: Mapping[str, Any] = {"l1": 1, "l2": 2, "nuclear": "nuc"}


def predictor_norms(problem: Problem, w: Array) -> dict[str, float]:
    """Norms of the function that the network computes, whatever parameters compute it.

    `output` is the root mean square of ‖f(x)‖ over the data. `derivative` and `derivative_nuclear` are the means of the
    Frobenius and the nuclear norm of ∂f/∂x over the first examples.
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
    """(examples, outputs, inputs), by one backward pass for each output.

    If examples depend on each other, by batch statistics, an example's entry is the derivative of the sum over all.
    """
    params, x = problem.unravel(w), problem.x[:EXAMPLES]
    f, back = jax.vjp(lambda x: problem.predict(params, x).reshape(x.shape[0], -1), x)
    units = jnp.broadcast_to(jnp.eye(f.shape[1], dtype=f.dtype)[:, None, :], (f.shape[1], *f.shape))
    (rows,) = jax.lax.map(back, units)
    return jnp.moveaxis(rows.reshape(*rows.shape[:2], -1), 0, 1)


def per_layer(problem: Problem, w: Any) -> dict[str, float]:
    """ℓ1, ℓ2 and nuclear norm of each array of parameters, by its path, as `measures.layer_norms` has them.

    In numpy, because JAX would compile a program for each shape.
    """
    flat_w: Any = np.asarray(w)
    arrays = jax.tree_util.tree_leaves_with_path(problem.unravel(flat_w))
    found = {}
    for name, order in ORDERS.items():
        for path, array in arrays:
            if name == "nuclear" and array.ndim < 2:
                continue
            flat = array.reshape(len(array), -1) if name == "nuclear" else array.ravel()
            found[name + jax.tree_util.keystr(path)] = float(np.linalg.norm(flat.astype(float), order))
    return found


def norms(layers: Mapping[str, float], *, prefix: str = "") -> dict[str, float]:
    """The three norms of all parameters, from those of the layers."""
    parts = {name: np.array([v for key, v in layers.items() if key.startswith(name)]) for name in ORDERS}
    return {prefix + name: float(np.sqrt(v @ v) if name == "l2" else v.sum()) for name, v in parts.items()}


def averaged(problem: Problem, centre: Array) -> dict[str, float]:
    """Norms and loss at the mean of the iterates; NaN if its loss is not finite."""
    loss = measures.loss(problem, centre).value
    if not np.isfinite(loss):
        return {f"centre_{name}": np.nan for name in (*ORDERS, "loss")}
    return norms(per_layer(problem, centre), prefix="centre_") | {"centre_loss": loss}


def distances(w: Any, to: Any, *, prefix: str) -> dict[str, float]:
    away = np.asarray(w, dtype=float) - np.asarray(to, dtype=float)
    return {f"{prefix}_l1": float(np.abs(away).sum()), f"{prefix}_l2": float(np.sqrt(away @ away))}


def fit(problem: Problem, w: Array, *, prefix: str) -> dict[str, float]:
    """Loss, and accuracy if the targets are classes."""
    found = {f"{prefix}_loss": measures.loss(problem, w).value}
    return found | ({f"{prefix}_accuracy": measures.accuracy(problem, w).value} if has_classes(problem) else {})


def has_classes(problem: Problem) -> bool:
    """Whether the targets are class numbers, ±1, or one-hot rows."""
    y = np.asarray(problem.y)
    if np.issubdtype(y.dtype, np.integer):
        return True
    one_hot = y.ndim == 2 and y.shape[1] > 1 and bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all())
    return one_hot or bool((np.abs(y) == 1).all())


def certified_sharpness(problem: Problem, w: Array, *, key: int = 0) -> dict[str, float]:
    """λ_max with an interval that holds it at 99%, 0.1% wide if 300 products are enough.

    The last measurement of the run is not accurate enough: if many eigenvalues lie just below 2/η, so few products give
    a value that is too low.
    """
    with linalg.one_thread():
        accuracy = Accuracy(1e-3, max_matvecs=300)
        found = linalg.largest(hessian(problem, w), problem.w0.size, accuracy=accuracy, key=key).estimate
    return {"sharpness": found.value, "sharpness_lower": found.lower, "sharpness_upper": found.upper}


def sharpness_measures(problem: Problem, w: Array, *, radius: float = 0.1, key: int = 0) -> dict[str, float]:
    """The rows of figure 10 except λ_max: trace, adaptive sharpness (average and worst case), Fisher λ_max and trace.

    `radius` is that of the adaptive sharpness. The average and the traces have an error of about 10%.
    """
    about = Accuracy(0.1, max_matvecs=200)
    found = {
        "trace": measures.trace(problem, w, accuracy=about, key=key),
        "adaptive_average": measures.adaptive_sharpness(
            problem, w, radius=radius, accuracy=Accuracy(0.1, max_matvecs=128), key=key
        ),
        "adaptive_worst": measures.worst_adaptive_sharpness(problem, w, radius=radius, steps=20, restarts=1, key=key),
        "fisher": measures.fisher_sharpness(problem, w, accuracy=Accuracy(1e-2), key=key),
        "fisher_trace": measures.fisher_trace(problem, w, accuracy=about, key=key),
    }
    return {name: estimate.value for name, estimate in found.items()}


def everything(
    problem: Problem, w: Array, centre: Array, *, start: Array, test: Problem | None, flow_end: Array | None,
    all_sharpness: bool, key: int,
) -> dict[str, float]:  # fmt: skip
    """All that a sweep measures at an end w; `centre` is the mean of the iterates after it."""
    layers = per_layer(problem, w)
    found = certified_sharpness(problem, w, key=key) | norms(layers) | layers
    found |= distances(w, start, prefix="from_start")
    found |= averaged(problem, centre)
    found |= {} if flow_end is None else distances(w, flow_end, prefix="from_flow")
    found |= fit(problem, w, prefix="train") | ({} if test is None else fit(test, w, prefix="test"))
    found |= {f"predictor_{name}": value for name, value in predictor_norms(test or problem, w).items()}
    return found | (sharpness_measures(problem, w, key=key) if all_sharpness else {})
