"""Σ over all rows of B of its squared entries, array by array, without the gradients of examples where that can be."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.measures.equations import traced
from steppe.measures.flattening.convolution import kernel_gradients
from steppe.measures.flattening.sites import Site, sites, watched
from steppe.measures.operators.fisher import score_root
from steppe.measures.operators.pieces import Pieces, Start, part
from steppe.problems import Problem
from steppe.problems.flat import Unravel

# The other inputs of each site, and its backpropagated signals, one for each output.
Seen = tuple[list[list[Array]], list[Array]]


@eqx.filter_jit
def squares(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """Σᵢ Σ_c (∂B_ic/∂w_k)², for a network whose `entries` are known.

    Behind a dense layer with inputs a the gradient of one output of one example is δ ⊗ a, and its square δ² ⊗ a²:
    their sum over examples is one product of matrices, and the outputs are summed before it. Elsewhere (convolutions,
    a layer at several positions, biases) the gradient of each example is formed and squared, in its array alone.
    """
    found, leaves = _sites(problem, w), jax.tree.leaves(problem.unravel(w))
    assert found is not None

    def summed(start: Start, size: int) -> Array:
        piece = part(problem, start, size)
        seen = jax.vmap(lambda i: _signals(part(piece, i, 1), w))(jnp.arange(size))
        totals: dict[int, Array] = {}
        for site, others, signals in zip(found, *seen, strict=True):
            leaf = leaves[site.moved.number]
            route = _products if site.is_product else _one_by_one
            totals[site.moved.number] = route(site, leaf, others, signals).ravel()
        return jnp.concatenate([totals[k] for k in range(len(leaves))])

    return pieces.total(summed)


def entries(problem: Problem, w: Array, outputs: int) -> int | None:
    """Numbers held at a time for each example; None where the arrays do not enter the network in a known way."""
    found = _sites(problem, w)
    if found is None:
        return None
    return outputs * sum(int(np.prod(site.equation.outvars[0].aval.shape)) for site in found)


def _products(site: Site, leaf: Array, others: Sequence[Array], signals: Array) -> Array:
    """Σᵢ (Σ_c δ_ic²) ⊗ aᵢ²."""

    def output(leaf: Array) -> Array:
        return jax.vmap(lambda *inputs: site.output(leaf, inputs))(*(a**2 for a in others))

    (total,) = jax.vjp(output, leaf)[1](jnp.sum(signals**2, axis=1))
    return total


def _one_by_one(site: Site, leaf: Array, others: Sequence[Array], signals: Array) -> Array:
    """Σᵢ Σ_c (gradient)², one example at a time: side by side they would be a grouped convolution, which is slow."""

    def gradients(inputs: Sequence[Array], rows: Array) -> Array:
        if site.is_kernel:
            return kernel_gradients(site.equation, inputs[0], rows)
        pull = jax.vjp(lambda leaf: site.output(leaf, inputs), leaf)[1]
        return jax.vmap(pull)(rows)[0]

    def add(total: Array, example: tuple[Sequence[Array], Array]) -> tuple[Array, None]:
        return total + jnp.sum(gradients(*example) ** 2, axis=0), None

    entering, back = jax.vjp(site.entering, leaf) if site.is_kernel else (leaf, lambda total: (total,))
    total, _ = jax.lax.scan(add, jnp.zeros_like(entering), (list(others), signals))
    return back(total)[0]


def _signals(example: Problem, w: Array) -> Seen:
    """Of one example: what else enters each site, and the derivatives of the rows of B by what leaves it."""
    params = example.unravel(w)
    closed, found = traced(example.predict, params, example.x), _sites(example, w)
    assert found is not None
    args = jax.tree.leaves((params, example.x))
    leaving = [site.equation.outvars[0].aval for site in found]
    shifts = Unravel(
        jax.tree.structure([0] * len(found)), tuple(a.shape for a in leaving), tuple(a.dtype for a in leaving)
    )
    none = jnp.zeros(shifts.size, w.dtype)

    def predict(shifts: list[Array], _: object) -> Array:
        (f,) = watched(closed, found, args, shifts)[0]
        return f

    moved = Problem.tree_unflatten((predict, example.criterion, shifts), (none, example.x, example.y))
    rows = jax.jacrev(lambda s: score_root(moved, none)(s).ravel())(none)
    _, others = watched(closed, found, args, shifts(none))
    return others, jax.vmap(shifts)(rows)


def _sites(problem: Problem, w: Array) -> list[Site] | None:
    """Those of one example."""
    alone = eqx.filter_eval_shape(part, problem, 0, 1)
    params = jax.eval_shape(problem.unravel, w)
    return sites(traced(problem.predict, params, alone.x), len(jax.tree.leaves(params)))
