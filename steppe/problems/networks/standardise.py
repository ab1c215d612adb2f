"""Hidden activations divided by their spread over the training set, and how that depends on the first layer.

g(x) = (σ(h(x)) − μ)/√ψ for each neuron, h = W₁x + b₁; with `centre` μ is the mean of σ(h) over the training set and
ψ = eps + its variance, without it μ = 0 and ψ = eps + the mean square.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steppe.problems.networks import first_layer, quotient
from steppe.problems.networks.activations import Activation
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.training_inputs import Source, TrainingInputs


class Derivatives(NamedTuple):
    """g, ‖∇g‖² and Δg for each example and neuron, derivatives in the neuron's own row of (W₁, b₁); (n, m) each."""

    value: Array
    squares: Array
    laplacian: Array


@dataclass(frozen=True)
class Standardise:
    train: TrainingInputs
    activation: Activation
    bias: bool
    centre: bool
    eps: float

    def _hidden(self, params: Params, x: Array) -> Array:
        return first_layer.preactivations(params, x, bias=self.bias)

    def _inputs(self, params: Params) -> Array:
        return jnp.asarray(self.train.array, params["W1"].dtype)

    def _moments(self, a: Array) -> tuple[Array, Array, Array]:
        """μ, ψ and whether the neuron is alive, (1, m) each."""
        mean = jnp.mean(a, axis=0, keepdims=True) if self.centre else jnp.zeros_like(a[:1])
        psi = jnp.mean((a - mean) ** 2, axis=0, keepdims=True) + self.eps
        # A neuron silent on the whole training set would be 0/0, or 1/0 on a test point: it stays silent.
        return mean, jnp.where(psi > 0, psi, 1), psi > 0

    def __call__(self, params: Params, x: Array, source: Source | None = None) -> Array:
        """g(x); its statistics by default those of the training inputs at the same parameters."""
        mean, psi, alive = self._moments(self.activation(self._hidden(*(source or (params, self._inputs(params))))))
        return jnp.where(alive, (self.activation(self._hidden(params, x)) - mean) / jnp.sqrt(psi), 0)

    def derivatives(self, params: Params, x: Array) -> Derivatives:
        train = self._inputs(params)
        h, rows = self._hidden(params, train), first_layer.extended(train, bias=self.bias)
        lengths = first_layer.lengths(train, bias=self.bias)
        a, slope, bend = self.activation(h), self.activation.slope(h), self.activation.curvature(h)
        mean, psi, alive = self._moments(a)
        n, centre = len(train), 1.0 if self.centre else 0.0
        grad_mean, lap_mean = centre * slope.T @ rows / n, centre * lengths @ bend / n  # (m, d′), (m,)
        grad_psi = 2 * ((a - mean) * slope).T @ rows / n
        lap_psi = 2 * lengths @ (slope**2 + (a - mean) * bend) / n - 2 * jnp.sum(grad_mean**2, axis=1)

        h, rows = self._hidden(params, x), first_layer.extended(x, bias=self.bias)
        lengths = first_layer.lengths(x, bias=self.bias)[:, None]
        N, slope = self.activation(h) - mean, self.activation.slope(h)
        squares = slope**2 * lengths - 2 * slope * (rows @ grad_mean.T) + jnp.sum(grad_mean**2, axis=1)[None]
        cross = slope * (rows @ grad_psi.T) - jnp.sum(grad_mean * grad_psi, axis=1)[None]
        psi_squares = jnp.sum(grad_psi**2, axis=1)[None]
        lap_N = self.activation.curvature(h) * lengths - lap_mean[None]
        return Derivatives(
            jnp.where(alive, N / jnp.sqrt(psi), 0),
            jnp.where(alive, quotient.squared_gradient(N, squares, cross, psi, psi_squares), 0),
            jnp.where(alive, quotient.laplacian(N, lap_N, cross, psi, psi_squares, lap_psi[None]), 0),
        )
