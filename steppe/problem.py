"""The problem to minimise: L(w) = (1/n) Σᵢ ℓ(predict(w, xᵢ), yᵢ), with w one flat vector."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import _same, check
from steppe._compiled import count_kind
from steppe._guard import guard
from steppe._modules import functional, refuse_statistics
from steppe.losses import Loss

__all__ = ["Problem", "Unravel", "ravel"]

Predict = Callable[[Any, Any], Array]


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True)
class Unravel:
    """The function from w to the pytree of parameters; equal and hashed by structure, to share compiled code."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def fits(self, params: Any) -> bool:
        """Whether `params` has this structure and arrays of these shapes."""
        leaves, treedef = jax.tree.flatten(params)
        return bool(treedef == self.treedef) and tuple(np.shape(a) for a in leaves) == self.shapes

    def __call__(self, w: Array) -> Any:
        # A longer vector would be cut without a word.
        if getattr(w, "shape", None) != (self.size,) or not jnp.issubdtype(w.dtype, jnp.floating):
            got = f"{w.dtype} of shape {w.shape}" if isinstance(w, Array | np.ndarray) else w
            rule = f"a flat vector of {self.size} real parameters"
            check.refuse("w", rule, got, "Start from problem.w0, or flatten your parameters: problem.vector(params).")
        leaves, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + int(np.prod(shape))
            leaves.append(w[start:stop].reshape(shape).astype(dtype))
            start = stop
        return jax.tree.unflatten(self.treedef, leaves)


@guard
def ravel(params: Any) -> tuple[Array, Unravel]:
    """The flat vector of a pytree of real floating arrays, leaf after leaf in tree order, and its inverse.

    >>> w, unravel = ravel({"W": jnp.array([[1.0, 2.0]]), "b": jnp.array([3.0])})
    >>> w.tolist(), unravel(2 * w)["b"].tolist()
    ([1.0, 2.0, 3.0], [6.0])
    """
    leaves, treedef = jax.tree.flatten(params)
    if not any(map(np.size, leaves)):
        rule = "a pytree with at least one array that is not empty"
        check.refuse("params", rule, params, "Pass the network's parameters.")
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        where = "params" + jax.tree_util.keystr(path)
        if not isinstance(leaf, Array | np.ndarray | np.generic | float):
            check.refuse(where, "an array", leaf, "Keep the arrays only: eqx.partition(model, eqx.is_array).")
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            dtype = str(jnp.result_type(leaf))
            check.refuse(where, "of a real floating type", dtype, "Convert it: params.astype(float).")
        if getattr(leaf, "dtype", None) == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
            remedy = 'Call jax.config.update("jax_enable_x64", True) first, or convert it: params.astype("float32").'
            check.refuse(where, "at most float32 while JAX runs in 32 bits", "float64", remedy)
        check.finite(where, leaf)
    arrays = [check.converted("params", leaf, jnp.result_type(leaf)) for leaf in leaves]
    unravel = Unravel(treedef, tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))
    # Concatenated by numpy: JAX would compile a program for each new shape.
    return jnp.asarray(np.concatenate([a.ravel() for a in arrays], dtype=jnp.result_type(*arrays))), unravel


