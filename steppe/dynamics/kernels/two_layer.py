"""The fast path for two-layer nets, with simplified LayerNorm or without; the steps are in two_layer_steps.py."""

from typing import Any, final

import numpy as np
from jax import Array

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels import activations
from steppe.dynamics.kernels.heads import Head
from steppe.dynamics.kernels.matmul import TILE
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, aligned, pack, padded, row_stride, unpack
from steppe.dynamics.kernels.training import Training
from steppe.dynamics.kernels.two_layer_steps import Network, single
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.problems import Problem
from steppe.problems.networks import MLP, SimLN, TwoLayer


@final
class TwoLayerKernel:
    """The fast path for one two-layer problem and one dynamics. Its state is W₁ with b₁ packed, then W₂ padded."""

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics, key: int | None = None) -> bool:
        net = problem.predict
        return (
            (isinstance(net, TwoLayer | SimLN) or (isinstance(net, MLP) and net.depth == 2))
            and activations.of(net.activation, np.float64) is not None
            and Training.fits(problem, dynamics, key, bias=net.bias)
        )

    def __init__(self, problem: Problem, dynamics: Dynamics, key: int | None = None):
        net: Any = problem.predict
        self.training = t = Training(problem, dynamics, key, bias=net.bias)
        self.m = len(t.arrays(problem.w0)["W1"])
        lanes = padded(self.m, LANES)
        self.first = lanes * t.X.shape[1]  # numbers of W₁ in the state
        activation: Any = activations.of(net.activation, t.number)
        self.head = Head(activation, t.number(net.eps if isinstance(net, SimLN) else 0))
        # Padding has h = 0: it may be looked at, in whole vectors, where σ(0) = 0.
        self.width = self.m if activation.smooth else lanes

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.first + padded(self.m, LANES), W.dtype)
        state[: self.first] = pack(W).ravel()
        state[self.first : self.first + self.m] = params["W2"]
        return state

    def position(self, state: Floats) -> Array:
        P = state[: self.first].reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES)
        return self.training.vector(unpack(P, self.m, self.training.d), {"W2": state[self.first : self.first + self.m]})

    def network(self) -> Network:
        """With room of its own, since several threads may run one kernel."""
        t, lanes = self.training, padded(self.m, LANES)
        columns, size = row_stride(max(lanes, t.X.shape[1]), t.number), padded(t.size, TILE)
        batch, H = aligned((size, t.X.shape[1]), t.number), aligned((size, columns), t.number)
        return Network(self.head, t.X, self.width, batch, H, aligned((5, columns), t.number))

    def advance(
        self, state: Floats, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Floats, int, Halt]:
        return self.training.advance(self.network(), single, self.first, state, orders, first, offset, count, target)
