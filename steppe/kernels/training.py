"""What all kernels share: the dynamics as numbers, the data, label noise, and steps of any batch size."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe._random import label_noise
from steppe.kernels.elementary import activation_of, loss_of
from steppe.kernels.matrices import ROWS, Floats, aligned, copied, padded
from steppe.kernels.path import Indices, Path
from steppe.kernels.simd import dot, kernel, part
from steppe.outcome import Halt
from steppe.problem import Problem


@dataclass(frozen=True)
class Recipe:
    """A dynamics as the numbers that every kernel understands: w ← Π((1 − ηλ)w − η∇ℓ(w + ρ∇ℓ/‖∇ℓ‖)).

    GD has ρ = 0. The labels have noise σ. Π scales the parameters `held` to the norm `norm`, if there are any.
    """

    lr: float
    rho: float
    weight_decay: float
    batch_size: int | None
    sigma: float = 0.0
    held: frozenset[str] = frozenset()
    norm: float = 0.0

    @classmethod
    def of(cls, lr: Any, rho: Any, weight_decay: Any, batch_size: int | None) -> "Recipe | None":
        """None if one of the rates is an array, which stands for many runs."""
        if np.ndim(lr) or np.ndim(rho) or np.ndim(weight_decay):
            return None
        return cls(float(lr), float(rho), float(weight_decay), batch_size)

    def rates(self, number: type[np.floating]) -> tuple[np.floating, np.floating, np.floating]:
        """η, ρ and 1 − ηλ in the precision of the weights."""
        return number(self.lr), number(self.rho), number(1 - self.lr * self.weight_decay)


# Label noise is drawn in blocks of this many steps, so that one compiled function serves every call.
_STEPS = 1024


@partial(jax.jit, static_argnums=2)
def _block(key: Array, first: Array, size: int, sigma: Array, y: Array) -> Array:
    return jax.vmap(lambda t: label_noise(jax.random.fold_in(key, t), size, sigma, y))(first + jnp.arange(_STEPS))


def gradient(network: Any, w: Any, index: Any, y: Any, targets: Any, loss: Any, g: Any) -> Any:
    """g = ∇ of the mean loss of the examples `index` against `targets`; returns their mean loss against y.

    Each kind of network overloads it for compiled code; Python cannot call it.
    """
    raise TypeError("gradient is for compiled code: call it inside a kernel, on a network that overloads it")


@part
def length(g):  # type: ignore[no-untyped-def]
    """‖g‖, without underflow of the squares of a small g or overflow of those of a large one."""
    squares, largest = dot(g, g, len(g)), g.dtype.type(0)
    if np.isfinite(squares) and squares > g.dtype.type(1e-30):
        return np.sqrt(squares)
    for k in range(len(g)):
        largest = max(largest, abs(g[k]))
    if not np.isfinite(largest) or largest == 0:
        return largest
    scaled = g / largest
    return largest * np.sqrt(dot(scaled, scaled, len(g)))


@kernel
def descend(network, w, y, noise, loss, orders, size, offset, count, full, target, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps in place; `full` means that every batch holds all examples. Returns (steps done, halt).

    If `noise` has rows, row t is added to the labels of step t. The first `held` numbers of w are scaled to `norm`
    after every step.
    """
    n, zero = orders.shape[1], w.dtype.type(0)
    per_epoch = -(-n // size)
    g, point, targets = np.zeros_like(w), np.zeros_like(w), np.zeros(size, w.dtype)
    for t in range(count):
        epoch, position = (0, 0) if full else ((offset + t) // per_epoch, (offset + t) % per_epoch)
        index = orders[epoch, position * size : min((position + 1) * size, n)]
        for i in range(len(index)):
            targets[i] = y[index[i]] + (noise[t, i] if len(noise) else zero)
        for ascended in range(2 if rho > zero else 1):
            mean = gradient(network, point if ascended else w, index, y, targets, loss, g)
            if ascended:
                break
            if not np.isfinite(mean):
                return t, 2
            if full and mean <= target:
                return t, 1
            if rho > zero:
                norm_g = length(g)
                # An already fitted batch has g = 0, and 0/0 is NaN: it gets no perturbation.
                c = rho / norm_g if norm_g > zero else zero
                for k in range(len(w)):
                    point[k] = w[k] + c * g[k]
        for k in range(len(w)):
            point[k], w[k] = w[k], decay * w[k] - lr * g[k]
        if held:
            long = length(w[:held])
            factor = norm / long if long > zero else zero
            for k in range(held):
                w[k] *= factor
        if full and _equal(w, point):
            return t, 3
    return count, 0


@part
def _equal(a, b):  # type: ignore[no-untyped-def]
    same = True
    for k in range(len(a)):
        same &= a[k] == b[k]
    return same


Compiled = Callable[..., tuple[int, int]]


@final
class Training:
    """One problem and one dynamics, ready for compiled code. Only label noise needs the `key`.

    Zeros pad the inputs to a multiple of `unit` columns.
    """

    def __init__(self, problem: Problem, recipe: Recipe, key: int | None, *, unit: int = ROWS):
        self.problem, self.recipe, self.key = problem, recipe, key
        self.number = np.dtype(problem.w0.dtype).type
        net: Any = problem.predict
        self.bias: bool = net.bias
        self.activation: Any = activation_of(net.activation, self.number)
        self.loss = loss_of(problem.loss_function, self.number)
        n, d = problem.x.shape
        self.d = d + self.bias
        self.X = aligned((n, padded(self.d, unit)), self.number)
        self.X[:, :d] = problem.x
        self.X[:, d : self.d] = 1
        self.y = np.array(problem.y)
        self.lengths = (self.X**2).sum(1)  # ‖x′‖²
        self.size = min(recipe.batch_size or n, n)

    @staticmethod
    def fits(problem: Problem, recipe: Recipe, key: int | None) -> bool:
        """Whether kernels know the activation, the loss, the dynamics and the kind of numbers. Each kernel checks the
        network, which must have a `bias` and an `activation`."""
        net: Any = problem.predict
        first_layer = {"W1", "b1"} if net.bias else {"W1"}
        return (
            activation_of(net.activation, np.float64) is not None
            and recipe.held in (frozenset(), first_layer)
            and (recipe.sigma == 0 or (key is not None and problem.loss_function.name in ("mse", "half_mse")))
            and problem.w0.dtype in (jnp.float32, jnp.float64)
            and loss_of(problem.loss_function, np.float64) is not None
            and isinstance(problem.x, Array)
            and problem.x.ndim == 2
        )

    def arrays(self, w: Array) -> dict[str, Floats]:
        """All parameters by name. In numpy: JAX would compile a program for each new shape."""
        flat: Any = np.asarray(w)
        return {name: np.array(a) for name, a in self.problem.unravel(flat).items()}

    def params(self, w: Array) -> tuple[Floats, dict[str, Floats]]:
        """(W₁, b₁) as one matrix, scaled to the norm if it is held, and all parameters by name."""
        params = self.arrays(w)
        W = np.column_stack([params["W1"], params["b1"]]) if self.bias else params["W1"]
        if self.recipe.held and W.any():
            W *= self.number(self.recipe.norm / np.linalg.norm(W.astype(float)))
        return W, params

    def vector(self, W: Floats, rest: dict[str, Floats]) -> Array:
        """The problem's flat vector, from (W₁, b₁) as one matrix and the other parameters."""
        d = self.problem.x.shape[1]
        params = rest | {"W1": W[:, :d]} | ({"b1": W[:, d]} if self.bias else {})
        return jnp.asarray(np.concatenate([params[name].ravel() for name in sorted(params)]))

    def noise(self, first: int, count: int) -> Iterator[tuple[int, int, Floats]]:
        """The steps [first, first + count) in pieces: (steps before it, steps in it, label noise with one row a step).

        The numbers are those that the generic path draws one step at a time.
        """
        if self.recipe.sigma == 0 or self.key is None:
            yield 0, count, np.zeros((0, self.size), self.number)
            return
        key, sigma = jax.random.key(self.key), jnp.asarray(self.recipe.sigma)
        for done in range(0, count, _STEPS):
            block = _block(key, jnp.asarray(first + done), self.size, sigma, self.problem.y)
            yield done, min(_STEPS, count - done), np.array(block)


class Kernel(Path):
    """A path on compiled code: `single` takes the steps of one example, and the first layer is the first `held` numbers
    of a state."""

    training: Training
    held: int
    single: Compiled

    @abc.abstractmethod
    def network(self) -> Any:
        """What compiled code gets. Its room to work in is new for each call, because threads may share a kernel."""

    def advance(
        self, state: Floats, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Floats, int, Halt]:
        """`Path.advance`: steps of one example by `single`, all others by `descend`."""
        t, network = self.training, self.network()
        w, full, rates = copied(state), orders is None, t.recipe.rates(t.number)
        rows = np.arange(len(t.y), dtype=np.int32)[None] if orders is None else orders
        goal, held, norm = t.number(target if full else -np.inf), bool(t.recipe.held), t.number(t.recipe.norm)
        done, halt = 0, 0
        for before, steps, noise in t.noise(first, count):
            if t.size == 1 and not full:
                did, halt = self.single(
                    network, w, t.y, noise, t.loss, t.lengths, rows.ravel(), offset + before, steps, *rates, held, norm
                )
            else:
                did, halt = descend(
                    network, w, t.y, noise, t.loss, rows, t.size, offset + before, steps, full, goal, *rates,
                    self.held if held else 0, norm,
                )  # fmt: skip
            done += did
            if halt:
                break
        return w, done, Halt(halt)
