"""f(x) = W₂ · σ(W₁x + b₁), the network of most of wen2023."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.closed_form import ClosedForm

Params = dict[str, Any]


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

    def init(self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        check.integer("d", d, minimum=1)
        check.integer("width", width, minimum=1)
        first, second = 1 / np.sqrt(d), 1 / np.sqrt(width)
        params = {"W1": rng.uniform(-first, first, (width, d)).astype(dtype)}
        if self.bias:
            params["b1"] = rng.uniform(-first, first, width).astype(dtype)
        params["W2"] = rng.uniform(-second, second, width).astype(dtype)
        return params

    def preactivations(self, params: Params, x: Array) -> Array:
        h: Array = x @ params["W1"].T
        return h + params["b1"][None] if self.bias else h

    def __call__(self, params: Params, x: Array) -> Array:
        output: Array = self.activation(self.preactivations(params, x)) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """‖∇f‖² = ‖W₂ ⊙ σ′(h)‖² ‖x′‖² + ‖σ(h)‖² (wen2023, Eq. 2) and Δf = ‖x′‖² Σⱼ W₂ⱼ σ″(hⱼ), x′ = (x, 1)."""
        h = self.preactivations(params, x)
        lengths = jnp.sum(x**2, axis=1) + (1 if self.bias else 0)
        slopes = params["W2"][None] * self.activation.slope(h)
        norms = jnp.sum(slopes**2, axis=1) * lengths + jnp.sum(self.activation(h) ** 2, axis=1)
        return norms, lengths * (self.activation.curvature(h) @ params["W2"])
