"""Fully connected networks of any widths, the base model of conflicting-biases."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jax import Array

from steppe import check
from steppe.activations import Activation, check_activation, relu
from steppe.networks._architecture import Architecture
from steppe.networks._layers import (
    Parameterisation,
    Params,
    apply_linear,
    apply_readout,
    check_parameterisation,
    init_linear,
    standard,
)


@dataclass(frozen=True)
class FCN(Architecture):
    """f(x) = W_L σ(… σ(W₁x + b₁) …) + b_L; the paper's 200×2 by default. Images are flattened.

    The parameters are a list of layers, each with W (out, in) and, with `bias`, b (out,). The paper's networks in
    kernel and μP parameterisation have no bias.

    >>> net = FCN(widths=(1,))
    >>> layers = [{"W": np.array([[2.0]]), "b": np.array([1.0])}, {"W": np.array([[3.0]]), "b": np.array([-1.0])}]
    >>> net(layers, np.array([[4.0]])).tolist()                     # 3 · (2·4 + 1) − 1
    [[26.0]]
    """

    widths: Sequence[int] = (200, 200)
    activation: Activation = relu
    parameterisation: Parameterisation = standard
    bias: bool = True

    def __post_init__(self) -> None:
        widths = check.integers("widths", self.widths, minimum=1, remedy="Pass for example widths=(200, 200).")
        object.__setattr__(self, "widths", widths)
        check_activation(self.activation)
        check_parameterisation(self.parameterisation)

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Any:
        outputs = check.integer("outputs", outputs, minimum=1)
        if isinstance(inputs, dict):
            check.refuse("inputs", "the shape of one array", inputs, "Take a Transformer for sequences.")
        sizes = (int(np.prod(inputs)), *self.widths, outputs)
        return [
            init_linear(b, a, rng, dtype, parameterisation=self.parameterisation, bias=self.bias)
            for a, b in pairwise(sizes)
        ]

    def __call__(self, params: Any, x: Array) -> Array:
        return apply_readout(params[-1], self.features(params, x)[-1], self.parameterisation)

    def features(self, params: Sequence[Params], x: Array) -> list[Array]:
        """The input, flattened, and the activations of each hidden layer."""
        layers = [x.reshape(len(x), -1)]
        for layer in params[:-1]:
            layers.append(self.activation(apply_linear(layer, layers[-1], self.parameterisation)))
        return layers
