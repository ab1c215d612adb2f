"""The neurons that can be rescaled without changing the network: how they are described, found and rescaled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import check
from steppe._same import shaped, traced
from steppe.curvature._equations import Equation
from steppe.curvature._statistics import part
from steppe.flattening._squares import Site, is_plain, uses
from steppe.problem import Predict, Problem, Unravel

Indices = NDArray[np.int64]

# The function is compared on at most this many examples.
_EXAMPLES = 256
# A factor that is a power of two changes no digit of a product: what differs is a root or a quotient, by a few ulp.
_ULPS = 1e3

# Equations whose operands are weights, and those in which a vector is one: a factor of each neuron.
_PRODUCTS, _SCALES = frozenset({"dot_general", "conv_general_dilated"}), frozenset({"mul", "div"})

# The degrees of homogeneity that are tried for an activation.
_DEGREES = (1.0, 2.0, 3.0, 4.0)
_REMEDY = "Pass layers=[steppe.flattening.Neurons(into=..., out=...), ...] for the neurons that can be rescaled."


@dataclass(frozen=True)
class Neurons:
    """A group of hidden neurons, or channels: the arrays that lead into them and out of them, {array: axis that counts
    the neurons}.

    Arrays are named by their path, "W1" or "0.W". A rescaling multiplies the arrays `into` by s > 0 and the arrays
    `out` by s^{−degree}, where `degree` is the degree of the activation. The length of an outgoing axis may be a
    multiple of the number of neurons, as after flattening the channels of a convolution: neuron after neuron, or with
    `interleaved` all neurons once and then again (channels last). Neurons tied by a skip connection are one group, with
    several arrays on a side.

    >>> Neurons(into={"W1": 0, "b1": 0}, out={"W2": 1})
    Neurons(into={'W1': 0, 'b1': 0}, out={'W2': 1})
    """

    into: Mapping[str, int]
    out: Mapping[str, int]
    degree: float = field(default=1.0, repr=False)
    interleaved: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for name, side in (("into", self.into), ("out", self.out)):
            if not isinstance(side, Mapping) or not side:
                check.refuse(name, "a non-empty dict {array: axis}", side, 'For example into={"W1": 0, "b1": 0}.')
        check.number("degree", self.degree, above=0.0)


@dataclass(frozen=True)
class Arrays:
    """The position of each array of parameters in the flat vector."""

    starts: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, unravel: Unravel) -> "Arrays":
        numbered = jax.tree.unflatten(unravel.treedef, list(range(len(unravel.shapes))))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(numbered)]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path in paths]
        ends = np.cumsum([int(np.prod(shape)) for shape in unravel.shapes]).tolist()
        return cls(dict(zip(names, [0, *ends], strict=False)), dict(zip(names, unravel.shapes, strict=True)))

    def positions(self, name: str) -> slice:
        return slice(self.starts[name], self.starts[name] + int(np.prod(self.shapes[name])))

    def width(self, name: str, axis: int) -> int:
        """The length of that axis; an axis that does not exist is refused."""
        if name not in self.shapes:
            check.refuse("layers", "neurons whose arrays the network has", name, check.suggest(name, self.shapes))
        shape = self.shapes[name]
        if not -len(shape) <= axis < len(shape):
            check.refuse("layers", f"neurons on an axis of {name!r}, of shape {shape}", axis, "Count axes from 0.")
        return shape[axis]

    def along(self, name: str, axis: int, m: int, *, interleaved: bool = False) -> Indices:
        """For each entry of the array, in flat order, the number of its neuron among m."""
        width = self.width(name, axis)
        if width % m:
            got = f"an axis of length {width} in {name!r}"
            rule = f"neurons on axes of length {m}, or a multiple of it on the way out"
            check.refuse("layers", rule, got, "Name the axis that counts the neurons.")
        shape = self.shapes[name]
        of = np.arange(width) % m if interleaved else np.arange(width) // (width // m)
        beside = [1] * len(shape)
        beside[axis] = width
        return np.broadcast_to(of.reshape(beside), shape).reshape(-1)

    def exponents(self, layers: Sequence[Neurons]) -> tuple[csr_array, list[int]]:
        """A (parameters, neurons), where e^{(At)_k} multiplies the parameter k, and the width of each layer.

        >>> from steppe.problem import ravel
        >>> _, unravel = ravel({"W1": np.ones((2, 1)), "W2": np.ones(2)})
        >>> Arrays.of(unravel).exponents([Neurons({"W1": 0}, {"W2": 0})])[0].toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
        """
        rows, columns, entries = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        widths: list[int] = []
        for layer in layers:
            m = self.width(*next(iter(layer.into.items())))
            for side, power in ((layer.into, 1.0), (layer.out, -layer.degree)):
                for name, axis in side.items():
                    of = self.along(name, axis, m, interleaved=layer.interleaved)
                    rows.append(self.starts[name] + np.arange(of.size))
                    columns.append(sum(widths) + of)
                    entries.append(np.full(of.size, power))
            widths.append(m)
        size = sum(int(np.prod(shape)) for shape in self.shapes.values())
        where = (np.concatenate(rows), np.concatenate(columns))
        A = csr_array((np.concatenate(entries), where), shape=(size, sum(widths)))
        A.eliminate_zeros()  # a parameter from a neuron to itself, through a skip connection
        return A, widths


@eqx.filter_jit
def _predictions(problem: Problem, w: Array) -> Array:
    return problem.predictions(w)


class Function:
    """The network on some examples, at w and at a random point near it: it answers which rescalings change nothing.

    w alone is not enough: a network whose last layer is zero would have every symmetry there.
    """

    def __init__(self, problem: Problem, w: Array):
        self.problem, self.arrays = part(problem, 0, min(_EXAMPLES, len(problem))), Arrays.of(problem.unravel)
        given, moved, rng = np.asarray(w, dtype=float), np.array(w, dtype=float), np.random.default_rng(0)
        for name in self.arrays.starts:
            own = self.arrays.positions(name)
            size = np.sqrt(np.mean(given[own] ** 2)) or 1.0
            moved[own] += 0.5 * size * rng.standard_normal(moved[own].shape)
        self.points = (given, moved)
        self.values = tuple(self(point) for point in self.points)

    @property
    def outputs(self) -> int:
        """The number of outputs for one example."""
        return int(np.prod(self.values[0].shape[1:]))

    def __call__(self, w: Any) -> Any:
        return np.asarray(_predictions(self.problem, jnp.asarray(w, self.problem.w0.dtype)))

    def unchanged(self, layers: Sequence[Neurons]) -> bool:
        """Whether random factors from 1/8 to 8 for these neurons leave the function unchanged."""
        A, widths = self.arrays.exponents(layers)
        powers = np.random.default_rng(1).choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], sum(widths))
        factors = np.exp2(A @ powers)
        return all(
            self._equal(self(point * factors), value) for point, value in zip(self.points, self.values, strict=True)
        )

    def normalised(self, names: Sequence[str]) -> bool:
        """Whether the size of these arrays has no effect: multiplied together by 2²⁰ and by 2⁴⁰ they give one function,
        and unchanged nearly the same one (a normalisation may add a small constant to a variance)."""
        own = np.concatenate([np.arange(self.points[1].size)[self.arrays.positions(name)] for name in names])
        value, point = self.values[1], self.points[1]

        def times(factor: float) -> Any:
            scaled = point.copy()
            scaled[own] *= factor
            return self(scaled)

        large, larger = times(2.0**20), times(2.0**40)
        scale = np.max(np.abs(value), initial=0.0)
        return bool(
            np.max(np.abs(times(0.0) - value), initial=0.0) > 0.01 * scale  # the arrays matter
            and self._equal(larger, large)
            and np.max(np.abs(large - value), initial=0.0) <= 0.01 * scale
        )

    def _equal(self, f: Any, g: Any) -> bool:
        eps = float(np.finfo(self.problem.w0.dtype).eps)
        return bool(np.max(np.abs(f - g), initial=0.0) <= _ULPS * eps * np.max(np.abs(g), initial=0.0))


@dataclass(frozen=True)
class Stage:
    """One layer of a plain stack: its weights, the axes of them that may count the neurons it leads to (`out`) and
    those it comes from (`into`), and the vectors that are added to its outputs."""

    weight: str
    out: tuple[int, ...]
    into: tuple[int, ...]
    vectors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight, *self.vectors)

    def __str__(self) -> str:
        return ", ".join(self.names)


def hidden_layers(function: Function) -> list[Neurons]:
    """The hidden layers of a plain stack, first to last, read off the equations of the network and checked. If there
    are none, the error names the layer that fails."""
    problem, shapes = function.problem, function.arrays.shapes
    x, treedef = jax.tree.flatten(problem.x)
    example = tuple(shaped((1, *a.shape[1:]), a.dtype) for a in x)
    stages = _stages(problem.predict, problem.unravel, treedef, example)
    for stage in stages:
        if function.normalised(stage.names):
            got = f"a function of the direction of {stage} only: larger weights are flatter, and none are the flattest"
            check.refuse("problem.predict", "without a normalisation behind a layer", got, _REMEDY)
    layers = []
    for before, after in pairwise(stages):
        tried = list(_between(shapes, before, after))
        if not tried:
            break
        found = next((layer for layer in tried if function.unchanged([layer])), None)
        if found is None:
            rule = "positively homogeneous between its layers, as relu is and tanh, softplus or a normalisation are not"
            got = f"a function that changes when the neurons of {before} are rescaled"
            check.refuse("problem.predict", rule, got, _REMEDY)
        layers.append(found)
    if not layers or len(layers) < len(stages) - 1 or not function.unchanged(layers):
        check.refuse("params", "a stack of at least two dense or convolutional layers", dict(shapes), _REMEDY)
    return layers


@lru_cache(maxsize=8)
def _stages(predict: Predict, unravel: Unravel, treedef: Any, example: tuple[Any, ...]) -> tuple[Stage, ...]:
    """The layers in the order of the network's equations; each array counts where it is used first.

    What is multiplied with the activations is a weight, whatever its name. What is added, or used in any other way, is
    a vector of the weight before it; a matrix is not.
    """
    leaves = [shaped(shape, dtype) for shape, dtype in zip(unravel.shapes, unravel.dtypes, strict=True)]
    params, x = jax.tree.unflatten(unravel.treedef, leaves), jax.tree.unflatten(treedef, example)
    stages: list[Stage] = []
    left = dict(enumerate(Arrays.of(unravel).shapes.items()))
    for site in uses(traced(predict, params, x), len(leaves)):
        if site.moved.number not in left:
            continue
        name, shape = left.pop(site.moved.number)
        kind, long = site.equation.primitive.name, sum(length > 1 for length in shape)
        if kind in _PRODUCTS or long > 1 or (long and kind in _SCALES):
            stages.append(Stage(name, *_axes(site, shape)))
        elif stages:
            stages[-1] = replace(stages[-1], vectors=(*stages[-1].vectors, name))
    return tuple(stages)


def _axes(site: Site, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of a weight that may count outputs, and those that may count inputs."""
    every, equation = tuple(range(len(shape))), site.equation
    if equation.primitive.name == "dot_general":
        contracted, _ = equation.params["dimension_numbers"]
        inputs = set(contracted[site.operand])
        outputs = set(range(len(equation.invars[site.operand].aval.shape))) - inputs
    elif equation.primitive.name == "conv_general_dilated" and site.operand == 1:
        first, second, *_ = equation.params["dimension_numbers"].rhs_spec
        # A filter of a group sees some channels only; with one channel each, the filters count the inputs too.
        outputs, inputs = {first}, {second} if is_plain(equation) else {first, second}
    else:
        return every, every

    def along(axis: int) -> set[int]:
        """The axes of the array that the equation sees along which the entries of this axis lie."""
        numbers = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in every])
        moved = _moved(np.broadcast_to(numbers, shape), site.moved.chain)
        return {k for k in range(moved.ndim) if (np.diff(moved, axis=k) != 0).any()}

    lies = [along(axis) for axis in every]
    short = tuple(k for k in every if shape[k] == 1)  # lies nowhere: it counts if no other axis does
    out, into = (tuple(k for k in every if lies[k] & side) or short for side in (outputs, inputs))
    return out, into


