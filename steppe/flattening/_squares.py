"""Sums over examples of squared gradients, for every parameter, from the equations of a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core

from steppe._same import traced
from steppe.curvature._equations import Equation, evaluate, walk
from steppe.curvature._matrices import score_root
from steppe.curvature._statistics import Pieces, Start, part
from steppe.problem import Problem, Unravel

# Equations that only move the entries of an array, and the one that may also repeat them.
_MOVES = frozenset({"transpose", "reshape", "squeeze", "expand_dims", "rev", "convert_element_type", "copy"})
_REPEATS = frozenset({"broadcast_in_dim"})
# Affine in each input while the others are constant.
_AFFINE = frozenset({"dot_general", "conv_general_dilated", "add", "sub", "mul", "add_any"})

# The other inputs of each site, and its backpropagated signals, one for each output.
Seen = tuple[list[list[Array]], list[Array]]


def is_plain(equation: Equation) -> bool:
    """A convolution whose filters see all channels."""
    groups = ("feature_group_count", "batch_group_count")
    return equation.primitive.name == "conv_general_dilated" and all(equation.params[name] == 1 for name in groups)


def kernel_gradients(equation: Equation, image: Array, signals: Array) -> Array:
    """(k, *kernel): the gradients of a convolution in its kernel for k signals at the output, for one example.

    A product of matrices, patches of the input times signals. Autodiff would convolve with the signals as filters,
    which XLA does several times slower on a CPU.

    >>> from steppe._same import traced
    >>> one = jnp.ones((1, 1, 2, 2))
    >>> (equation,) = traced(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), one, one).jaxpr.eqns
    >>> kernel_gradients(equation, one, jnp.ones((1, 1, 1, 2, 2)))[0, 0, 0].tolist()   # pixels for each entry
    [[4.0, 2.0], [2.0, 1.0]]
    """
    numbers = equation.params["dimension_numbers"]
    kernel, leaving = equation.invars[1].aval.shape, equation.outvars[0].aval.shape
    window, out = ([shape[axis] for axis in spec[2:]] for shape, spec in
                   ((kernel, numbers.rhs_spec), (leaving, numbers.out_spec)))  # fmt: skip
    patches = _patches(equation.params, jnp.transpose(image, numbers.lhs_spec), window, out)
    rows = jnp.transpose(signals, (0, *(axis + 1 for axis in numbers.out_spec)))
    k, filters, channels = len(signals), leaving[numbers.out_spec[1]], kernel[numbers.rhs_spec[1]]
    # (window · channels, positions) × (positions, k · filters)
    found = patches.reshape(-1, int(np.prod(out))) @ rows.reshape(k * filters, -1).T
    found = found.reshape(*window, channels, k, filters)
    back = len(window)
    # To (k, filters, channels, *window), and from there to the kernel's own order.
    found = jnp.transpose(found, (back + 1, back + 2, back, *range(back)))
    return jnp.transpose(found, (0, *(1 + int(axis) for axis in np.argsort(numbers.rhs_spec))))


def _patches(params: Any, image: Array, window: list[int], out: list[int]) -> Array:
    """(∏ window, channels, *out): the pixels of an image (1, channels, *space) that each kernel entry multiplies."""
    edges = [(low, high, dilation - 1) for (low, high), dilation in
             zip(params["padding"], params["lhs_dilation"], strict=True)]  # fmt: skip
    padded = jax.lax.pad(image[0], jnp.zeros((), image.dtype), [(0, 0, 0), *edges])
    strides = params["window_strides"]

    def seen(offset: tuple[int, ...]) -> Array:
        starts = [i * dilation for i, dilation in zip(offset, params["rhs_dilation"], strict=True)]
        stops = [start + (size - 1) * stride + 1 for start, size, stride in zip(starts, out, strides, strict=True)]
        return jax.lax.slice(padded, (0, *starts), (len(padded), *stops), (1, *strides))

    return jnp.stack([seen(offset) for offset in product(*map(range, window))])


@dataclass(frozen=True)
class Moved:
    """The array of parameters with that `number` after a `chain` of equations that move its entries."""

    number: int
    chain: tuple[Equation, ...] = ()


@dataclass(frozen=True)
class Site:
    """Where an array of parameters enters the network: the equation at a `place` in the order of evaluation, linear in
    its `operand`, which is the moved array."""

    place: int
    equation: Equation
    operand: int
    moved: Moved

    @property
    def only_moves(self) -> bool:
        """Whether each entry of the array enters exactly once."""
        return all(equation.primitive.name in _MOVES for equation in self.moved.chain)

    @property
    def is_product(self) -> bool:
        """Whether the array is a matrix that multiplies one row of inputs: the gradient of an example is then δ ⊗ a."""
        if self.equation.primitive.name != "dot_general" or not self.only_moves:
            return False
        contracted, batch = self.equation.params["dimension_numbers"]
        other = 1 - self.operand
        shape = self.equation.invars[other].aval.shape
        free = [size for axis, size in enumerate(shape) if axis not in contracted[other]]
        return not any(batch) and all(size == 1 for size in free)

    @property
    def is_kernel(self) -> bool:
        """Whether the array is the kernel of a convolution."""
        return is_plain(self.equation) and self.operand == 1 and self.only_moves

    def entering(self, array: Array) -> Array:
        """The array as the equation sees it."""
        for equation in self.moved.chain:
            (array,) = evaluate(equation, [array])
        return array

    def output(self, array: Array, others: Sequence[Array]) -> Array:
        """The output of the equation for this array and its other inputs, `others`."""
        inputs = list(others)
        inputs.insert(self.operand, self.entering(array))
        return evaluate(self.equation, inputs)[0]


def uses(closed: core.ClosedJaxpr, arrays: int) -> list[Site]:
    """Where the first `arrays` inputs meet anything else, in the order of evaluation. The place is −1 if the equation
    is not affine in the array, or if it has two of them."""
    found: list[Site] = []
    place = -1

    def look(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        nonlocal place
        place += 1
        name = equation.primitive.name
        held = [(k, a) for k, a in enumerate(inputs) if isinstance(a, Moved)]
        if held and name in _MOVES | _REPEATS and len(inputs) == 1:
            moved = held[0][1]
            return [Moved(moved.number, (*moved.chain, equation))]
        affine = len(held) == 1 and name in _AFFINE
        found.extend(Site(place if affine else -1, equation, operand, moved) for operand, moved in held)
        return [None] * len(equation.outvars)

    tokens = [Moved(k) for k in range(arrays)] + [None] * (len(closed.jaxpr.invars) - arrays)
    walk(closed, tokens, look)
    return found


def sites(closed: core.ClosedJaxpr, arrays: int) -> list[Site] | None:
    """Where each of these arrays enters; None if one of them is used twice, never, or not in an affine equation."""
    found = uses(closed, arrays)
    alone = sorted(site.moved.number for site in found) == list(range(arrays))
    return found if alone and all(site.place >= 0 for site in found) else None


def watched(
    closed: core.ClosedJaxpr, found: Sequence[Site], args: Sequence[Any], shifts: Sequence[Array]
) -> tuple[Any, list[list[Array]]]:
    """The outputs with a shift added at each site, and the other inputs of each."""
    seen: list[list[Array]] = []
    place = -1

    def step(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        nonlocal place
        place += 1
        outputs = evaluate(equation, inputs)
        if len(seen) < len(found) and found[len(seen)].place == place:
            shift, operand = shifts[len(seen)], found[len(seen)].operand
            seen.append([a for k, a in enumerate(inputs) if k != operand])
            outputs = [outputs[0] + shift]
        return outputs

    return walk(closed, args, step), seen


@eqx.filter_jit
def squares(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """Σᵢ Σ_c (∂B_ic/∂w_k)² for every parameter k, for a network whose `entries` are not None.

    For a dense layer with inputs a the gradient of one output of one example is δ ⊗ a, and its square is δ² ⊗ a²: the
    sum over outputs and examples is one product of matrices. For other sites (convolutions, a layer at several
    positions, biases) the gradient of each example is formed for one array at a time and squared.
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
    """Numbers held at a time for each example; None if some array has no `Site`."""
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
    """Σᵢ Σ_c (gradient)², one example at a time: many at once would be a grouped convolution, which is slow."""

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
    """For one example: the other inputs of each site, and the derivatives of the rows of B by its output."""
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

    moved = Problem.tree_unflatten((predict, example.loss_function, shifts), (none, example.x, example.y))
    rows = jax.jacrev(lambda s: score_root(moved, none)(s).ravel())(none)
    _, others = watched(closed, found, args, shifts(none))
    return others, jax.vmap(shifts)(rows)


def _sites(problem: Problem, w: Array) -> list[Site] | None:
    """The sites of the network for one example."""
    alone = eqx.filter_eval_shape(part, problem, 0, 1)
    params = jax.eval_shape(problem.unravel, w)
    return sites(traced(problem.predict, params, alone.x), len(jax.tree.leaves(params)))
