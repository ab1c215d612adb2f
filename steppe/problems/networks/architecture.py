"""What the networks of conflicting-biases have in common: a description that draws parameters and predicts."""

import abc
from typing import Any

import numpy as np
from jax import Array

from steppe.problems.networks.first_layer import Params
from steppe.problems.problem import Predict


class Architecture(abc.ABC):
    """A frozen description of a network, without its parameters.

    `init` draws them for one example's shape (a pytree of shapes where x is one) and a number of outputs; the network
    is then `architecture(params, x)`, and `steppe.problems.build` puts it together with data and a loss.
    """

    @abc.abstractmethod
    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """Parameters at the start."""

    @abc.abstractmethod
    def __call__(self, params: Params, x: Any) -> Array:
        """Outputs, one row for each row of x."""

    def after_training(self, x: Any) -> Predict:
        """The network as it is used on other data once trained on x; itself, unless it has batch statistics."""
        return self
