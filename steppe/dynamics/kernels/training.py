"""What the kernels of all networks share: the data, the rates, the labels' noise, and the way into compiled code."""

from collections.abc import Callable, Iterator
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels import losses
from steppe.dynamics.kernels.descent import descend
from steppe.dynamics.kernels.noise import pieces
from steppe.dynamics.kernels.packed import ROWS, Floats, aligned, copied, padded
from steppe.dynamics.kernels.recipe import recipe
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.problems import Problem

Compiled = Callable[..., tuple[int, int]]


@final
class Training:
    """One problem and one dynamics, ready for compiled code. `key` is needed for label noise only.

    The inputs are padded to a multiple of `unit` columns.
    """

    def __init__(self, problem: Problem, dynamics: Dynamics, key: int | None, *, bias: bool, unit: int = ROWS):
        known = recipe(dynamics)
        assert known is not None
        self.problem, self.recipe, self.key, self.bias = problem, known, key, bias
        self.number = np.dtype(problem.w0.dtype).type
        self.loss = losses.of(problem.criterion, self.number)
        n, d = problem.x.shape
        self.d = d + bias
        self.X = aligned((n, padded(self.d, unit)), self.number)
        self.X[:, :d] = problem.x
        self.X[:, d : self.d] = 1
        self.y = np.array(problem.y)
        self.lengths = (self.X**2).sum(1)  # ‖x′‖²
        self.size = min(known.batch_size or n, n)

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics, key: int | None, *, bias: bool) -> bool:
        """Whether kernels know the loss, the dynamics and the kind of numbers; the network is another question."""
        known = recipe(dynamics)
        first_layer = {"W1", "b1"} if bias else {"W1"}
        return (
            known is not None
            and known.held in (frozenset(), first_layer)
            and (known.sigma == 0 or (key is not None and problem.criterion.name in ("mse", "half_mse")))
            and problem.w0.dtype in (jnp.float32, jnp.float64)
            and losses.of(problem.criterion, np.float64) is not None
            and isinstance(problem.x, Array)
            and problem.x.ndim == 2
        )

    def arrays(self, w: Array) -> dict[str, Floats]:
        """All parameters by name. In numpy: JAX would compile a program for each new shape."""
        flat: Any = np.asarray(w)
        return {name: np.array(a) for name, a in self.problem.unravel(flat).items()}

    def params(self, w: Array) -> tuple[Floats, dict[str, Floats]]:
        """(W₁, b₁) as one matrix, scaled to the norm that is held if one is, and all parameters by name."""
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

    def advance(
        self, network: Any, single: Compiled, held: int, state: Floats, orders: Indices | None,
        first: int, offset: int, count: int, target: float,
    ) -> tuple[Floats, int, Halt]:  # fmt: skip
        """What `Path.advance` asks for: steps of one example by `single`, all others by `descend`.

        `held` numbers of the state are those of the first layer.
        """
        w, full, rates = copied(state), orders is None, self.recipe.rates(self.number)
        rows = np.arange(len(self.y), dtype=np.int32)[None] if orders is None else orders
        goal = self.number(target if full else -np.inf)
        size, norm = self.size, self.number(self.recipe.norm)
        done, halt = 0, 0
        for before, steps, noise in self._noise(first, count):
            if size == 1 and not full:
                did, halt = single(
                    network, w, self.y, noise, self.loss, self.lengths, rows.ravel(), offset + before, steps,
                    *rates, bool(self.recipe.held), norm,
                )  # fmt: skip
            else:
                did, halt = descend(
                    network, w, self.y, noise, self.loss, rows, size, offset + before, steps, full, goal,
                    *rates, held if self.recipe.held else 0, norm,
                )  # fmt: skip
            done += did
            if halt:
                break
        return w, done, Halt(halt)

    def _noise(self, first: int, count: int) -> Iterator[tuple[int, int, Floats]]:
        if self.recipe.sigma == 0 or self.key is None:
            yield 0, count, np.zeros((0, self.size), self.number)
        else:
            yield from pieces(self.key, first, count, self.size, self.recipe.sigma, self.problem.y)
