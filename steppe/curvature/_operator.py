"""An operator, and the kinds of curvature: each is the Hessian of some model of the loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core
from jax.typing import ArrayLike

from steppe import check
from steppe._same import bodies, shaped, traced
from steppe.curvature._backend import AnyProblem, Product, backend
from steppe.curvature._inputs import prepared, refuse_kinked_loss
from steppe.curvature._statistics import FULL_BATCH, Pieces, Statistics, part, takes
from steppe.linalg._operator import ASYMMETRY, ROUNDING, length
from steppe.problem import Problem

# Columns of the identity multiplied at a time, and the size up to which they are multiplied one by one: for so few,
# compiling a loop takes longer than the products.
_COLUMNS, _FEW = 32, 256
# A dense matrix of this size takes 3 GB in float64.
_DENSE = 20_000


class Operator(eqx.Module):
    """A symmetric `size` × `size` matrix, given by its product v ↦ Av.

    Everything that the product needs from (problem, w) is computed when the operator is made; a product is then one
    call of compiled code, in the precision of the parameters.
    """

    product: Callable[[Array], Array]
    size: int = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    name: str = eqx.field(static=True)
    statistics: Statistics = eqx.field(static=True)
    # The relative error of a product; None means the rounding of `dtype`.
    precision: float | None = eqx.field(static=True, default=None)

    def matvec(self, v: ArrayLike) -> Array:
        """Av."""
        return _apply(self.product, jnp.asarray(v, self.dtype))

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Av in numpy, for steppe.linalg."""
        return np.asarray(self.matvec(v))

    def dense(self) -> Array:
        """A itself, (size, size): for tests and small problems."""
        if self.size > _DENSE:
            remedy = "Use products: operator.matvec, or the measures built on them."
            check.refuse("size", f"at most {_DENSE} for a dense matrix", self.size, remedy)
        if self.size <= _FEW:
            return jnp.asarray(np.stack([self(e) for e in np.eye(self.size)], axis=1))
        return _columns(self.product, jnp.eye(self.size, dtype=self.dtype))


_apply = eqx.filter_jit(lambda product, v: product(v))
_columns = eqx.filter_jit(lambda product, rows: jax.lax.map(product, rows, batch_size=_COLUMNS).T)


# Bytes that a linearised product may hold.
MEMORY = 2**30

# (problem, w) ↦ a function of u, a mean over the examples, whose Hessian at u = w is the matrix.
Model = Callable[[Problem, Array], Callable[[Array], Array]]
# (problem, w) ↦ a linear map B from parameters to (examples, r), with A = (1/n) BᵀB.
Root = Callable[[Problem, Array], Callable[[Array], Array]]


@dataclass(frozen=True)
class Curvature:
    """A kind of curvature matrix: called with (problem, w), it returns the `Operator`.

    `memory` bounds the bytes that are stored. If linearising all examples takes more, they are processed in pieces and
    every product repeats the forward pass, which costs about 1.5 times as much.
    """

    name: str
    model: Model = field(repr=False)
    root: Root | None = field(default=None, repr=False)

    @overload
    def __call__(
        self, problem: Problem, w: Any = None, *, statistics: Statistics = ..., memory: float = ...
    ) -> Operator: ...

    @overload
    def __call__(
        self, problem: AnyProblem, w: Any = None, *, statistics: Statistics = ..., memory: float = ...
    ) -> Product: ...

    def __call__(
        self, problem: Any, w: Any = None, *, statistics: Statistics = FULL_BATCH, memory: float = MEMORY
    ) -> Any:
        return backend(problem).operator(self, problem, w, statistics=statistics, memory=memory)


def linearised_operator(
    model: Model, name: str, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
) -> Operator:
    problem, w, pieces = settled(model, problem, w, statistics=statistics, memory=memory)
    refuse_kinked_loss(problem, w)
    stored = pieces.whole and held(model, problem, w) <= memory
    product = _linearised(model, problem, w) if stored else Recomputed(problem, w, model, pieces)
    return expect_consistent(Operator(product, w.size, w.dtype, name, statistics, narrower(problem)), problem)


def settled(
    model: Model, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
) -> tuple[Problem, Array, Pieces]:
    """The problem with its batch statistics treated, w as its vector, and the pieces of its data."""
    w = prepared(problem, w)
    memory = check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, for instance 2**30.")
    if not isinstance(statistics, Statistics):
        remedy = "Pass FullBatch(), Frozen() or PerChunk(size) of steppe.curvature."
        check.refuse("statistics", "a treatment of batch statistics", statistics, remedy)
    problem, w = _of_one_precision(problem, w)
    problem = statistics.problem(problem, w)
    return problem, w, statistics.pieces(problem, w, _affordable(model, problem, w, memory))


def _of_one_precision(problem: Problem, w: Array) -> tuple[Problem, Array]:
    """The problem with all parameters in the precision of w: narrower arrays would round every product."""
    if set(problem.unravel.dtypes) == {w.dtype}:
        return problem, w
    # The values that the network sees, after rounding.
    w = jnp.concatenate([leaf.ravel().astype(w.dtype) for leaf in jax.tree.leaves(problem.unravel(w))])
    unravel = replace(problem.unravel, dtypes=(w.dtype,) * len(problem.unravel.dtypes))
    wide = Problem.tree_unflatten((problem.predict, problem.loss_function, unravel), (w, problem.x, problem.y))
    return (wide if takes(wide, w, len(wide)) else problem), w  # a network can insist on the precision of its arrays


