"""Whether a network treats each example alone, as all do without batch statistics."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.measures.equations import shaped
from steppe.measures.operators.pieces import part
from steppe.problems import Problem

# Enough examples to have statistics, few enough to cost nothing.
_COMPANY = 64


def treats_examples_alone(problem: Problem, w: Array) -> bool:
    """Whether predictions are the same without the other examples, to half of the digits.

    Compared at w and at a random point as far off as w is long: at w itself a layer of zeros may hide it.

    >>> import steppe
    >>> x, y = jnp.array([[1.0], [2.0]]), jnp.zeros((2, 1))
    >>> centred = Problem(lambda w, x: w * (x - x.mean()), jnp.array([[1.0]]), x, y, steppe.losses.mse)
    >>> treats_examples_alone(centred, centred.w0)
    False
    """
    some = min(_COMPANY, len(problem))
    if not takes(problem, w, some) or not takes(problem, w, 1):
        return False
    few = part(problem, 0, some)
    return all(bool(_compared(few, u)) for u in (w, _elsewhere(w)))


def takes(problem: Problem, w: Array, size: int) -> bool:
    """Whether predict gives one row an example for the first `size` of them too. One that was written for these data
    may not: it holds some of them itself, or their number.

    >>> import steppe
    >>> p = Problem(lambda w, x: w * jnp.ones(2), jnp.array(1.0), jnp.zeros(2), jnp.zeros(2), steppe.losses.mse)
    >>> takes(p, p.w0, 2), takes(p, p.w0, 1)
    (True, False)
    """
    leaves, structure = jax.tree.flatten((problem, w))
    return _takes(structure, tuple((a.shape, a.dtype) for a in leaves), size)


@lru_cache(maxsize=256)  # a network is looked at once, not at every measurement
def _takes(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...], size: int) -> bool:
    problem, w = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    try:
        found = eqx.filter_eval_shape(lambda problem, w: part(problem, 0, size).predictions(w), problem, w)
    except (TypeError, ValueError):
        return False
    return bool(found.shape[0] == size)


@jax.jit
def _elsewhere(w: Array) -> Array:
    length = jnp.sqrt(jnp.mean(w**2))
    return w + jnp.where(length > 0, length, 1) * jax.random.normal(jax.random.key(0), w.shape, w.dtype)


@eqx.filter_jit
def _compared(problem: Problem, w: Array) -> Array:
    together = problem.predictions(w)
    ends = jnp.array([0, len(problem) - 1])
    alone = jax.vmap(lambda i: part(problem, i, 1).predictions(w)[0])(ends)
    scale = jnp.max(jnp.abs(together)) * float(np.finfo(together.dtype).eps) ** 0.5
    return jnp.all(jnp.abs(alone - together[ends]) <= scale)
