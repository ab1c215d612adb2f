"""Convolutional networks of conflicting-biases: convolution, activation, 2×2 max pooling, twice, then linear."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import batch_statistics, convolution, linear, pooling
from steppe.problems.networks.activations import Activation, refuse_other, relu
from steppe.problems.networks.architecture import Architecture
from steppe.problems.networks.batch_statistics import Normalise
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.image import image
from steppe.problems.networks.parameterisation import Parameterisation, refuse_other_parameterisation, standard
from steppe.problems.problem import Predict


@dataclass(frozen=True)
class CNN(Architecture):
    """3×3 convolutions (stride 1, padding 1), each with activation and 2×2 max pooling; a linear layer at the end.

    With `batch_norm` each convolution is normalised before its activation, by the statistics of all examples.

    >>> CNN().init((28, 28, 1), 10, np.random.default_rng(0))["linear"]["W"].shape     # 28/2/2 = 7 pixels a side
    (10, 1568)
    """

    filters: Sequence[int] = (32, 32)
    activation: Activation = relu
    batch_norm: bool = False
    parameterisation: Parameterisation = standard

    def __post_init__(self) -> None:
        filters = check.integers("filters", self.filters, minimum=1, remedy="Pass for example filters=(32, 32).")
        object.__setattr__(self, "filters", filters)
        refuse_other(self.activation)
        refuse_other_parameterisation(self.parameterisation)
        if self.batch_norm and self.parameterisation != standard:
            check.refuse(
                "parameterisation",
                "standard where there is batch normalisation",
                self.parameterisation,
                "The scale of a normalised layer does not reach the output; take batch_norm=False.",
            )

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        height, width, channels = image(inputs, minimum=2 ** len(self.filters))
        outputs = check.integer("outputs", outputs, minimum=1)
        layers = []
        for a, b in pairwise((channels, *self.filters)):
            layer = convolution.init(b, a, rng, dtype, parameterisation=self.parameterisation)
            layers.append(layer | (batch_statistics.init(b, dtype) if self.batch_norm else {}))
        shrunk = 2 ** len(self.filters)
        features = (height // shrunk) * (width // shrunk) * (channels, *self.filters)[-1]
        last = linear.init(outputs, features, rng, dtype, parameterisation=self.parameterisation)
        return {"convolutions": layers, "linear": last}

    def forward(self, params: Params, x: Array, normalise: Normalise = batch_statistics.apply) -> Array:
        """Outputs, with another normalisation than by the statistics of x."""
        h = x
        for layer in params["convolutions"]:
            h = convolution.apply(layer, h, self.parameterisation)
            h = normalise(layer, h) if self.batch_norm else h
            h = pooling.largest(self.activation(h))
        return linear.readout(params["linear"], h.reshape(len(h), -1), self.parameterisation)

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)

    def after_training(self, x: Any) -> Predict:
        return batch_statistics.TrainingStatistics(self.forward, x) if self.batch_norm else self
