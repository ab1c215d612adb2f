"""Norms of the parameters, whole and layer by layer."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.measures.inputs import vector
from steppe.measures.read_off import read_off
from steppe.problems import Problem

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
