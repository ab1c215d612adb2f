"""A two-layer net with standard LayerNorm: a next check of wen2023."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import first_layer, quotient
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.closed_form import ClosedForm
from steppe.problems.networks.first_layer import Params, uniform


@dataclass(frozen=True)
class LayerNorm(ClosedForm):
    """f(x) = W₂ · (γ ⊙ (a − ā)/√(var a + eps) + β), a = σ(W₁x + b₁), mean and variance over the neurons of an example.

    Parameters W1, b1, gamma, beta, W2.

    >>> net = LayerNorm(bias=False, eps=0.0)
    >>> params = {"W1": np.array([[1.0], [3.0]]), "gamma": np.ones(2), "beta": np.ones(2), "W2": np.array([2.0, 5.0])}
    >>> net(params, np.array([[4.0]])).tolist()                     # 2 · (−1 + 1) + 5 · (1 + 1)
    [10.0]
    """

    bias: bool = True
    activation: Activation = relu
    eps: float = 1e-5

    def __post_init__(self) -> None:
        check.number("eps", self.eps, minimum=0.0)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, γ = 1 and β = 0."""
        params = first_layer.init(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        params |= {"gamma": np.ones(width, dtype), "beta": np.zeros(width, dtype)}
        return params | {"W2": uniform(rng, width, width, dtype)}

    def _centred(self, a: Array) -> tuple[Array, Array]:
        """a − ā, (n, m), and ψ = var a + eps, (n, 1)."""
        centred = a - jnp.mean(a, axis=1, keepdims=True)
        return centred, jnp.mean(centred**2, axis=1, keepdims=True) + self.eps

    def __call__(self, params: Params, x: Array) -> Array:
        centred, psi = self._centred(self.activation(first_layer.preactivations(params, x, bias=self.bias)))
        output: Array = (params["gamma"][None] * centred / jnp.sqrt(psi) + params["beta"][None]) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """By neuron, as in `SimLN`, of the quotient p·(a − ā)/√ψ with p = γ ⊙ W₂."""
        h = first_layer.preactivations(params, x, bias=self.bias)
        slope, lengths = self.activation.slope(h), first_layer.lengths(x, bias=self.bias)
        gamma, beta, W2 = params["gamma"], params["beta"], params["W2"]
        p = gamma * W2
        centred, psi = self._centred(self.activation(h))
        m = centred.shape[1]
        N, grad_N, grad_psi = (centred @ p)[:, None], (p - jnp.mean(p))[None], 2 * centred / m
        first = grad_N / jnp.sqrt(psi) - N * grad_psi / (2 * psi**1.5)
        lap_psi = jnp.full_like(centred, 2 / m - 2 / m**2)
        second = quotient.laplacian(N, 0 * centred, grad_N * grad_psi, psi, grad_psi**2, lap_psi)
        unit = centred / jnp.sqrt(psi)
        norms = (
            lengths * jnp.sum((slope * first) ** 2, axis=1)
            + jnp.sum((gamma[None] * unit + beta[None]) ** 2, axis=1)
            + (unit**2 + 1) @ W2**2
        )
        return norms, lengths * jnp.sum(slope**2 * second + self.activation.curvature(h) * first, axis=1)