def _moved(array: Indices, chain: Sequence[Equation]) -> Indices:
    """`Site.entering` in numpy: JAX would compile a program for each equation and shape."""
    for equation in chain:
        name, shape = equation.primitive.name, equation.outvars[0].aval.shape
        if name == "transpose":
            array = array.transpose(equation.params["permutation"])
        elif name == "rev":
            array = np.flip(array, equation.params["dimensions"])
        elif name == "broadcast_in_dim":
            beside = np.ones(len(shape), int)
            beside[list(equation.params["broadcast_dimensions"])] = array.shape
            array = np.broadcast_to(array.reshape(beside), shape)
        else:
            array = array.reshape(shape)
    return array


def _between(shapes: Mapping[str, tuple[int, ...]], before: Stage, after: Stage) -> Iterator[Neurons]:
    """The neurons that may lie between two layers; none if the sizes do not fit."""
    shape = shapes[before.weight]
    for axis, incoming in product(sorted(before.out, key=lambda k: -shape[k]), after.into):
        m, width = shape[axis], shapes[after.weight][incoming]
        if width % m:
            continue
        into = {before.weight: axis} | {name: shapes[name].index(m) for name in before.vectors if m in shapes[name]}
        for interleaved, degree in product((False, True) if width > m > 1 else (False,), _DEGREES):
            yield Neurons(into, {after.weight: incoming}, degree, interleaved)


def rescaled(problem: Problem, w: Any, layers: Sequence[Neurons], scales: Sequence[Any]) -> Array:
    """Other parameters of the same function: the arrays into each neuron times its factor s > 0, the arrays out of it
    times s^{−degree}.

    `scales` has one vector for each of the `layers`, as in `Flattened`.

    >>> import steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> p = Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> rescaled(p, p.w0, [Neurons({"W1": 0}, {"W2": 0})], [[0.5]]).tolist()
    [4.0, 2.0]
    """
    vector = problem.vector(w)
    A, widths = Arrays.of(problem.unravel).exponents(layers)
    factors = [np.asarray(s, dtype=float) for s in scales]
    got = [s.shape for s in factors]
    if got != [(m,) for m in widths] or not all((np.isfinite(s) & (s > 0)).all() for s in factors):
        rule = f"{len(widths)} vectors of {widths} finite numbers > 0, one for each neuron"
        check.refuse("scales", rule, got, "Pass one factor for each neuron of each layer.")
    logs = np.log(np.concatenate(factors)) if factors else np.empty(0)
    return jnp.asarray(np.asarray(vector, dtype=float) * np.exp(A @ logs), vector.dtype)
