"""`Architecture`, a network that draws its own parameters, and `build`, which joins network, data and loss."""

import abc
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from steppe import check
from steppe.data import Dataset
from steppe.losses import Loss
from steppe.networks._layers import Params
from steppe.problem import Predict, Problem


class Architecture(abc.ABC):
    """A frozen description of a network, without its parameters.

    `init` draws parameters for the shape of one example (a pytree of shapes if an example is a pytree) and a number of
    outputs. `architecture(params, x)` is the network. `steppe.networks.build` joins it with data and a loss.
    """

    @abc.abstractmethod
    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """The initial parameters."""

    @abc.abstractmethod
    def __call__(self, params: Params, x: Any) -> Array:
        """Outputs, one row for each row of x."""

    def after_training(self, x: Any) -> Predict:
        """The network as used on other data after training on x: itself, unless it has batch statistics."""
        return self


def image_shape(inputs: Any, *, minimum: int = 1) -> tuple[int, int, int]:
    """(height, width, channels); raises for another shape, or for fewer than `minimum` pixels a side."""
    shape = tuple(inputs) if np.ndim(inputs) == 1 else ()
    if len(shape) != 3 or min(shape) < 1 or min(shape[:2]) < minimum:
        check.refuse(
            "inputs",
            f"(height, width, channels) of at least {minimum} × {minimum} pixels",
            inputs,
            "Reshape x to (examples, height, width, channels), or take an FCN.",
        )
    height, width, channels = map(int, shape)
    return height, width, channels


class Built(NamedTuple):
    """The problem to minimise, and the same network on the test set."""

    train: Problem
    test: Problem


def build(
    network: Architecture, data: Dataset, loss: Loss, *, seed: int = 43, scale: float = 1.0, dtype: Any = np.float32
) -> Built:
    """The training and test problems of a network; its initial parameters are drawn from `seed`, then times `scale`.

    Predictions on the test set use the batch statistics of the training inputs.

    >>> import steppe
    >>> from steppe import data, networks
    >>> train, test = build(networks.FCN(), data.digits(500), steppe.losses.half_mse)
    >>> train
    Problem(FCN(...), 55210 parameters, 500 examples, half_mse)
    """
    scale = check.number("scale", scale, above=0.0, remedy="The paper takes 1, 5 and 10.")
    seed = check.integer("seed", seed, minimum=0, remedy="The paper takes 43, 44 and 45.")
    x, y, x_test, y_test, outputs = data.supervised(loss)
    drawn = network.init(data.shape, outputs, np.random.default_rng(seed), dtype)
    params = jax.tree.map(lambda a: a * a.dtype.type(scale), drawn)
    return Built(
        Problem(network, params, x, y, loss),
        Problem(network.after_training(x), params, x_test, y_test, loss),
    )
