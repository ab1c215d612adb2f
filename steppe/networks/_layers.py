"""The linear layer: how its weights are drawn, and which factors a parameterisation puts before them."""

import abc
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.problem import Predict

Params = dict[str, Any]


class Parameterisation(abc.ABC):
    """How weights are drawn, and which constants multiply the layers of a network."""

    @abc.abstractmethod
    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        """The initial W."""

    @abc.abstractmethod
    def biases(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        """The initial b."""

    @abc.abstractmethod
    def factor(self, fan_in: int) -> float:
        """The constant before W in every layer."""

    @abc.abstractmethod
    def readout(self, fan_in: int) -> float:
        """The constant before the outputs of the network; `fan_in` is that of its last layer."""


@final
@dataclass(frozen=True)
class Standard(Parameterisation):
    """PyTorch's defaults: weights and biases uniform on ±1/√fan_in, and no factors."""

    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return uniform(rng, shape, fan_in**-0.5, dtype)

    def biases(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return uniform(rng, shape, fan_in**-0.5, dtype)

    def factor(self, fan_in: int) -> float:
        return 1.0

    def readout(self, fan_in: int) -> float:
        return 1.0


@final
@dataclass(frozen=True)
class Scaled(Parameterisation):
    """N(0, 1) weights with the factor 1/√fan_in, zero biases, and outputs with the factor fan_in^−power.

    >>> kernel.readout(100), mup.readout(100), mup.factor(100)
    (1.0, 0.1, 0.1)
    """

    name: str
    power: float

    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return rng.standard_normal(shape).astype(dtype)

    def biases(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return np.zeros(shape, dtype)

    def factor(self, fan_in: int) -> float:
        return float(fan_in**-0.5)

    def readout(self, fan_in: int) -> float:
        return float(fan_in**-self.power)


standard = Standard()
kernel = Scaled("kernel", 0.0)
mup = Scaled("mup", 0.5)


def check_parameterisation(parameterisation: Parameterisation) -> None:
    if not isinstance(parameterisation, Parameterisation):
        remedy = "Pass for example steppe.networks.mup."
        check.refuse("parameterisation", "a parameterisation of steppe.networks", parameterisation, remedy)


class Freezable(abc.ABC):
    """A network with batch statistics, which it can treat as constants."""

    @abc.abstractmethod
    def frozen(self) -> Predict:
        """The same predictions, without derivatives of the statistics; itself if it has none."""


def uniform(rng: np.random.Generator, shape: int | tuple[int, ...], bound: float, dtype: Any) -> NDArray[Any]:
    return rng.uniform(-bound, bound, shape).astype(dtype)


def init_linear(
    outputs: int,
    inputs: int,
    rng: np.random.Generator,
    dtype: Any,
    *,
    parameterisation: Parameterisation = standard,
    bias: bool = True,
) -> Params:
    """W (outputs, inputs) and, with `bias`, b (outputs,)."""
    params = {"W": parameterisation.weights(rng, (outputs, inputs), inputs, dtype)}
    if bias:
        params["b"] = parameterisation.biases(rng, (outputs,), inputs, dtype)
    return params


def apply_linear(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    """factor · W h + b along the last axis."""
    factor = parameterisation.factor(params["W"].shape[1])
    outputs: Array = h @ params["W"].T
    return add_bias(params, outputs if factor == 1 else factor * outputs)


def add_bias(params: Params, h: Array) -> Array:
    """h + b along the last axis; h itself if the layer has no b."""
    return h + params["b"].reshape((1,) * (h.ndim - 1) + (-1,)) if "b" in params else h


def apply_readout(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    """The last layer of a network: a linear layer times the parameterisation's constant for outputs."""
    factor = parameterisation.readout(params["W"].shape[1])
    outputs = apply_linear(params, h, parameterisation)
    return outputs if factor == 1 else factor * outputs
