"""Kinks of a loss near w: pre-activations within rounding of zero, and how much the Hessian jumps across them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe._result import Result, Table, columns, panel, picture
from steppe._same import shaped
from steppe.curvature._backend import AnyProblem, backend
from steppe.curvature._equations import Site, shifted, sites, tolerance
from steppe.curvature._inputs import prepared
from steppe.curvature._matrices import hessian
from steppe.curvature._operator import Operator, Recomputed, settled
from steppe.curvature._statistics import FULL_BATCH, part, treats_examples_alone
from steppe.problem import Problem

# Bytes of pre-activations held at a time.
_MEMORY = 2**28
# Copies of them that a product with the jump holds: values, tangents and the slopes of both, and as many again.
_COPIES = 8
# Products of a power iteration: a lower bound of a norm, some per cent too low.
_ROUNDS = 4
# With fewer examples than this, a block is not cheaper.
_FEW = 32


@dataclass(frozen=True, eq=False)
class KinkedLayer:
    """The kinks of one layer: entry k is neuron `neurons[k]` (an index into the layer) on example `examples[k]`.

    `examples` is −1 if the kink belongs to the parameters alone, or if the layer has no axis of examples. `matters`
    says whether the kink contributes to a jump of the Hessian that matters: see `kinks`.
    """

    name: str
    examples: NDArray[np.int64]
    neurons: NDArray[np.int64]
    values: NDArray[np.float64]
    matters: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Kinks(Result):
    """All kinks at w, layer by layer; layers without kinks are omitted."""

    layers: tuple[KinkedLayer, ...]

    def __len__(self) -> int:
        return sum(len(layer.values) for layer in self.layers)

    @property
    def matter(self) -> int:
        """The number of kinks that contribute to a jump of the Hessian that matters."""
        return sum(int(layer.matters.sum()) for layer in self.layers)

    def table(self) -> Table:
        """One row for each kink."""
        names = ("examples", "neurons", "values", "matters")
        found = {name: [value for layer in self.layers for value in getattr(layer, name)] for name in names}
        return columns({"layer": [layer.name for layer in self.layers for _ in layer.values]} | found)

    def draw(self) -> Any:
        """How many kinks each layer has, and how many of them matter."""
        counts = {"kinks": [len(a.values) for a in self.layers], "that matter": [a.matters.sum() for a in self.layers]}
        return picture(
            f"{len(self):,} kinks", [panel("layer", range(len(self.layers)), "count", counts, kind="points")]
        )


def kinks(problem: AnyProblem, w: Any = None, *, rtol: float = 1e-3, sharpness: float | None = None) -> Kinks:
    """The neurons and examples whose pre-activation is within rounding of a kink: |h| ≤ 16 ulp of its layer.

    Kinks are found in the equations of the network: relu, max, min, abs, clamp and where(a > b, …). A pre-activation
    that is zero for all parameters is no kink; ties in max pooling are not searched.

    A kink matters if its two sides differ. Move w slightly forth and back in a generic direction: every kink switches,
    the Hessian jumps from H₋ to H₊ and the gradient from g₋ to g₊. The jump matters if

        ‖H₊ − H₋‖ > rtol λ,   since λ_max can change by as much (Weyl),   or   ‖g₊ − g₋‖ > rtol λ ‖w‖,

    with λ the `sharpness`, by default ‖∇²L(w)‖ from a few products; the kinks that contribute to it then matter. A
    ReLU on a fitted example matters, since the Jacobian jumps; one example of 10⁵ does not. The least rtol is the
    square root of the machine precision.

    The cost is a forward pass; if there are kinks, a few products with the Hessian of their examples; without
    `sharpness`, four products with the Hessian of all examples.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: jax.nn.relu(x @ w), jnp.array([1.0, -1.0]), jnp.array([[2.0, 1.0], [3.0, 3.0]]),
    ...                    jnp.ones(2), steppe.losses.mse)
    >>> found = kinks(p, p.w0)                                      # 2 − 1 = 1, and 3 − 3 = 0
    >>> len(found), found.matter, found.layers[0].examples.tolist()
    (1, 1, [1])

    In a `steppe.torch.Problem` none are found: PyTorch has no equations to read.
    """
    rtol = check.number("rtol", rtol, above=0.0)
    return backend(problem).kinks(problem, w, rtol=rtol, sharpness=sharpness)


def kinks_of_equations(problem: Problem, w: Array | None, *, rtol: float, sharpness: float | None) -> Kinks:
    """`kinks` of a JAX problem."""
    w = prepared(problem, w)
    shapes = eqx.filter_eval_shape(_sites, problem, w)
    if not shapes:
        return Kinks(())
    each = sum(int(np.prod(s.margin.shape)) * s.margin.dtype.itemsize for s in shapes) / len(problem)
    fits = max(1, int(_MEMORY / max(1.0, each)))
    entries = _near(problem, w, fits)
    if not any(len(e.at) for e in entries):
        return Kinks(())
    alone = treats_examples_alone(problem, w)
    everyone = not alone or any(e.axis is None and len(e.at) for e in entries)
    most = max(1, fits // _COPIES) if alone else len(problem)

    around = list(_blocks(problem, entries, most, everyone))
    moved = _derivatives(around, w, entries)
    entries = [replace(e, steps=e.steps * np.sign(m)).only(m != 0) for e, m in zip(entries, moved, strict=True)]
    if not any(len(e.at) for e in entries):
        return Kinks(())
    around = list(_blocks(problem, entries, most, everyone))
    size = _norm(problem, w) if sharpness is None else abs(sharpness)
    half = float(np.finfo(w.dtype).eps) ** 0.5
    matters = [np.zeros(len(e.at), dtype=bool) for e in entries]
    if _exceeds(around, w, entries, max(rtol, half) * size):
        shares = _contributions(around, w, entries)
        largest = max(share.max(initial=0.0) for share in shares)
        matters = [share >= half * largest for share in shares]
    names = [site.name for site in shapes]
    rows = enumerate(zip(names, entries, matters, strict=True))
    return Kinks(tuple(_layer(f"{name} {k}", e, m) for k, (name, e, m) in rows if len(e.at)))


@dataclass(frozen=True, eq=False)
class _Entries:
    """Pre-activations of one site: their indices (count, axes), the axis of examples, and the step that moves each one
    across its kink."""

    at: NDArray[np.int64]
    axis: int | None
    values: NDArray[np.float64]
    steps: NDArray[np.float64]

    def only(self, chosen: NDArray[np.bool_]) -> "_Entries":
        return replace(self, at=self.at[chosen], values=self.values[chosen], steps=self.steps[chosen])


def _near(problem: Problem, w: Array, fits: int) -> list[_Entries]:
    """The entries within rounding of a kink, site by site."""
    axes = _example_axes(problem, w)
    found: list[list[_Entries]] = [[] for _ in axes]
    for start, size in FULL_BATCH.pieces(problem, w, fits).spans:
        for k, (site, axis) in enumerate(zip(_sites(part(problem, start, size), w), axes, strict=True)):
            # A site without examples, of the parameters alone, is the same in every piece.
            if axis is not None or start == 0:
                found[k].append(_of_site(site.margin, axis, start))
    return [_joined(several) for several in found]


def _of_site(margin: Array, axis: int | None, start: int) -> _Entries:
    near = np.asarray(margin)
    across = tolerance(_largest(near), near.dtype)
    at = np.argwhere(np.abs(near) <= across)
    values = near[tuple(at.T)].astype(float)
    if axis is not None:
        at[:, axis] += start
    # Eight tolerances move every entry across its kink.
    return _Entries(at, axis, values, np.full(len(at), 8 * across))


def _joined(several: Sequence[_Entries]) -> _Entries:
    at, values, steps = (np.concatenate([getattr(e, name) for e in several]) for name in ("at", "values", "steps"))
    return _Entries(at, several[0].axis, values, steps)


def _layer(name: str, entries: _Entries, matters: NDArray[np.bool_]) -> KinkedLayer:
    at, axis = entries.at, entries.axis
    neurons = at if axis is None else np.delete(at, axis, axis=1)
    if neurons.shape[1] == 0:
        neurons = np.zeros((len(at), 1), dtype=int)
    return KinkedLayer(name, np.full(len(at), -1) if axis is None else at[:, axis], neurons, entries.values, matters)


def _norm(problem: Problem, w: Array) -> float:
    """A lower bound of ‖∇²L(w)‖, by power iteration."""
    _, w, pieces = settled(hessian.model, problem, w, statistics=FULL_BATCH, memory=_MEMORY)
    product = Operator(Recomputed(problem, w, hessian.model, pieces), w.size, w.dtype, "hessian", FULL_BATCH)
    u, size = np.asarray(_direction(w)), 1.0
    for _ in range(_ROUNDS):
        u = product(u / np.linalg.norm(u))
        size = float(np.linalg.norm(u))
        if not 0 < size < np.inf:
            break
    return size


def _largest(h: NDArray[Any]) -> float:
    return float(np.max(np.abs(h), initial=0.0, where=np.isfinite(h)))


@eqx.filter_jit
def _sites(problem: Problem, w: Array) -> list[Site]:
    return sites(problem.predict, problem.unravel(w), problem.x)


def _example_axes(problem: Problem, w: Array) -> list[int | None]:
    """The axis of examples of each site: the one that grows with their number. If the network does not take one example
    more, or then has other sites, it is the first axis if that is as long as the data."""
    more = jax.tree.map(lambda a: shaped((a.shape[0] + 1, *a.shape[1:]), a.dtype), problem.x)
    params = jax.eval_shape(problem.unravel, w)
    now = eqx.filter_eval_shape(sites, problem.predict, params, problem.x)
    try:
        then = eqx.filter_eval_shape(sites, problem.predict, params, more)
    except (TypeError, ValueError):
        then = []
    if len(then) != len(now):
        return [0 if site.margin.shape[0] == len(problem) else None for site in now]
    differ = [
        [k for k, (m, n) in enumerate(zip(a.margin.shape, b.margin.shape, strict=True)) if m != n]
        for a, b in zip(now, then, strict=True)
    ]
    return [axes[0] if axes else None for axes in differ]


# How far the Hessian jumps when the pre-activations near a kink switch sides.


@dataclass(frozen=True, eq=False)
class _Block:
    """Some examples and their entries: `rows[k]` numbers those of site k, `places[k]` are the indices in its layer."""

    problem: Problem
    share: float
    rows: list[NDArray[np.int64]]
    places: list[tuple[NDArray[np.int64], ...]]


def _blocks(problem: Problem, entries: Sequence[_Entries], most: int, everyone: bool) -> Iterator[_Block]:
    """The examples that have an entry, or all examples with `everyone`, at most `most` at a time.

    The number is a power of two, filled up with an example that does not move, so that few shapes are compiled.
    """
    n = len(problem)
    affected = np.arange(n) if everyone else np.unique(np.concatenate([e.at[:, e.axis] for e in entries if len(e.at)]))
    for start in range(0, len(affected), most):
        examples = affected[start : start + most]
        size = len(examples) if everyone else min(most, max(_FEW, 1 << (len(examples) - 1).bit_length()))
        index = np.concatenate([examples, np.full(size - len(examples), examples[0])])
        x, y = _rows((problem.x, problem.y), jnp.asarray(index))
        rows, places = [], []
        for e in entries:
            at = e.at.copy()
            here = np.ones(len(at), dtype=bool)
            if e.axis is not None:
                here = np.isin(at[:, e.axis], examples)
                at[:, e.axis] = np.searchsorted(examples, at[:, e.axis])
            rows.append(np.flatnonzero(here))
            places.append(tuple(at[here].T))
        yield _Block(eqx.tree_at(lambda p: (p.x, p.y), problem, (x, y)), size / n, rows, places)


@jax.jit
def _direction(w: Array) -> Array:
    """A generic direction, unrelated to the structure of the network."""
    return jnp.cos(jnp.arange(w.size, dtype=w.dtype))


def _derivatives(around: Sequence[_Block], w: Array, entries: Sequence[_Entries]) -> list[NDArray[np.float64]]:
    """The derivative of each pre-activation along `_direction`."""
    result = [np.zeros(len(e.at)) for e in entries]
    for block in around:
        for k, tangent in enumerate(_tangents(block.problem, w)):
            result[k][block.rows[k]] = np.asarray(tangent, dtype=float)[block.places[k]]
    return result


def _steps(block: _Block, w: Array, entries: Sequence[_Entries]) -> list[Array]:
    shapes = eqx.filter_eval_shape(_tangents, block.problem, w)
    result = []
    for shape, e, rows, places in zip(shapes, entries, block.rows, block.places, strict=True):
        shift = np.zeros(shape.shape)
        shift[places] = e.steps[rows]
        result.append(jnp.asarray(shift, shape.dtype))
    return result


def _exceeds(around: Sequence[_Block], w: Array, entries: Sequence[_Entries], limit: float) -> bool:
    """Whether ‖H₊ − H₋‖ > limit, or ‖g₊ − g₋‖ > limit × ‖w‖, between the two sides."""
    far = limit * float(np.linalg.norm(w))
    u = np.asarray(_direction(w))
    for _ in range(_ROUNDS):
        u = u / np.linalg.norm(u)
        slope, product = np.zeros_like(u), np.zeros_like(u)
        for block in around:
            here = _jump(block.problem, w, _steps(block, w, entries), jnp.asarray(u))
            slope, product = slope + block.share * np.asarray(here[0]), product + block.share * np.asarray(here[1])
        u, size = product, float(np.linalg.norm(product))
        if size > limit or float(np.linalg.norm(slope)) > far:
            return True
        if not 0 < size < np.inf:
            break
    return False


def _contributions(around: Sequence[_Block], w: Array, entries: Sequence[_Entries]) -> list[NDArray[np.float64]]:
    """The contribution of each entry to the jump: |Δ∂ₕ(d·∇L)| |d·∇h|, plus |Δ∂ₕL| |d·∇h| ‖d‖/‖w‖ for the gradient."""
    result = [np.zeros(len(e.at)) for e in entries]
    for block in around:
        for k, share in enumerate(_slope_jumps(block.problem, w, _steps(block, w, entries))):
            result[k][block.rows[k]] = block.share * np.asarray(share, dtype=float)[block.places[k]]
    return result


@jax.jit
def _rows(data: tuple[Any, Array], index: Array) -> tuple[Any, Array]:
    rows: tuple[Any, Array] = jax.tree.map(lambda a: a[index], data)
    return rows


def _side(problem: Problem, w: Array, shifts: list[Array]) -> Array:
    return problem.loss_function(shifted(problem.predict, shifts, problem.unravel(w), problem.x), problem.y)


def _across(side: Callable[[Array], Any]) -> Any:
    """side(1) − side(−1), one after the other: compiled once, held one at a time."""
    return jax.tree.map(lambda a: a[0] - a[1], jax.lax.map(side, jnp.array([1.0, -1.0])))


def _towards(sign: Array, shifts: list[Array]) -> list[Array]:
    return [sign.astype(s.dtype) * s for s in shifts]


@eqx.filter_jit
def _jump(problem: Problem, w: Array, shifts: list[Array], u: Array) -> tuple[Array, Array]:
    """g₊ − g₋ and (H₊ − H₋)u."""

    def side(sign: Array) -> tuple[Array, Array]:
        moved: tuple[Array, Array] = jax.jvp(
            lambda v: jax.grad(_side, 1)(problem, v, _towards(sign, shifts)), (w,), (u,)
        )
        return moved

    jump: tuple[Array, Array] = _across(side)
    return jump


@eqx.filter_jit
def _tangents(problem: Problem, w: Array) -> list[Array]:
    def heights(v: Array) -> list[Array]:
        return [site.height for site in sites(problem.predict, problem.unravel(v), problem.x)]

    tangents: list[Array] = jax.jvp(heights, (w,), (_direction(w),))[1]
    return tangents


@eqx.filter_jit
def _slope_jumps(problem: Problem, w: Array, shifts: list[Array]) -> list[Array]:
    d = _direction(w)

    def side(sign: Array) -> Any:
        return jax.jvp(lambda v: jax.grad(_side, 2)(problem, v, _towards(sign, shifts)), (w,), (d,))

    jumps, bends = _across(side)
    length = jnp.linalg.norm(w)
    ratio = jnp.linalg.norm(d) / jnp.where(length > 0, length, 1.0)
    terms = zip(jumps, bends, _tangents(problem, w), strict=True)
    return [jnp.abs(move) * (jnp.abs(bend) + ratio * jnp.abs(jump)) for jump, bend, move in terms]
