"""A two-layer net with standard BatchNorm, statistics over the whole training set: a next check of wen2023."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.problems.networks import first_layer
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.closed_form import ClosedForm
from steppe.problems.networks.first_layer import Params, uniform
from steppe.problems.networks.standardise import Standardise
from steppe.problems.networks.training_inputs import OwnStatistics, Source, TrainingInputs


@dataclass(frozen=True)
class BatchNorm(OwnStatistics, ClosedForm):
    """f(x) = W₂ · (γ ⊙ (σ(h(x)) − μ)/√(var + eps) + β); parameters W1, b1, gamma, beta, W2.

    Mean μ and variance are those of σ(h) over the training inputs the network is built with; gradients run through
    them. It stands after the activation, where the paper's simplified version stands.

    >>> net = BatchNorm([[1.0], [3.0]], bias=False, eps=0.0)
    >>> params = {"W1": np.ones((1, 1)), "gamma": np.ones(1), "beta": np.ones(1), "W2": np.array([2.0])}
    >>> net(params, np.array([[4.0]])).tolist()                     # 2 · ((4 − 2)/1 + 1)
    [6.0]
    """

    train: TrainingInputs | ArrayLike
    bias: bool = True
    activation: Activation = relu
    eps: float = 1e-5
    standardise: Standardise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.number("eps", self.eps, minimum=0.0)
        train = self.train if isinstance(self.train, TrainingInputs) else TrainingInputs(self.train)
        object.__setattr__(self, "train", train)
        parts = Standardise(train, self.activation, self.bias, centre=True, eps=self.eps)
        object.__setattr__(self, "standardise", parts)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, γ = 1 and β = 0."""
        params = first_layer.init(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        params |= {"gamma": np.ones(width, dtype), "beta": np.zeros(width, dtype)}
        return params | {"W2": uniform(rng, width, width, dtype)}

    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        normalised = params["gamma"][None] * self.standardise(params, x, source) + params["beta"][None]
        output: Array = normalised @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        g = self.standardise.derivatives(params, x)
        gamma, beta, W2 = params["gamma"], params["beta"], params["W2"]
        outputs = gamma[None] * g.value + beta[None]
        norms = g.squares @ (gamma * W2) ** 2 + jnp.sum(outputs**2, axis=1) + (g.value**2 + 1) @ W2**2
        return norms, g.laplacian @ (gamma * W2)
