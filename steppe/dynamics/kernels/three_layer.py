"""The fast path for nets of three layers; the steps are in three_layer_steps.py."""

from typing import Any, final

import numpy as np
from jax import Array

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels import activations
from steppe.dynamics.kernels.heads import Head
from steppe.dynamics.kernels.matmul import TILE
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, aligned, pack, padded, row_stride, unpack
from steppe.dynamics.kernels.second_layer import BLOCK, Shape
from steppe.dynamics.kernels.three_layer_steps import Network, single
from steppe.dynamics.kernels.training import Training
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.problems import Problem
from steppe.problems.networks import MLP


@final
class ThreeLayerKernel:
    """The fast path for one three-layer problem: its state is W₁ with b₁ packed, W₂ row by row, W₃, all padded."""

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics, key: int | None = None) -> bool:
        net = problem.predict
        return (
            isinstance(net, MLP)
            and net.depth == 3
            and activations.of(net.activation, np.float64) is not None
            and Training.fits(problem, dynamics, key, bias=net.bias)
        )

    def __init__(self, problem: Problem, dynamics: Dynamics, key: int | None = None):
        net: Any = problem.predict
        self.training = t = Training(problem, dynamics, key, bias=net.bias)
        self.size = k, m = t.arrays(problem.w0)["W2"].shape
        lanes, rows = padded(m, LANES), padded(k, BLOCK)
        activation: Any = activations.of(net.activation, t.number)
        self.head = Head(activation, t.number(0))
        # Padding has h = 0: it may be looked at, in whole vectors, where σ(0) = 0.
        self.width = m if activation.smooth else lanes
        self.shape = Shape(rows, k if activation.smooth else rows, lanes, row_stride(lanes, t.number))
        self.first, self.second = lanes * t.X.shape[1], rows * self.shape.stride

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats]:
        """Views of W₁, W₂ and W₃ with their padding."""
        P, W2, W3 = np.split(state, [self.first, self.first + self.second])
        return P.reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES), W2.reshape(self.shape.rows, -1), W3

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.first + self.second + self.shape.rows, W.dtype)
        P, W2, W3 = self._split(state)
        k, m = self.size
        P[...], W2[:k, :m], W3[:k] = pack(W), params["W2"], params["W3"]
        return state

    def position(self, state: Floats) -> Array:
        P, W2, W3 = self._split(state)
        k, m = self.size
        return self.training.vector(unpack(P, m, self.training.d), {"W2": W2[:k, :m], "W3": W3[:k]})

    def network(self) -> Network:
        """With room of its own, since several threads may run one kernel."""
        t = self.training

        def room(columns: int) -> Floats:
            return aligned((padded(t.size, TILE), columns), t.number)

        A, S, back = (room(self.shape.stride) for _ in range(3))
        Z = room(row_stride(self.shape.rows, t.number))
        return Network(self.head, t.X, self.width, self.shape, room(t.X.shape[1]), A, S, Z, back)

    def advance(
        self, state: Floats, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Floats, int, Halt]:
        return self.training.advance(self.network(), single, self.first, state, orders, first, offset, count, target)
