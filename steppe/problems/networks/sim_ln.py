"""2-MLP-Sim-LN of wen2023: LayerNorm without mean subtraction and bias, a = σ(h) divided by max(‖a‖, ε)."""

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
class SimLN(ClosedForm):
    """f(x) = W₂ · a / max(‖a‖, ε) with a = σ(W₁x + b₁); parameters W1, b1, W2.

    >>> params = {"W1": np.array([[3.0], [4.0]]), "W2": np.array([1.0, 0.0])}
    >>> SimLN(eps=1.0, bias=False)(params, np.array([[1.0], [0.1]])).round(6).tolist()  # 3/5; 0.3/1 as ‖a‖ = 0.5 < ε
    [0.6, 0.3]
    """

    eps: float
    bias: bool = True
    activation: Activation = relu

    def __post_init__(self) -> None:
        check.number("eps", self.eps, above=0.0)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        params = first_layer.init(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"W2": uniform(rng, width, width, dtype)}

    def _scale(self, a: Array) -> tuple[Array, Array]:
        """max(‖a‖, ε)² and whether it is ‖a‖², (n, 1) each; the slope at a = 0 is 0, not NaN.

        NaN where ‖a‖² overflows: divided by ∞ the output would be 0, and a run that diverges would seem to rest.
        """
        square = jnp.sum(a**2, axis=1, keepdims=True)
        long = square > self.eps**2
        square = jnp.where(jnp.isinf(square), jnp.nan, square)
        return jnp.where(long, square, self.eps**2), long

    def __call__(self, params: Params, x: Array) -> Array:
        a = self.activation(first_layer.preactivations(params, x, bias=self.bias))
        output: Array = (a / jnp.sqrt(self._scale(a)[0])) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """By neuron: ∂f/∂aⱼ and ∂²f/∂aⱼ² of the quotient W₂·a/√ψ, ψ = ‖a‖² or ε², then the chain rule through σ."""
        h = first_layer.preactivations(params, x, bias=self.bias)
        a, slope, W2 = self.activation(h), self.activation.slope(h), params["W2"][None]
        lengths = first_layer.lengths(x, bias=self.bias)
        psi, long = self._scale(a)
        N, grad_psi = (a @ params["W2"])[:, None], jnp.where(long, 2 * a, 0)
        first = W2 / jnp.sqrt(psi) - N * grad_psi / (2 * psi**1.5)
        second = quotient.laplacian(N, 0 * a, W2 * grad_psi, psi, grad_psi**2, jnp.where(long, 2.0, 0.0) + 0 * a)
        norms = lengths * jnp.sum((slope * first) ** 2, axis=1) + jnp.sum(a**2 / psi, axis=1)
        return norms, lengths * jnp.sum(slope**2 * second + self.activation.curvature(h) * first, axis=1)
