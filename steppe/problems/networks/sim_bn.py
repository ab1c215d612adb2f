"""2-MLP-Sim-BN of wen2023: BatchNorm without mean subtraction and bias, statistics over the whole training set."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.problems.networks import first_layer
from steppe.problems.networks.activations import Activation, relu
from steppe.problems.networks.closed_form import ClosedForm
from steppe.problems.networks.first_layer import Params, uniform
from steppe.problems.networks.standardise import Standardise
from steppe.problems.networks.training_inputs import OwnStatistics, Source, TrainingInputs


@dataclass(frozen=True)
class SimBN(OwnStatistics, ClosedForm):
    """f(x) = Σⱼ W₂ⱼ γⱼ σ(hⱼ(x)) / sⱼ, sⱼ² the mean of σ(hⱼ)² over the training inputs; parameters W1, b1, gamma, W2.

    The network is built with the training inputs, so it means the same on a test set and on a single example, and
    gradients run through the statistics. γ has one entry a neuron, as in the paper's proofs (section 2 prints a
    scalar). A neuron silent on the whole training set, 0/0 in the paper, puts out 0.

    >>> net = SimBN([[1.0], [7.0]], bias=False)
    >>> params = {"W1": np.array([[2.0]]), "gamma": np.array([3.0]), "W2": np.array([-1.0])}
    >>> net(params, np.array([[5.0]])).tolist()                     # −3 · 10 / √((2² + 14²)/2)
    [-3.0]
    """

    train: TrainingInputs | ArrayLike
    bias: bool = True
    activation: Activation = relu
    standardise: Standardise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        train = self.train if isinstance(self.train, TrainingInputs) else TrainingInputs(self.train)
        object.__setattr__(self, "train", train)
        parts = Standardise(train, self.activation, self.bias, centre=False, eps=0.0)
        object.__setattr__(self, "standardise", parts)

    def init(
        self,
        d: int,
        width: int,
        rng: np.random.Generator,
        dtype: Any = np.float32,
        *,
        first_layer_scale: float = 1.0,
        gamma: float = 1.0,
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, and γ = 1.

        With γ = 1 a single example has ‖∇f‖² ≈ width, and steps larger than 1/width diverge.
        """
        params = first_layer.init(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"gamma": np.full(width, gamma, dtype), "W2": uniform(rng, width, width, dtype)}

    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        output: Array = self.standardise(params, x, source) @ (params["gamma"] * params["W2"])
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        g = self.standardise.derivatives(params, x)
        outer = params["gamma"] * params["W2"]
        norms = g.squares @ outer**2 + g.value**2 @ (params["gamma"] ** 2 + params["W2"] ** 2)
        return norms, g.laplacian @ outer
