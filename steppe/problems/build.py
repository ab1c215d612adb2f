"""A problem from its parts: network, data, loss, seed and initial scale."""

from typing import Any, NamedTuple

import jax
import numpy as np

from steppe import check
from steppe.losses import Loss
from steppe.problems.data.dataset import Dataset
from steppe.problems.networks.architecture import Architecture
from steppe.problems.problem import Problem


class Built(NamedTuple):
    """The problem that is minimised, and the same network on the test set."""

    train: Problem
    test: Problem


def build(
    network: Architecture, data: Dataset, loss: Loss, *, seed: int = 43, scale: float = 1.0, dtype: Any = np.float32
) -> Built:
    """The network at its initial parameters, times `scale`, on data and loss; the parameterisation is the network's.

    Batch statistics on the test set are those of the training inputs.

    >>> import steppe
    >>> from steppe.problems import data, networks
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
