"""f(x) = W₂ σ(W₁x + b₁) + b₂, the network of mulayoff2021: one hidden layer, both biases."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import first_layer
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.first_layer import Params, uniform


@dataclass(frozen=True)
class OneHidden:
    """f(x) = W₂ σ(W₁x + b₁) + b₂; parameters W1 (m, d), b1 (m,), and W2 (m,), b2 () for a scalar output,
    W2 (o, m), b2 (o,) for o outputs.

    >>> params = {"W1": np.array([[1.0], [-1.0]]), "b1": np.zeros(2), "W2": np.ones(2), "b2": np.array(0.5)}
    >>> OneHidden()(params, np.array([[-2.0], [3.0]])).tolist()     # |x| + ½
    [2.5, 3.5]
    """

    activation: Activation = relu

    def init(
        self,
        d: int,
        width: int,
        rng: np.random.Generator,
        dtype: Any = np.float64,
        *,
        outputs: int | None = None,
        scale: float = 1.0,
    ) -> Params:
        """PyTorch's default initialisation of both layers, weights and biases, all times `scale`."""
        scale = check.number("scale", scale, above=0.0, remedy="mulayoff2021 takes 0.75 to 15.")
        shape = width if outputs is None else (check.integer("outputs", outputs, minimum=1), width)
        params = first_layer.init(d, width, rng, dtype, bias=True, scale=1.0)
        params["W2"] = uniform(rng, shape, width, dtype)
        params["b2"] = uniform(rng, 1 if outputs is None else outputs, width, dtype)
        if outputs is None:
            params["b2"] = params["b2"][0]
        return {name: np.asarray(a * np.dtype(dtype).type(scale)) for name, a in params.items()}

    def preactivations(self, params: Params, x: Array) -> Array:
        return first_layer.preactivations(params, x, bias=True)

    def __call__(self, params: Params, x: Array) -> Array:
        hidden = self.activation(self.preactivations(params, x))
        W2, b2 = jnp.asarray(params["W2"]), jnp.asarray(params["b2"])
        return hidden @ W2.T + jnp.broadcast_to(b2, (len(x), *b2.shape))
