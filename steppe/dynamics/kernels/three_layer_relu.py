"""The fast path for ReLU nets of three layers, one example a step; the steps are in three_layer_relu_steps.py."""

from typing import Any, final

import numpy as np
from jax import Array

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels import activations
from steppe.dynamics.kernels.heads import Head
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, aligned, pack, padded, row_stride, unpack
from steppe.dynamics.kernels.recipe import recipe
from steppe.dynamics.kernels.simd import BYTES
from steppe.dynamics.kernels.three_layer import ThreeLayerKernel
from steppe.dynamics.kernels.three_layer_relu_steps import Network, single
from steppe.dynamics.kernels.training import Training
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.problems import Problem
from steppe.problems.networks import MLP


@final
class ThreeLayerReLUKernel:
    """The fast path for one three-layer problem with neurons that can be silent.

    Its state is W₁ with b₁ packed, V row by row, W₃, all padded, and κ: W₂ = κVᵀ.
    """

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics, key: int | None = None) -> bool:
        known, net = recipe(dynamics), problem.predict
        return (
            known is not None
            and isinstance(net, MLP)
            and net.activation.leak == 0
            and ThreeLayerKernel.fits(problem, dynamics, key)
            and known.batch_size == 1 < len(problem)
            # κ is divided by; a decay that leaves nothing of it in a step is left to the other kernel.
            and known.lr * known.weight_decay <= 0.5
        )

    def __init__(self, problem: Problem, dynamics: Dynamics, key: int | None = None):
        net: Any = problem.predict
        self.training = t = Training(problem, dynamics, key, bias=net.bias)
        self.size = k, m = t.arrays(problem.w0)["W2"].shape
        activation: Any = activations.of(net.activation, t.number)
        columns = padded(k, BYTES // np.dtype(t.number).itemsize)
        self.network = Network(Head(activation, t.number(0)), t.X, m, columns, row_stride(columns, t.number))
        self.first = padded(m, LANES) * t.X.shape[1]
        self.second = (m + 1) * self.network.stride

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Views of W₁ and of V, W₃ and κ without their padding."""
        k, m = self.size
        end = self.first + self.second
        P, V, v, kappa = np.split(state, [self.first, end, end + self.network.columns])
        W1 = P.reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES)
        return W1, V.reshape(m + 1, -1)[:m, :k], v[:k], kappa

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.first + self.second + self.network.columns + 1, W.dtype)
        P, V, v, kappa = self._split(state)
        P[...], V[...], v[...], kappa[...] = pack(W), params["W2"].T, params["W3"], 1
        return state

    def position(self, state: Floats) -> Array:
        P, V, v, kappa = self._split(state)
        W = unpack(P, self.size[1], self.training.d)
        return self.training.vector(W, {"W2": (kappa * V).T, "W3": v})

    def advance(
        self, state: Floats, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Floats, int, Halt]:
        return self.training.advance(self.network, single, self.first, state, orders, first, offset, count, target)
