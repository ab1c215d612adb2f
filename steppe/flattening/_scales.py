"""Which log-scales the entries of a network's arrays can have: linear forms in free units, and what ties the units.

A network is read forwards. Each entry of an array is multiplied by e^{form}, where a form is a row of numbers, one for
each unit. A layer that reads parameters for the first time gets new units for its outputs, and its parameters follow
from them; any other operation either carries forms on or ties them. What is left free at the end are the scale groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array, eye_array, vstack
from scipy.sparse.csgraph import connected_components

Indices = NDArray[np.int64]

# Numbers of forms: that of a constant, and the mark of an entry that is 0 or infinite, which every scale leaves alone.
STILL, FREE = 0, -1
_ZERO = 1e-9  # forms have coefficients such as 1, ½ and 3


@dataclass(frozen=True, eq=False)
class Held:
    """An array of parameters: the position of each entry in the flat vector."""

    entries: Indices


@dataclass(frozen=True, eq=False)
class Scaled:
    """An array of activations: the number of the form of each entry."""

    ids: Indices


Token = Held | Scaled


def constant(value: Any) -> Indices:
    """The forms of a known array."""
    value = np.asarray(value)
    if not np.issubdtype(value.dtype, np.floating):
        return np.full(value.shape, STILL)
    return np.where((value == 0) | np.isinf(value), FREE, STILL)


def compressed(ids: Indices) -> Indices:
    """The array with length 1 along the axes on which it is constant."""
    for axis, length in enumerate(ids.shape):
        if length > 1:
            first = np.take(ids, [0], axis)
            if ids.strides[axis] == 0 or (ids == first).all():
                ids = first
    return ids


class Groups(NamedTuple):
    """Parameter k is multiplied by e^{(rows t)_of[k]}, one t for each free unit; `origin` numbers the layer that made
    the unit. `first` are the parameters of the first layer, and `layers` is the number of layers."""

    of: Indices
    rows: csr_array
    origin: Indices
    first: Indices
    layers: int


class Scales:
    """The bookkeeping while a network with so many `parameters` is read."""

    def __init__(self, parameters: int):
        # e^{plus − minus} multiplies each parameter; −1 while nothing has used it.
        self.plus, self.minus = (np.full(parameters, -1) for _ in range(2))
        self._mark = np.empty(parameters, np.int64)
        self._blocks: list[csr_array] = [csr_array((1, 0))]
        self._units = 0
        self._origin: list[Indices] = []
        self._ties: list[tuple[Indices, Indices]] = []
        self._layers, self._first = 0, (0, 0)

    # Forms.

    def new(self, shape: tuple[int, ...]) -> Indices:
        """A new unit for each entry, all of one layer."""
        count = int(np.prod(shape))
        first, self._units = self._units, self._units + count
        if not self._layers:
            self._first = 1, 1 + count
        self._origin.append(np.full(count, self._layers))
        self._layers += 1
        rows = csr_array((np.ones(count), (np.arange(count), first + np.arange(count))), shape=(count, self._units))
        return self._added(rows).reshape(shape)

    def sum(self, a: Indices, b: Indices, first: float = 1.0, second: float = 1.0) -> Indices:
        """The forms first · a + second · b; FREE where one of them is, since zero times anything is zero."""
        a, b = np.broadcast_arrays(compressed(a), compressed(b))
        pairs, where = np.unique(np.stack([a.ravel(), b.ravel()]), axis=1, return_inverse=True)
        forms = self._forms()
        known = (pairs != FREE).all(axis=0)
        found = np.full(pairs.shape[1], FREE)
        left, right = pairs[:, known]
        if first == 1 and (right == STILL).all():
            found[known] = left
        elif (left == STILL).all() and second == 1:
            found[known] = right
        else:
            found[known] = self._added(csr_array(first * forms[left] + second * forms[right]))
        return found[where.ravel()].reshape(a.shape)

    def equal(self, a: Indices, b: Indices) -> None:
        """Ties the forms a to the forms b."""
        a, b = np.broadcast_arrays(compressed(a), compressed(b))
        differ = (a != b) & (a != FREE) & (b != FREE)
        if differ.any():
            pairs = np.unique(np.stack([a[differ], b[differ]]), axis=1)
            self._ties.append((pairs[0], pairs[1]))

    def _added(self, rows: csr_array) -> Indices:
        start = sum(block.shape[0] for block in self._blocks)
        self._blocks.append(rows)
        return start + np.arange(rows.shape[0])

    def _forms(self) -> csr_array:
        """All forms, as rows."""
        for block in self._blocks:
            block.resize((block.shape[0], self._units))
        whole = csr_array(vstack(self._blocks, format="csr"))
        self._blocks = [whole]
        return whole

    # Parameters.

    def bind(self, entries: Indices, plus: Indices, minus: Indices | int = STILL) -> None:
        """The parameters at `entries` get the forms plus − minus; those that have one are tied to it."""
        entries, plus, minus = np.broadcast_arrays(entries, plus, np.asarray(minus))
        kept = tuple(slice(None) if any(a.strides[k] for a in (entries, plus, minus)) else slice(1)
                     for k in range(entries.ndim))  # fmt: skip
        e, p, m = (a[kept].ravel() for a in (entries, plus, minus))
        known = (p != FREE) & (m != FREE)
        if not known.all():
            e, p, m = e[known], p[known], m[known]
        self._mark[e] = np.arange(e.size)
        fresh = (self._mark[e] == np.arange(e.size)) & (self.plus[e] < 0)
        self.plus[e[fresh]], self.minus[e[fresh]] = p[fresh], m[fresh]
        others = np.flatnonzero(~fresh)
        others = others[(self.plus[e[others]] != p[others]) | (self.minus[e[others]] != m[others])]
        if others.size:
            e = e[others]
            quads = np.unique(np.stack([self.plus[e], self.minus[e], p[others], m[others]]), axis=1)
            self.equal(self.sum(quads[0], quads[1], 1, -1), self.sum(quads[2], quads[3], 1, -1))

    def read(self, token: Any) -> Indices:
        """The forms of any array; parameters that have none get new units."""
        if isinstance(token, Scaled):
            return token.ids
        if not isinstance(token, Held):
            return constant(token)
        entries = token.entries
        unused = np.unique(entries[self.plus[entries] < 0])
        if unused.size:
            self.bind(unused, self.new(unused.shape))
        return np.broadcast_to(self.sum(self.plus[entries], self.minus[entries], 1, -1), entries.shape)

    # Operations.

    def same(self, *tokens: Any) -> Indices:
        """The common forms of arrays that are added, compared or chosen from."""
        held = [t for t in tokens if isinstance(t, Held) and (self.plus[t.entries] < 0).any()]
        others = [t for t in tokens if not any(t is h for h in held)]
        forms = [self.read(t) for t in others] or [self.read(held.pop(0))]
        found = forms[0]
        for ids in forms[1:]:
            self.equal(found, ids)
            found = np.where(found == FREE, ids, found)
        for token in held:
            # A bias next to zeros only is still a parameter of its own.
            self.bind(token.entries, found)
            if (found == FREE).any():
                found = np.where(found == FREE, self.read(token), found)
        return np.broadcast_to(found, np.broadcast_shapes(*(np.shape(_array(t)) for t in tokens)))

    def times(self, a: Any, b: Any, power: float = 1.0) -> Indices:
        """The forms of a · b^power."""
        ids = self.sum(self.read(a), self.read(b), 1.0, power)
        return np.broadcast_to(ids, np.broadcast_shapes(np.shape(_array(a)), np.shape(_array(b))))

    def power(self, a: Any, power: float) -> Indices:
        ids = self.read(a)
        return np.broadcast_to(self.sum(ids, np.full((), STILL), power), ids.shape)

    def still(self, *tokens: Any) -> None:
        """Every entry keeps its size: what follows is no homogeneous function of it."""
        for token in tokens:
            if isinstance(token, Held):
                self.bind(token.entries, np.full((), STILL))
            elif isinstance(token, Scaled):
                self.equal(token.ids, np.full((), STILL))

    def tie(self, token: Any, axes: Sequence[int]) -> Indices:
        """The forms along these axes are equal; they are returned with length 1 there."""
        if isinstance(token, Held) and (self.plus[token.entries] < 0).all():
            shape = token.entries.shape
            ids = self.new(tuple(1 if k in axes else length for k, length in enumerate(shape)))
            self.bind(token.entries, ids)
            return ids
        ids = self.read(token)
        kept = compressed(ids)
        axes = tuple(k for k in axes if kept.shape[k] > 1)
        # The largest mark is that of a form, if there is one that is not FREE.
        first = kept.max(axis=axes, keepdims=True) if axes else kept
        self.equal(kept, first)
        shape = tuple(1 if k in axes or first.shape[k] == 1 else length for k, length in enumerate(ids.shape))
        return np.broadcast_to(first, shape)

    def contract(self, a: Any, c: Any) -> Indices:
        """The forms (B, M, N) of Σ_k a[b, m, k] c[b, k, n]. All terms of a sum have one form."""
        if isinstance(c, Held) and not isinstance(a, Held):
            swapped = self.contract(Held(c.entries.transpose(0, 2, 1)), Scaled(_array(a, self).transpose(0, 2, 1)))
            return swapped.transpose(0, 2, 1)
        if isinstance(c, Held):
            right = c.entries
            if (self.plus[right] < 0).any():
                along, across = self.new((right.shape[0], 1, right.shape[2])), self.new((*right.shape[:2], 1))
                across[:, 0] = STILL  # one of them is free: both moved by one number give the same
                self.bind(right, along, across)
            c = Scaled(self.read(c))
        right = _fixed(compressed(_array(c, self)))
        base = right[:, :, :1]
        # c[b, k, n] − c[b, k, 0] has to be the same for every k.
        beside = self.sum(right[:, :1], base[:, :1], 1, -1) if right.shape[2] > 1 else np.full((1, 1, 1), STILL)
        if right.shape[2] > 1 and right.shape[1] > 1:
            self.equal(self.sum(right, base, 1, -1), beside)
        if isinstance(a, Held) and (self.plus[a.entries] < 0).any():
            rows = self.new((*a.entries.shape[:2], 1))
            self.bind(a.entries, rows, base.transpose(0, 2, 1))
        else:
            left = _fixed(compressed(self.read(a)))
            rows = left[:, :, :1]
            if left.shape[1] > 1 and left.shape[2] > 1:
                self.equal(self.sum(left, rows, 1, -1), self.sum(left[:, :1], rows[:, :1], 1, -1))
            terms = self.sum(left[:, :1], base.transpose(0, 2, 1))
            self.equal(terms, terms[:, :, :1])
            rows = self.sum(rows, base[:, :1])
            return self.sum(rows, beside)
        return self.sum(rows, beside)

    def convolve(self, channels: Indices, kernel: Token, groups: int) -> Indices:
        """The forms of the output channels of a convolution with a kernel (out, in/groups, …)."""
        array = _array(kernel)
        filters, seen = array.shape[:2]
        array = array.reshape(groups, filters // groups, -1)
        entering = np.repeat(channels.reshape(groups, seen), array.shape[2] // seen, axis=1)[:, :, None]
        out = self.contract(Held(array) if isinstance(kernel, Held) else Scaled(array), Scaled(entering))
        return np.broadcast_to(out[:, :, 0], (groups, filters // groups)).reshape(-1)

    # The result.

    def groups(self) -> Groups:
        """The free units, and the exponents with which they multiply the parameters."""
        forms = self._forms()
        rows = [forms[a] - forms[b] for a, b in self._ties]
        free, basis = _null_space(csr_array(vstack(rows)) if rows else csr_array((0, self._units)), self._units)
        self.plus[self.plus < 0], self.minus[self.minus < 0] = STILL, STILL  # parameters that nothing uses
        size = forms.shape[0]
        pairs, of = np.unique(self.plus * size + self.minus, return_inverse=True)
        exponents = csr_array((forms[pairs // size] - forms[pairs % size]) @ basis)
        exponents = csr_array(coo_array((np.where(abs(exponents.data) > _ZERO, exponents.data, 0.0),
                                         exponents.tocoo().coords), shape=exponents.shape))  # fmt: skip
        exponents.eliminate_zeros()
        moving = np.flatnonzero(np.bincount(exponents.indices, minlength=exponents.shape[1]))
        origin = np.concatenate([*self._origin, np.empty(0, np.int64)])
        of_first = np.flatnonzero((self.plus >= self._first[0]) & (self.plus < self._first[1]))
        return Groups(of.ravel(), csr_array(exponents[:, moving]), origin[free[moving]], of_first, self._layers)


def _array(token: Any, scales: Scales | None = None) -> Indices:
    if isinstance(token, Held):
        return token.entries if scales is None else scales.read(token)
    return token.ids if isinstance(token, Scaled) else constant(token)


def _fixed(ids: Indices) -> Indices:
    """A zero among the terms of a sum counts as a constant."""
    return np.where(ids == FREE, STILL, ids)


def _null_space(ties: csr_array, units: int) -> tuple[Indices, csr_array]:
    """The units that stay free, and the units as combinations of them, (units, free): all t with ties · t = 0.

    >>> free, basis = _null_space(csr_array([[1.0, -1.0, 0.0], [1.0, 0.0, 2.0]]), 3)
    >>> free.tolist(), basis.toarray().tolist()
    ([0], [[1.0], [1.0], [-0.5]])
    """
    free, basis = np.arange(units), csr_array(eye_array(units))
    while ties.nnz:
        ties = _distinct(ties)
        lengths = np.diff(ties.indptr)
        sums = abs(np.asarray(ties.sum(axis=1)).ravel())
        simple = (lengths == 1) | ((lengths == 2) & (sums < _ZERO))
        if not simple.any():
            break
        # u = v joins two units, and u = 0 joins one with the node 0.
        ends = np.zeros((int(simple.sum()), 2), np.int64)
        own = ties[simple]
        ends[:, 0] = 1 + own.indices[own.indptr[:-1]]
        ends[:, 1] = np.where(np.diff(own.indptr) == 2, 1 + own.indices[own.indptr[1:] - 1], 0)
        size = ties.shape[1] + 1
        _, part = connected_components(coo_array((np.ones(len(ends)), ends.T), shape=(size, size)), directed=False)
        first = np.full(size, size)
        np.minimum.at(first, part, np.arange(size))
        kept = np.unique(first[part])[1:]  # without the node 0
        place = np.full(size, -1)
        place[kept] = np.arange(len(kept))
        column = place[first[part]][1:]
        moved = np.flatnonzero(column >= 0)
        join = csr_array((np.ones(len(moved)), (moved, column[moved])), shape=(size - 1, len(kept)))
        free, basis, ties = free[kept - 1], csr_array(basis @ join), csr_array(ties @ join)
    if ties.nnz:
        kept, join = _eliminated(ties)
        free, basis = free[kept], csr_array(basis @ join)
    return free, basis


def _distinct(rows: csr_array) -> csr_array:
    """The rows that differ, without zeros, each with a first entry of 1."""
    rows = csr_array(rows)
    rows.sum_duplicates()
    rows.data[abs(rows.data) < _ZERO] = 0.0
    rows.eliminate_zeros()
    rows = csr_array(rows[np.diff(rows.indptr) > 0])
    if not rows.shape[0]:
        return rows
    rows = csr_array(diags_array(1 / rows.data[rows.indptr[:-1]]) @ rows)
    _, first = np.unique(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]), return_index=True)
    return csr_array(rows[first])


def _eliminated(ties: csr_array) -> tuple[Indices, csr_array]:
    """Gauss' elimination row by row: the last unit of each row is a combination of those before it."""
    solved: dict[int, dict[int, float]] = {}

    def reduced(row: dict[int, float]) -> dict[int, float]:
        while inside := [u for u in row if u in solved]:
            for u in inside:
                factor = row.pop(u)
                for v, c in solved[u].items():
                    row[v] = row.get(v, 0.0) + factor * c
            row = {u: c for u, c in row.items() if abs(c) > _ZERO}
        return row

    for start, stop in zip(ties.indptr[:-1], ties.indptr[1:], strict=True):
        row = reduced(dict(zip(ties.indices[start:stop].tolist(), ties.data[start:stop].tolist(), strict=True)))
        if row:
            last = max(row)
            pivot = row.pop(last)
            solved[last] = {u: -c / pivot for u, c in row.items()}
    kept = np.array([u for u in range(ties.shape[1]) if u not in solved], dtype=np.int64)
    place = {int(u): k for k, u in enumerate(kept)}
    entries = [(u, place[u], 1.0) for u in place]
    for u in solved:
        entries += [(u, place[v], c) for v, c in reduced({u: 1.0}).items()]
    rows, columns, data = zip(*entries, strict=True) if entries else ((), (), ())
    return kept, csr_array((np.array(data), (np.array(rows, int), np.array(columns, int))),
                           shape=(ties.shape[1], len(kept)))  # fmt: skip
