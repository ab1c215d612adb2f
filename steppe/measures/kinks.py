"""Where a network of ReLU layers has no second derivative: pre-activations within rounding of a kink."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.measures.equations import shaped
from steppe.measures.inputs import prepared
from steppe.measures.kink_sites import is_jump, jumps, margins, shifted, tolerance
from steppe.measures.operators.pieces import part
from steppe.measures.operators.statistics import FULL_BATCH
from steppe.problems import Problem

# Bytes of pre-activations held at a time.
_MEMORY = 2**28


@dataclass(frozen=True, eq=False)
class KinkedLayer:
    """The kinks of one layer: entry k is neuron `neurons[k]` (an index into the layer) on example `examples[k]`.

    `examples` is −1 where the kink is one of the parameters alone. `matters` tells whether the gradient of the loss
    jumps there; it does not where nothing behind the neuron is felt.
    """

    name: str
    examples: NDArray[np.int64]
    neurons: NDArray[np.int64]
    values: NDArray[np.float64]
    matters: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Kinks:
    """All kinks at w, layer by layer; layers without any are left out."""

    layers: tuple[KinkedLayer, ...]

    def __len__(self) -> int:
        return sum(len(layer.values) for layer in self.layers)

    @property
    def matter(self) -> int:
        """How many of them make the gradient of the loss jump."""
        return sum(int(layer.matters.sum()) for layer in self.layers)


def kinks(problem: Problem, w: Array) -> Kinks:
    """The neurons and examples whose pre-activation is within rounding of a kink: |h| ≤ 16 ulp of its layer.

    Read off the network's own equations: relu, max, min, abs, clamp and where(a > b, …), of any network. A
    pre-activation that is zero whatever the parameters are is none, and a tie in max pooling is not looked at.
    Costs a forward pass; where something is found, two gradients and a forward derivative more.

    >>> import steppe
    >>> p = Problem(lambda w, x: jax.nn.relu(x @ w), jnp.array([1.0, -1.0]), jnp.array([[2.0, 1.0], [3.0, 3.0]]),
    ...             jnp.ones(2), steppe.losses.mse)
    >>> found = kinks(p, p.w0)                                      # 2 − 1 = 1, and 3 − 3 = 0
    >>> len(found), found.matter, found.layers[0].examples.tolist()
    (1, 1, [1])
    """
    w = prepared(problem, w)
    names, shapes = eqx.filter_eval_shape(_margins, problem, w)
    if not shapes:
        return Kinks(())
    each = sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in shapes) / len(problem)
    pieces = FULL_BATCH.pieces(problem, w, max(1, int(_MEMORY / max(1.0, each))))
    rows: dict[int, list[KinkedLayer]] = {}
    for start, size in pieces.spans:
        for k, layer in _of_piece(part(problem, start, size), w, start):
            rows.setdefault(k, []).append(layer)
    return Kinks(tuple(_joined(f"{names[k]} {k}", rows[k]) for k in sorted(rows)))


def _of_piece(problem: Problem, w: Array, start: int) -> list[tuple[int, KinkedLayer]]:
    names, found = _margins(problem, w)
    across = [tolerance(_largest(h), h.dtype) for h in found]
    near = [np.abs(h) <= t for h, t in zip(found, across, strict=True)]
    if not any(mask.any() for mask in near):
        return []
    # Eight tolerances carry every one of them across its kink.
    shifts = [jnp.asarray(8 * t * mask, h.dtype) for h, t, mask in zip(found, across, near, strict=True)]
    moves, changes, sizes = _crossed(problem, w, shifts)
    layers = []
    for k, axis in enumerate(_example_axes(problem, w)):
        at = np.nonzero(near[k] & (np.asarray(moves[k]) != 0))
        count = len(at[0])
        if count:
            examples = np.full(count, -1) if axis is None else at[axis] + start
            neurons = [i for a, i in enumerate(at) if a != axis] or [np.zeros(count, dtype=int)]
            values = np.asarray(found[k], dtype=float)[at]
            matters = np.asarray(is_jump(changes[k], sizes[k]))[at]
            layers.append((k, KinkedLayer(names[k], examples, np.stack(neurons, axis=1), values, matters)))
    return layers


def _joined(name: str, parts: list[KinkedLayer]) -> KinkedLayer:
    fields = ("examples", "neurons", "values", "matters")
    return KinkedLayer(name, *(np.concatenate([getattr(p, field) for p in parts]) for field in fields))


def _largest(h: Array) -> float:
    return float(jnp.max(jnp.where(jnp.isfinite(h), jnp.abs(h), 0.0)))


@eqx.filter_jit
def _margins(problem: Problem, w: Array) -> tuple[list[str], list[Array]]:
    return margins(problem.predict, problem.unravel(w), problem.x)


@eqx.filter_jit
def _crossed(problem: Problem, w: Array, shifts: list[Array]) -> tuple[list[Array], list[Array], list[Array]]:
    """How each pre-activation moves with w in a direction, the jump of ∂L/∂h across the kinks, and |∂L/∂h|."""
    direction = jnp.cos(jnp.arange(w.size, dtype=w.dtype))  # none that the network knows
    _, moves = jax.jvp(lambda v: margins(problem.predict, problem.unravel(v), problem.x)[1], (w,), (direction,))

    def loss(shifts: list[Array]) -> Array:
        return problem.criterion(shifted(problem.predict, shifts, problem.unravel(w), problem.x), problem.y)

    return moves, *jumps(loss, shifts)


def _example_axes(problem: Problem, w: Array) -> list[int | None]:
    """Which axis of each site counts the examples: the one that grows with their number."""
    more = jax.tree.map(lambda a: shaped((a.shape[0] + 1, *a.shape[1:]), a.dtype), problem.x)
    _, now = eqx.filter_eval_shape(margins, problem.predict, problem.unravel(w), problem.x)
    _, then = eqx.filter_eval_shape(margins, problem.predict, problem.unravel(w), more)
    differ = [
        [k for k, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n]
        for a, b in zip(now, then, strict=True)
    ]
    return [axes[0] if axes else None for axes in differ]