@final
@jax.tree_util.register_pytree_node_class
class Problem:
    """A network, data and a loss: all that an optimiser or a measure needs.

    `predict(params, x)` is any JAX function from a pytree of parameters and a batch of inputs to a batch of
    predictions. `x` is an array or a pytree of arrays with one row an example. `w0` holds the initial parameters as one
    flat vector, and `unravel(w)` returns their pytree.

    >>> import steppe
    >>> p = Problem(lambda a, x: a * x, jnp.array(1.0), jnp.array([1.0, 2.0]), jnp.zeros(2), steppe.losses.mse)
    >>> float(p.loss(p.w0)), float(p.example_loss(p.w0, 1))         # (1 + 4) / 2, and 2²
    (2.5, 4.0)
    """

    w0: Array
    x: Any
    y: Array
    predict: Predict
    loss_function: Loss
    unravel: Unravel

    @guard
    def __init__(self, predict: Predict, params: Any, x: Any, y: Any, loss: Loss):
        if not callable(predict):
            check.refuse("predict", "a function of (params, x)", predict, "Pass the function, not its result.")
        try:
            hash(predict)
        except TypeError:
            remedy = "Wrap it: lambda params, x: predict(params, x); or build the problem with steppe.Problem.of."
            check.refuse("predict", "hashable, as a function is", type(predict).__name__, remedy)
        if not isinstance(loss, Loss):
            check.refuse("loss", "a loss of steppe.losses", loss, "Pass for example steppe.losses.mse.")
        refuse_statistics(params)
        w0, unravel = ravel(params)
        x, y = _checked_data(predict, unravel, x, y, loss, w0.dtype)
        count_kind((predict, loss, unravel, jax.tree.structure(x), *(a.shape for a in (*jax.tree.leaves(x), y))))
        self.__dict__.update(w0=w0, x=x, y=y, predict=predict, loss_function=loss, unravel=unravel)

    @classmethod
    def of(cls, module: Any, x: Any, y: Any, loss: Loss, **arguments: Any) -> "Problem":
        """The problem of an Equinox module, (Equinox module, state), (linen module, variables) or an nnx module.

        Its parameters are the real arrays of an Equinox module, variables["params"] of linen, and the `Param`s of nnx.
        The mode of the module counts: batch normalisation uses the running statistics, or in training mode those of
        the batch; nothing in the module changes. A module of Equinox takes one example, as is usual there. Further
        `arguments` of its call, such as train=False, are passed on.

        >>> import equinox, steppe
        >>> module = equinox.nn.Linear(3, 1, key=jax.random.key(0))
        >>> Problem.of(module, jnp.ones((5, 3)), jnp.zeros((5, 1)), steppe.losses.mse).w0.size
        4
        """
        predict, params = functional(module, arguments)
        return cls(predict, params, x, y, loss)

    def tree_flatten(self) -> tuple[tuple[Array, Any, Array], tuple[Predict, Loss, Unravel]]:
        """Arrays are traced and all else is static, so that problems of one kind share compiled code."""
        return (self.w0, self.x, self.y), (self.predict, self.loss_function, self.unravel)

    @classmethod
    def tree_unflatten(cls, static: tuple[Predict, Loss, Unravel], arrays: tuple[Array, Any, Array]) -> "Problem":
        problem = object.__new__(cls)
        names = ("w0", "x", "y", "predict", "loss_function", "unravel")
        problem.__dict__.update(zip(names, (*arrays, *static), strict=True))
        return problem

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Problem is frozen: build a new one instead of setting {name!r}")

    def __repr__(self) -> str:
        return f"Problem({self.predict}, {self.w0.size} parameters, {len(self)} examples, {self.loss_function.name})"

    def __len__(self) -> int:
        """The number of examples."""
        return int(self.y.shape[0])

    def predictions(self, w: Array) -> Array:
        f = self.predict(self.unravel(w), self.x)
        if not isinstance(f, jax.core.Tracer) and self.content().leaves_jax:
            again = self.predict(self.unravel(w), self.x)
            if not np.array_equal(f, again, equal_nan=True):
                gap = float(jnp.max(jnp.abs(f - again)))
                _same.refuse_randomness(f"a difference of {gap:.3g} between two calls")
        return f

    def loss(self, w: Array) -> Array:
        return self.loss_function(self.predictions(w), self.y)

    def batch_loss(self, w: Array, index: Array) -> Array:
        """The mean loss of the examples with the numbers in `index`.

        A number that no example has is refused; in compiled code, where it cannot be, the loss is NaN.
        """
        index = _numbers("index", index, 1, len(self))
        rows = jax.tree.map(lambda a: a[index], self.x)
        loss = self.loss_function(self.predict(self.unravel(w), rows), self.y[index])
        if not isinstance(index, jax.core.Tracer):
            return loss
        known = jnp.all((index >= -len(self)) & (index < len(self)))
        return jnp.where(known, loss, jnp.nan)

    def example_loss(self, w: Array, i: int | Array) -> Array:
        """The loss of one example; −1 is the last one."""
        return self.batch_loss(w, _numbers("i", i, 0, len(self))[None])

    def on(self, x: Any, y: Any) -> "Problem":
        """The same network, parameters and loss on other data, such as a test set."""
        x, y = _checked_data(self.predict, self.unravel, x, y, self.loss_function, self.w0.dtype)
        return Problem.tree_unflatten((self.predict, self.loss_function, self.unravel), (self.w0, x, y))

    @staticmethod
    def expected(value: object) -> None:
        """Refuses an argument `problem` of another type."""
        if not isinstance(value, Problem):
            check.refuse("problem", "a steppe.Problem", value, "Build steppe.Problem(predict, params, x, y, loss).")

    def vector(self, w: Any) -> Array:
        """`w`, a flat vector or the pytree of parameters, as a flat vector; raises if it does not fit the problem."""
        rule = f"a flat vector of {self.w0.size} parameters"
        if not (isinstance(w, Array | np.ndarray) and w.shape == self.w0.shape) and self.unravel.fits(w):
            w, _ = ravel(w)
        try:
            w = w if isinstance(w, Array) else np.asarray(w)
            if w.dtype.kind in "OSU":
                raise TypeError(w.dtype)
        except (TypeError, ValueError):
            check.refuse("w", f"{rule}, or the pytree of them", w, "Start from problem.w0.")
        if w.shape != self.w0.shape:
            check.refuse("w", rule, f"shape {w.shape}", "Start from problem.w0.")
        return w if w.dtype == self.w0.dtype else jnp.asarray(check.converted("w", w, self.w0.dtype))

    def content(self) -> _same.Content:
        """What the network computes on these data; refuses a network that draws new random numbers."""
        return _same.checked(self.predict, self.unravel, *_shapes(self.x))

    def expect_same_function(self, w: Array) -> None:
        """Refuses a network that differs at w between two calls, callbacks out of JAX included."""
        if self.content().leaves_jax:
            self.predictions(w)


