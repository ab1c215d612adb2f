"""The neurons that can be rescaled without changing the network: how they are described, found and rescaled."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from steppe.curvature._statistics import part
from steppe.problem import Problem, Unravel

Indices = NDArray[np.int64]

# The function is compared on at most this many examples.
_EXAMPLES = 256
# A factor that is a power of two changes no digit of a product: what differs is a root or a quotient, by a few ulp.
_ULPS = 1e3

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
    `interleaved` in turn (channels last). Neurons tied by a skip connection are one group, with several arrays
    on a side.

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
        factors = _powers_of_two(A, sum(widths))
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


def _powers_of_two(A: csr_array, units: int) -> Any:
    powers = np.random.default_rng(1).choice([-3, -2, -1, 1, 2, 3], units)
    return np.exp2(A @ powers.astype(float))


@dataclass(frozen=True)
class Stage:
    """One layer of a plain stack: its weights, and the vectors that belong to it."""

    weight: str
    vectors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight, *self.vectors)

    def __str__(self) -> str:
        return ", ".join(self.names)


def hidden_layers(function: Function) -> list[Neurons]:
    """The hidden layers of a plain stack of dense or convolutional layers, first to last, read off the parameters and
    checked. If there are none, the error names the layer that fails."""
    candidates = list(_stacks(function.arrays))
    for stages in candidates[:1]:
        for stage in stages:
            if function.normalised(stage.names):
                _refuse_normalised(stage)
    failed: tuple[Stage, Stage] | None = None
    for stages, rows, interleaved in product(candidates, (True, False), (False, True)):
        found = _chain(function.arrays, stages, rows=rows, interleaved=interleaved)
        if found and _ends_in(function.arrays, stages[-1], rows=rows, outputs=function.outputs):
            checked = [_with_degree(function, layer) for layer in found]
            if None not in checked and function.unchanged(layers := [a for a in checked if a is not None]):
                return layers
            failed = failed or next(
                (pair for pair, a in zip(pairwise(stages), checked, strict=True) if a is None), None
            )
    if failed is not None:
        rule = "positively homogeneous between its layers, as relu is and tanh, softplus or a normalisation are not"
        got = f"a function that changes when the neurons of {failed[0]} are rescaled"
        check.refuse("problem.predict", rule, got, _REMEDY)
    shapes = dict(function.arrays.shapes)
    return check.refuse("params", "a stack of at least two dense or convolutional layers", shapes, _REMEDY)


def _refuse_normalised(stage: Stage) -> None:
    check.refuse(
        "problem.predict",
        "without a normalisation behind a layer",
        f"a function of the direction of {stage} only: larger weights are flatter, and none are the flattest",
        _REMEDY,
    )


def _with_degree(function: Function, layer: Neurons) -> Neurons | None:
    """The layer with the degree of its activation, or None if it has none."""
    tried = (replace(layer, degree=degree) for degree in _DEGREES)
    return next((layer for layer in tried if function.unchanged([layer])), None)


def _stacks(arrays: Arrays) -> Iterator[list[Stage]]:
    """Ways to read the arrays as layers in order: a single vector is the bias of the layer before it, and the last
    vector may be the weights of a single output."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name in sorted(arrays.shapes, key=_natural):
        groups.setdefault(_natural(_home(name)), []).append(name)
    ordered = [groups[key] for key in sorted(groups)]
    for last_is_weight in (False, True):
        stages: list[Stage] = []
        early: list[str] = []
        for number, members in enumerate(ordered):
            names = sorted(members, key=lambda name: -len(arrays.shapes[name]))
            dimensions, last = len(arrays.shapes[names[0]]), number == len(ordered) - 1
            lone = dimensions == 1 and _home(names[0]) == names[0] and not (last and last_is_weight)
            if dimensions == 0 or (lone and not stages):
                early += names
            elif lone:
                stages[-1] = replace(stages[-1], vectors=(*stages[-1].vectors, *names))
            else:
                stages.append(Stage(names[0], (*names[1:], *early)))
                early = []
        if len(stages) > 1:
            yield stages


def _chain(arrays: Arrays, stages: Sequence[Stage], *, rows: bool, interleaved: bool) -> list[Neurons] | None:
    """The hidden layers if weights are (out, in, …), or with rows=False (…, in, out); None if the sizes do not fit."""
    layers = []
    for before, after in pairwise(stages):
        if len(arrays.shapes[before.weight]) < 2:
            return None
        outgoing, incoming = (0, 1) if rows else (-1, -2)
        incoming = incoming if len(arrays.shapes[after.weight]) > 1 else 0
        m = arrays.width(before.weight, outgoing)
        vectors = {name: 0 for name in before.vectors if arrays.shapes[name] == (m,)}
        if arrays.width(after.weight, incoming) % m:
            return None
        into = {before.weight: outgoing, **vectors}
        layers.append(Neurons(into, {after.weight: incoming}, interleaved=interleaved))
    return layers


def _ends_in(arrays: Arrays, stage: Stage, *, rows: bool, outputs: int) -> bool:
    """Whether the outputs of the last layer are those of the network."""
    width = arrays.width(stage.weight, 0 if rows else -1) if len(arrays.shapes[stage.weight]) > 1 else 1
    return outputs % width == 0


def _home(name: str) -> str:
    """What the arrays of one layer have in common: the folder "0" of "0.W", the number 1 of "W1"; else the name."""
    folder, dot, own = name.rpartition(".")
    number = re.search(r"\d+$", own)
    return folder if dot else number.group() if number and not own.isdigit() else name


def _natural(name: str) -> tuple[object, ...]:
    """A sort key that puts W2 before W10."""
    pieces = re.split(r"(\d+)", name)
    return tuple((0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in pieces if piece)


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
