"""The neurons that can be rescaled without changing a network: found ones, described ones, and their exponents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from steppe import check
from steppe.curvature import backend
from steppe.flattening._rescaling import alike
from steppe.flattening._scales import Groups
from steppe.training_set import Floats

Indices = NDArray[np.int64]


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


@dataclass(frozen=True, eq=False)
class Exponents:
    """e^{(rows t)_of[k]} multiplies parameter k. Parameters with equal exponents share a row, so that a large network
    has few."""

    of: Indices
    rows: csr_array

    @classmethod
    def merged(cls, of: Indices, rows: csr_array) -> "Exponents":
        """With each row once."""
        groups = alike(rows)
        return cls(groups.of[of], csr_array(rows[groups.first]))

    def matrix(self) -> csr_array:
        """A (parameters, units)."""
        return csr_array(self.rows[self.of])

    def sums(self, weights: Any) -> Floats:
        """Σ weights over the parameters of each row."""
        return np.bincount(self.of, weights, minlength=self.rows.shape[0]).astype(float)

    def factors(self, t: Floats) -> Floats:
        """What each parameter is multiplied by."""
        factors: Floats = np.exp(self.rows @ t)[self.of]
        return factors

    def only(self, units: Any) -> "Exponents":
        return Exponents.merged(self.of, csr_array(self.rows[:, units]))


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
    """Neurons found in the equations of a network: the names of the arrays that grow and of those that shrink with
    their scales. `degree` is the largest power with which an array shrinks."""

    into: tuple[str, ...]
    out: tuple[str, ...]
    degree: float
    exponents: Exponents

    def __len__(self) -> int:
        return int(self.exponents.rows.shape[1])

    def __repr__(self) -> str:
        return f"Layer({len(self)} neurons: {', '.join(self.into)} against {', '.join(self.out)})"


AnyLayer = Neurons | Layer


@dataclass(frozen=True)
class Arrays:
    """The position of each array of parameters in the flat vector."""

    starts: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def named(cls, shapes: Mapping[str, tuple[int, ...]]) -> "Arrays":
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()]).tolist()
        return cls(dict(zip(shapes, [0, *ends], strict=False)), dict(shapes))

    @classmethod
    def of(cls, problem: Any) -> "Arrays":
        return cls.named(backend(problem).arrays(problem))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

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

    def exponents(self, layers: Sequence[AnyLayer]) -> tuple[Exponents, list[int]]:
        """The exponents of all these neurons, and the width of each layer.

        >>> arrays = Arrays.named({"W1": (2, 1), "W2": (2,)})
        >>> arrays.exponents([Neurons({"W1": 0}, {"W2": 0})])[0].matrix().toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
        """
        found = [layer.exponents if isinstance(layer, Layer) else self._described(layer) for layer in layers]
        widths = [int(each.rows.shape[1]) for each in found]
        if found and all(each.of is found[0].of for each in found):
            return Exponents(found[0].of, csr_array(hstack([each.rows for each in found]))), widths
        whole = [each.matrix() for each in found] or [csr_array((self.size, 0))]
        return Exponents.merged(np.arange(self.size), csr_array(hstack(whole, format="csr"))), widths

    def _described(self, layer: Neurons) -> Exponents:
        m = self.width(*next(iter(layer.into.items())))
        rows, columns, entries = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        for side, power in ((layer.into, 1.0), (layer.out, -layer.degree)):
            for name, axis in side.items():
                of = self.along(name, axis, m, interleaved=layer.interleaved)
                rows.append(self.starts[name] + np.arange(of.size))
                columns.append(of)
                entries.append(np.full(of.size, power))
        where = (np.concatenate(rows), np.concatenate(columns))
        A = csr_array((np.concatenate(entries), where), shape=(self.size, m))
        A.eliminate_zeros()  # a parameter from a neuron to itself, through a skip connection
        return Exponents.merged(np.arange(self.size), A)

    def layers(self, groups: Groups) -> tuple[Layer, ...]:
        """The found groups, those of one layer together."""
        whole = Exponents.merged(groups.of, groups.rows)
        names, made = list(self.shapes), []
        held = np.zeros((len(names), whole.rows.shape[0]), dtype=bool)  # which array has parameters of which row
        for k, name in enumerate(names):
            held[k, whole.of[self.positions(name)]] = True
        for origin in np.unique(groups.origin):
            rows = csr_array(whole.rows[:, np.flatnonzero(groups.origin == origin)])
            sides = ((sign * rows > 0).sum(axis=1) > 0 for sign in (1, -1))
            into, out = (tuple(names[k] for k in np.flatnonzero((held & side).any(axis=1))) for side in sides)
            made.append(Layer(into, out, float(-min(rows.data.min(), 0.0)), Exponents(whole.of, rows)))
        return tuple(made)


def rescaled(problem: Any, w: Any, layers: Sequence[AnyLayer], scales: Sequence[Any]) -> Any:
    """Other parameters of the same function: the arrays into each neuron times its factor s > 0, the arrays out of it
    times s^{−degree}.

    `scales` has one vector for each of the `layers`, as in `Flattened`.

    >>> import jax.numpy as jnp, steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> p = steppe.Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> rescaled(p, p.w0, [Neurons({"W1": 0}, {"W2": 0})], [[0.5]]).tolist()
    [4.0, 2.0]
    """
    vector = problem.vector(w)
    exponents, widths = Arrays.of(problem).exponents(layers)
    factors = [np.asarray(s, dtype=float) for s in scales]
    got = [s.shape for s in factors]
    if got != [(m,) for m in widths] or not all((np.isfinite(s) & (s > 0)).all() for s in factors):
        rule = f"{len(widths)} vectors of {widths} finite numbers > 0, one for each neuron"
        check.refuse("scales", rule, got, "Pass one factor for each neuron of each layer.")
    logs = np.log(np.concatenate(factors)) if factors else np.empty(0)
    return problem.vector((np.asarray(vector, dtype=float) * exponents.factors(logs)).astype(vector.dtype))