def _shapes(x: Any) -> tuple[Any, tuple[Any, ...]]:
    leaves, structure = jax.tree.flatten(x)
    return structure, tuple((a.shape, a.dtype) for a in leaves)


def _numbers(argument: str, value: Any, ndim: int, n: int) -> Array:
    """Numbers of examples; those that are known before compiling are checked."""
    found = value if isinstance(value, Array) else np.asarray(value)
    fits = found.ndim == ndim and found.size and jnp.issubdtype(found.dtype, jnp.integer)
    if fits and not isinstance(found, jax.core.Tracer):
        fits = bool((found >= -n).all() and (found < n).all())
    if not fits:
        rule = "a whole number" if ndim == 0 else "a list of whole numbers, not empty,"
        check.refuse(argument, f"{rule} from 0 to {n - 1}", value, f"The problem has {n} examples.")
    return jnp.asarray(found)


def _checked_data(predict: Predict, unravel: Unravel, x: Any, y: Any, loss: Loss, dtype: Any) -> tuple[Any, Array]:
    """x and y as JAX arrays in the precision of the parameters, after all checks that need no computation."""
    classes = loss.name == "cross_entropy"
    try:
        y = np.asarray(y)
    except ValueError:
        check.refuse("y", "an array", type(y).__name__, "Give all its rows the same length.")
    if y.ndim == 0 or y.shape[0] == 0:
        check.refuse("y", "an array with one row an example, not empty", f"shape {y.shape}", "Pass the targets.")
    check.finite("y", y)
    converted = y if classes and np.issubdtype(y.dtype, np.integer) else check.converted("y", y, dtype)
    leaves = jax.tree.leaves(x)
    for leaf in leaves:
        check.finite("x", leaf)
        if np.ndim(leaf) == 0 or np.shape(leaf)[0] != y.shape[0]:
            rule = f"{y.shape[0]} rows, as many as y"
            remedy = "Give x and y one row an example, and make arrays of lists: numpy.asarray(x)."
            check.refuse("x", rule, f"shape {np.shape(leaf)}", remedy)
    x = jax.tree.map(lambda a: _held(a, dtype), x)
    predictions = _same.content(predict, unravel, *_shapes(x)).returned
    shape = getattr(predictions, "shape", None)
    if shape is None or not shape or shape[0] != y.shape[0]:
        rule = f"an array of {y.shape[0]} rows"
        check.refuse("predict(params, x)", rule, predictions, "Return one row for each row of x.")
    if not jnp.issubdtype(predictions.dtype, jnp.floating):
        remedy = "A loss has no slope there: return the values before rounding, comparing or casting."
        check.refuse("predict(params, x)", "real floating numbers", str(predictions.dtype), remedy)
    loss.check_targets(shape, y)
    return x, jnp.asarray(converted)


def _held(a: Any, dtype: Any) -> Array:
    """An array of inputs as JAX holds it: real numbers in the precision of the parameters, others as they are."""
    a = a if isinstance(a, Array) else np.asarray(a)
    if jnp.issubdtype(a.dtype, jnp.floating):
        return jnp.asarray(check.converted("x", a, dtype))
    if a.dtype.kind not in "biuc":
        check.refuse("x", "an array of numbers", str(a.dtype), "Convert it: x.astype(float).")
    return jnp.asarray(check.converted("x", a, jax.dtypes.canonicalize_dtype(a.dtype)))
