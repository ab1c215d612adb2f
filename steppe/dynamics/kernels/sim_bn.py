"""The fast path for two-layer nets with simplified BatchNorm; the steps are in sim_bn_steps.py."""

from typing import Any, final

import numpy as np
from jax import Array

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels import activations
from steppe.dynamics.kernels.matmul import TILE
from steppe.dynamics.kernels.packed import Floats, aligned, padded
from steppe.dynamics.kernels.sim_bn_products import inputs, with_own_room
from steppe.dynamics.kernels.sim_bn_steps import Network, single
from steppe.dynamics.kernels.simd import BYTES
from steppe.dynamics.kernels.training import Training
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.problems import Problem
from steppe.problems.networks import SimBN


@final
class SimBNKernel:
    """The fast path for one Sim-BN problem. Its state is W₁ with b₁ row by row, γ, W₂, all padded."""

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics, key: int | None = None) -> bool:
        net = problem.predict
        return (
            isinstance(net, SimBN)
            and activations.of(net.activation, np.float64) is not None
            and Training.fits(problem, dynamics, key, bias=net.bias)
            # Statistics over other inputs than those trained on are left to the generic path.
            and np.array_equal(net.standardise.train.array.astype(problem.x.dtype), problem.x)
        )

    def __init__(self, problem: Problem, dynamics: Dynamics, key: int | None = None):
        net: Any = problem.predict
        number = np.dtype(problem.w0.dtype)
        self.training = t = Training(problem, dynamics, key, bias=net.bias, unit=BYTES // number.itemsize)
        activation: Any = activations.of(net.activation, t.number)
        self.activation = activation
        self.m = len(t.arrays(problem.w0)["W1"])
        self.rows = padded(self.m, TILE)
        n, columns = t.X.shape
        self.XT = aligned((columns, padded(n, BYTES // number.itemsize)), number)
        self.XT[:, :n] = t.X.T
        # Larger batches have no use for tables, and their code is then compiled once for all inputs.
        self.inputs = inputs(t.X[:, : t.d], self.XT, tables=t.size == 1 and not activation.smooth)

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats]:
        """Views of (W₁, b₁), γ and W₂ without their padding."""
        W, gamma, v = np.split(state, [self.rows * self.XT.shape[0], self.rows * (self.XT.shape[0] + 1)])
        return W.reshape(self.rows, -1)[: self.m, : self.training.d], gamma[: self.m], v[: self.m]

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.rows * (self.XT.shape[0] + 2), W.dtype)
        for view, values in zip(self._split(state), (W, params["gamma"], params["W2"]), strict=True):
            view[...] = values
        return state

    def position(self, state: Floats) -> Array:
        W, gamma, v = self._split(state)
        return self.training.vector(W, {"gamma": gamma, "W2": v})

    def network(self) -> Network:
        """With room of its own, since several threads may run one kernel."""
        t, XT, columns = self.training, self.XT, self.XT.shape[0]
        lanes = BYTES // XT.itemsize
        neurons = aligned((2, padded(self.m, lanes) * (columns + 2)), t.number)
        room = aligned(lanes * columns, t.number)
        A, S = (aligned((self.rows, XT.shape[1]), t.number) for _ in range(2))
        return Network(self.activation, t.X, XT, with_own_room(self.inputs), neurons, room, A, S)

    def advance(
        self, state: Floats, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Floats, int, Halt]:
        held = self.rows * self.XT.shape[0]
        return self.training.advance(self.network(), single, held, state, orders, first, offset, count, target)
