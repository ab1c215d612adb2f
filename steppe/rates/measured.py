"""Everything that is read off where a goal was reached."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array

from steppe import linalg, measures
from steppe.measures.operators import hessian
from steppe.problems import Problem
from steppe.rates.predictor import predictor_norms

ORDERS: Mapping[str, Any] = {"l1": 1, "l2": 2, "nuclear": "nuc"}


def per_layer(problem: Problem, w: Any) -> dict[str, float]:
    """ℓ1, ℓ2 and nuclear norm of each array of parameters, by its path, as `measures.layer_norms` has them.

    In numpy: a sweep asks for them at every end, and JAX would compile a program for each shape.
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
    """Norms and loss at the mean of the iterates; NaN where the run was lost on the way to it."""
    loss = measures.loss(problem, centre).value
    if not np.isfinite(loss):
        return {f"centre_{name}": np.nan for name in (*ORDERS, "loss")}
    return norms(per_layer(problem, centre), prefix="centre_") | {"centre_loss": loss}


def distances(w: Any, to: Any, *, prefix: str) -> dict[str, float]:
    away = np.asarray(w, dtype=float) - np.asarray(to, dtype=float)
    return {f"{prefix}_l1": float(np.abs(away).sum()), f"{prefix}_l2": float(np.sqrt(away @ away))}


def fit(problem: Problem, w: Array, *, prefix: str) -> dict[str, float]:
    """Loss, and accuracy where the targets are classes."""
    found = {f"{prefix}_loss": measures.loss(problem, w).value}
    return found | ({f"{prefix}_accuracy": measures.accuracy(problem, w).value} if has_classes(problem) else {})


def has_classes(problem: Problem) -> bool:
    """Class numbers, ±1, or one-hot rows."""
    y = np.asarray(problem.y)
    if np.issubdtype(y.dtype, np.integer):
        return True
    one_hot = y.ndim == 2 and y.shape[1] > 1 and bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all())
    return one_hot or bool((np.abs(y) == 1).all())


def certified_sharpness(problem: Problem, w: Array, *, key: int = 0) -> dict[str, float]:
    """λ_max with the interval that holds it at 99%, 0.1% wide where 300 products are enough.

    Not the last look of the run: where eigenvalues crowd below 2/η its few products fall short by more than that.
    """
    with linalg.one_thread():
        found = linalg.largest(hessian(problem, w), problem.w0.size, max_matvecs=300, key=key).estimate
    return {"sharpness": found.value, "sharpness_lower": found.lower, "sharpness_upper": found.upper}


def sharpness_measures(problem: Problem, w: Array, *, radius: float = 0.1, key: int = 0) -> dict[str, float]:
    """The rows of figure 10 besides λ_max: trace, adaptive sharpness (average and worst case), Fisher λ_max and trace.

    `radius` is that of the adaptive sharpness; the average and the traces are estimated to about 10%.
    """
    found = {
        "trace": measures.trace(problem, w, rtol=0.1, max_matvecs=200, key=key),
        "adaptive_average": measures.adaptive_sharpness(problem, w, radius=radius, max_evaluations=128, key=key),
        "adaptive_worst": measures.adaptive_sharpness(
            problem, w, kind="worst", radius=radius, steps=20, restarts=1, key=key
        ),
        "fisher": measures.fisher_sharpness(problem, w, rtol=1e-2, key=key),
        "fisher_trace": measures.fisher_trace(problem, w, rtol=0.1, max_matvecs=200, key=key),
    }
    return {name: estimate.value for name, estimate in found.items()}


def everything(
    problem: Problem, w: Array, centre: Array, *, start: Array, test: Problem | None, flow_end: Array | None,
    all_sharpness: bool, key: int,
) -> dict[str, float]:  # fmt: skip
    """What a sweep reads off at an end w; `centre` is the mean of the iterates from there."""
    layers = per_layer(problem, w)
    found = certified_sharpness(problem, w, key=key) | norms(layers) | layers
    found |= distances(w, start, prefix="from_start")
    found |= averaged(problem, centre)
    found |= {} if flow_end is None else distances(w, flow_end, prefix="from_flow")
    found |= fit(problem, w, prefix="train") | ({} if test is None else fit(test, w, prefix="test"))
    found |= {f"predictor_{name}": value for name, value in predictor_norms(test or problem, w).items()}
    return found | (sharpness_measures(problem, w, key=key) if all_sharpness else {})
