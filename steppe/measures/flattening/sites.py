"""Where the parameters enter a network: one equation for each array, linear in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax import Array
from jax.extend import core

from steppe.measures.equations import Equation, evaluate, walk
from steppe.measures.flattening.convolution import is_plain

# What only moves the entries of an array, and what may also repeat them.
_MOVES = frozenset({"transpose", "reshape", "squeeze", "expand_dims", "rev", "convert_element_type", "copy"})
_REPEATS = frozenset({"broadcast_in_dim"})
# Affine in each of their inputs, the others held.
_AFFINE = frozenset({"dot_general", "conv_general_dilated", "add", "sub", "mul", "add_any"})


@dataclass(frozen=True)
class Moved:
    """The array of parameters of that number, moved about by a chain of equations."""

    number: int
    chain: tuple[Equation, ...] = ()


@dataclass(frozen=True)
class Site:
    """The equation at a `place` in the order of evaluation whose `operand` is an array of parameters, moved about."""

    place: int
    equation: Equation
    operand: int
    moved: Moved

    @property
    def only_moves(self) -> bool:
        """Whether each entry of the array enters once."""
        return all(equation.primitive.name in _MOVES for equation in self.moved.chain)

    @property
    def is_product(self) -> bool:
        """Whether one row of inputs is multiplied by a matrix: the gradient of an example is then δ ⊗ a."""
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
        """What the equation gives for that array, its other inputs being `others`."""
        inputs = list(others)
        inputs.insert(self.operand, self.entering(array))
        return evaluate(self.equation, inputs)[0]


def sites(closed: core.ClosedJaxpr, arrays: int) -> list[Site] | None:
    """The site of each of the first `arrays` inputs, in the order of evaluation; None where one of them is used twice,
    or otherwise than in a product, a convolution or a sum."""
    found: list[Site] = []
    place = -1

    def look(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        nonlocal place
        place += 1
        name, nothing = equation.primitive.name, [None] * len(equation.outvars)
        held = [(k, a) for k, a in enumerate(inputs) if isinstance(a, Moved)]
        if not held:
            return nothing
        (operand, moved), *more = held
        if name in _MOVES | _REPEATS and len(inputs) == 1:
            return [Moved(moved.number, (*moved.chain, equation))]
        if more or name not in _AFFINE:
            found.append(Site(-1, equation, operand, moved))
        else:
            found.append(Site(place, equation, operand, moved))
        return nothing

    tokens = [Moved(k) for k in range(arrays)] + [None] * (len(closed.jaxpr.invars) - arrays)
    walk(closed, tokens, look)
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
