"""f(x) = W₂ · σ(W₁x + b₁), the network of most of wen2023."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks import first_layer
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.closed_form import ClosedForm
from steppe.problems.networks.first_layer import Params, uniform


@dataclass(frozen=True)
class TwoLayer(ClosedForm):
    """f(x) = W₂ · σ(W₁x + b₁), or W₂ · σ(W₁x) with `bias=False`; parameters W1 (m, d), b1 (m,), W2 (m,).

    >>> net = TwoLayer(bias=False)
    >>> params = {"W1": np.array([[1.0, 0.0], [0.0, -1.0]]), "W2": np.array([2.0, 3.0])}
    >>> net(params, np.array([[5.0, 7.0]])).tolist()                # 2·relu(5) + 3·relu(−7)
    [10.0]
    """

    bias: bool = True
    activation: Activation = relu

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        params = first_layer.init(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"W2": uniform(rng, width, width, dtype)}

    def preactivations(self, params: Params, x: Array) -> Array:
        return first_layer.preactivations(params, x, bias=self.bias)

    def __call__(self, params: Params, x: Array) -> Array:
        output: Array = self.activation(self.preactivations(params, x)) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """‖∇f‖² = ‖W₂ ⊙ σ′(h)‖² ‖x′‖² + ‖σ(h)‖² (wen2023, Eq. 2) and Δf = ‖x′‖² Σⱼ W₂ⱼ σ″(hⱼ), x′ = (x, 1)."""
        h = self.preactivations(params, x)
        lengths = first_layer.lengths(x, bias=self.bias)
        slopes = params["W2"][None] * self.activation.slope(h)
        norms = jnp.sum(slopes**2, axis=1) * lengths + jnp.sum(self.activation(h) ** 2, axis=1)
        return norms, lengths * (self.activation.curvature(h) @ params["W2"])