def narrower(problem: Problem) -> float | None:
    """The relative error of a product if the network computes in less than the precision of w, else None."""
    u = unit(problem)
    return u if u > ROUNDING * float(jnp.finfo(problem.w0.dtype).eps) else None  # type: ignore[no-untyped-call]


def unit(problem: Problem) -> float:
    """The relative error of a computed loss: 16 ulp of the narrowest real numbers in the network."""
    leaves, structure = jax.tree.flatten(problem)
    return _unit(structure, tuple((a.shape, a.dtype) for a in leaves), jax.dtypes.canonicalize_dtype(float))


@lru_cache(maxsize=256)  # a network is traced once, not at every step of a trajectory
def _unit(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...], widest: Any) -> float:
    problem = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    closed = traced(lambda problem: problem.loss(problem.w0), problem)
    dtypes = {problem.w0.dtype, *problem.unravel.dtypes, *_reals(closed)}
    return ROUNDING * max(float(jnp.finfo(dtype).eps) for dtype in dtypes)  # type: ignore[no-untyped-call]


def _reals(closed: core.ClosedJaxpr) -> Iterator[jnp.dtype]:
    for equation in closed.jaxpr.eqns:
        yield from (v.aval.dtype for v in equation.outvars if jnp.issubdtype(v.aval.dtype, jnp.floating))
        for body in bodies(equation):
            yield from _reals(body)


_consistent: set[int] = set()


def expect_consistent(operator: Operator, problem: Problem) -> Operator:
    """The operator, after its product was tried: it must be symmetric and linear. Once for each kind of problem.

    Three products show what a wrong derivative does, such as that of max pooling at ties: ⟨u, Av⟩ and ⟨Au, v⟩ differ
    along u = Av. No measure but those of Lanczos would notice.
    """
    leaves, structure = jax.tree.flatten(problem)
    kind = hash((operator.name, operator.size, operator.statistics, structure, tuple(a.shape for a in leaves)))
    if kind in _consistent:
        return operator
    v = np.random.default_rng(0).standard_normal(operator.size).astype(operator.dtype)
    Av = np.asarray(operator(v), float)
    if not np.isfinite(Av).all() or not (size := length(Av)):
        return operator  # the measure reports it, or there is nothing to compare
    u = (Av / size).astype(operator.dtype)
    Au, both = np.asarray(operator(u), float), np.asarray(operator(u + v / length(v)), float)
    scale = max(length(Au), size / length(v))
    gap = max(abs(u @ Av - Au @ v) / length(v), length(both - Au - Av / length(v)))
    if gap > ASYMMETRY * scale:
        check.refuse(
            f"the product with the {operator.name} matrix",
            "symmetric and linear",
            f"a difference of {gap / scale:.2g} of its size",
            "A custom derivative of the network is wrong, or w is exactly where the network has a kink.",
        )
    _consistent.add(kind)
    return operator


class Recomputed(eqx.Module):
    """The product computed piece by piece: only the data and w are stored."""

    problem: Problem
    w: Array
    model: Model = eqx.field(static=True)
    pieces: Pieces = eqx.field(static=True)

    def __call__(self, v: Array) -> Array:
        def product(piece: Problem) -> Array:
            return jax.jvp(jax.grad(self.model(piece, self.w)), (self.w,), (v,))[1]

        return self.pieces.mean(self.problem, product)


@eqx.filter_jit
def _linearised(model: Model, problem: Problem, w: Array) -> Callable[[Array], Array]:
    """v ↦ ∇²m(w) v, forward over reverse; everything that does not depend on v is computed here."""
    return jax.linearize(jax.grad(model(problem, w)), w)[1]


def held(model: Model, problem: Problem, w: Array) -> int:
    """The bytes that the linearised product stores."""
    leaves, structure = jax.tree.flatten((problem, w))
    return _held(model, structure, tuple((a.shape, a.dtype) for a in leaves))


@lru_cache(maxsize=256)
def _held(model: Model, structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...]) -> int:
    problem, w = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    kept = eqx.filter_eval_shape(_linearised, model, problem, w)
    return sum(int(np.prod(a.shape)) * a.dtype.itemsize for a in jax.tree.leaves(kept))


def _affordable(model: Model, problem: Problem, w: Array, memory: float) -> int:
    """The number of examples that fit into `memory`: all of them, or the size of a recomputed piece."""
    n = len(problem)
    if (everything := held(model, problem, w)) <= memory or not takes(problem, w, 1):
        return n
    # `held` is affine in the number of examples. Recomputing holds values and tangents, and a second copy of both.
    one = held(model, eqx.filter_eval_shape(part, problem, 0, 1), w)
    return max(1, min(n - 1, int((memory - one) / (4 * max(1.0, (everything - one) / max(1, n - 1))))))
