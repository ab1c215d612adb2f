"""Hidden neurons that can be rescaled: which arrays of parameters lead into them, and which out of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import check
from steppe.problems.flat import Unravel

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Neurons:
    """A group of hidden neurons, or channels: {array: axis that counts them}, on the way in and on the way out.

    Arrays are named by their path, "W1" or "0.W". What leads in is multiplied by s > 0, what leads out by s^{−degree},
    with the activation of that degree. An outgoing axis may be a multiple of the number of neurons, as when the
    channels of a convolution are flattened: neuron after neuron, or with `interleaved` in turn (channels last).
    Neurons tied by a skip connection are one group with several arrays on either side.

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
                check.refuse(name, "a dict {array: axis}, not empty", side, 'For example into={"W1": 0, "b1": 0}.')
        check.number("degree", self.degree, above=0.0)


@dataclass(frozen=True)
class Arrays:
    """Where each array of parameters stands in the flat vector."""

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
        """The length of that axis, refused where there is none."""
        if name not in self.shapes:
            check.refuse("layers", "of arrays of the network", name, check.suggest(name, self.shapes))
        shape = self.shapes[name]
        if not -len(shape) <= axis < len(shape):
            check.refuse("layers", f"with an axis of {name!r}, of shape {shape}", axis, "Count axes from 0.")
        return shape[axis]

    def along(self, name: str, axis: int, m: int, *, interleaved: bool = False) -> Indices:
        """Of each entry of the array, in flat order, the number of its neuron of m."""
        width = self.width(name, axis)
        if width % m:
            got = f"an axis of length {width} in {name!r}"
            check.refuse("layers", f"with axes of {m} neurons, or a multiple on the way out", got, "Name the axis.")
        shape = self.shapes[name]
        of = np.arange(width) % m if interleaved else np.arange(width) // (width // m)
        beside = [1] * len(shape)
        beside[axis] = width
        return np.broadcast_to(of.reshape(beside), shape).reshape(-1)


def exponents(arrays: Arrays, layers: Sequence[Neurons], size: int) -> tuple[csr_array, list[int]]:
    """A (parameters, neurons), the parameter k being multiplied by e^{(At)_k}, and the width of each layer.

    >>> from steppe.problems.flat import ravel
    >>> w, unravel = ravel({"W1": np.ones((2, 1)), "W2": np.ones(2)})
    >>> exponents(Arrays.of(unravel), [Neurons({"W1": 0}, {"W2": 0})], w.size)[0].toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    rows, columns, entries = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    widths: list[int] = []
    for layer in layers:
        m = arrays.width(*next(iter(layer.into.items())))
        for side, power in ((layer.into, 1.0), (layer.out, -layer.degree)):
            for name, axis in side.items():
                of = arrays.along(name, axis, m, interleaved=layer.interleaved)
                rows.append(arrays.starts[name] + np.arange(of.size))
                columns.append(sum(widths) + of)
                entries.append(np.full(of.size, power))
        widths.append(m)
    where = (np.concatenate(rows), np.concatenate(columns))
    A = csr_array((np.concatenate(entries), where), shape=(size, sum(widths)))
    A.eliminate_zeros()  # a parameter from a neuron to itself, through a skip connection
    return A, widths
