"""Many steps of gradient descent at many rates in one compiled call."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.dynamics import GD, generic
from steppe.problems import Problem


def advance(
    problem: Problem, rates: NDArray[Any], w: NDArray[Any], *, count: int, targets: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`count` steps from each row of w at its rate, fewer where its target is reached or its loss is lost.

    Returns the rows, the steps done and the halts. Each takes the steps of `steppe.run`, to the bit.
    """
    key, zero, most = jax.random.key(0), jnp.asarray(0), jnp.asarray(count)
    if len(rates) == 1:
        target = jnp.asarray(targets[0])
        one = generic.advance(problem, GD(rates[0]), jnp.asarray(w[0]), None, key, zero, zero, most, target)
        row, done, halt = (np.asarray(a)[None] for a in one)
        return row, done, halt
    many = _together(problem, jnp.asarray(rates), jnp.asarray(w), key, zero, most, jnp.asarray(targets))
    rows, done, halts = map(np.asarray, many)
    return rows, done, halts


@eqx.filter_jit
def _together(
    problem: Problem, rates: Array, w: Array, key: Array, zero: Array, count: Array, targets: Array
) -> tuple[Array, Array, Array]:
    """One rate after another within one call: a batch of them would be 1.4 times as fast and round differently."""

    def one(lane: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        lr, row, target = lane
        return generic.advance(problem, GD(lr), row, None, key, zero, zero, count, target)

    found: tuple[Array, Array, Array] = jax.lax.map(one, (rates, w, targets))
    return found


@eqx.filter_jit
def centre(problem: Problem, lr: Array, w: Array, steps: int) -> Array:
    """The mean of w and of the iterates after it, `steps` points in all.

    At the edge of stability the iterates jump across a valley, to and fro; their mean over an even number of them lies
    near its bottom.
    """

    def body(carry: tuple[Array, Array], nothing: None) -> tuple[tuple[Array, Array], None]:
        w, total = carry
        new, _ = GD(lr).step(problem, w, None, key=jax.random.key(0))
        return (new, total + w), None

    (_, total), _ = jax.lax.scan(body, (w, jnp.zeros_like(w)), None, length=steps)
    return total / steps
