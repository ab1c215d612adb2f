"""What the networks of conflicting-biases share: their description, layers, initialisation, parameterisation, and `build`."""

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.data import Dataset
from steppe.losses import Loss
from steppe.problem import Predict, Problem

# W₁x + b₁, the layer that every network here begins with, and PyTorch's default initialisation of any layer.

Params = dict[str, Any]


def uniform(rng: np.random.Generator, shape: int | tuple[int, int], fan_in: int, dtype: Any) -> NDArray[Any]:
    """PyTorch's default initialisation of a linear layer, weights and bias: uniform on ±1/√fan_in."""
    bound = 1 / np.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape).astype(dtype)


def init_first_layer(d: int, width: int, rng: np.random.Generator, dtype: Any, *, bias: bool, scale: float) -> Params:
    """W1 (width, d) and, with `bias`, b1 (width,), as PyTorch draws them and then times `scale`."""
    check.integer("d", d, minimum=1)
    check.integer("width", width, minimum=1)
    scale = check.number("first_layer_scale", scale, above=0.0, remedy="wen2023 takes 1, and 0.01 in figure 6a.")
    params = {"W1": uniform(rng, (width, d), d, dtype)}
    if bias:
        params["b1"] = uniform(rng, width, d, dtype)
    return {name: a * a.dtype.type(scale) for name, a in params.items()}


def preactivations(params: Params, x: Array, *, bias: bool) -> Array:
    h: Array = x @ params["W1"].T
    return h + params["b1"][None] if bias else h


def extended(x: Array, *, bias: bool) -> Array:
    """x′ = (x, 1), the input that a row of (W₁, b₁) sees; x itself without bias."""
    return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1) if bias else x


def lengths(x: Array, *, bias: bool) -> Array:
    """‖x′‖² of each example."""
    return jnp.sum(x**2, axis=1) + (1 if bias else 0)


# What the networks of conflicting-biases have in common: a description that draws parameters and predicts.


class Architecture(abc.ABC):
    """A frozen description of a network, without its parameters.

    `init` draws them for one example's shape (a pytree of shapes where x is one) and a number of outputs; the network
    is then `architecture(params, x)`, and `steppe.networks._architecture` puts it together with data and a loss.
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


# Uniform initial weights, as PyTorch draws them.


def fan_in_uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
    """Uniform on ±1/√fan_in: linear layers and convolutions, weights and bias; variance 1/(3 fan_in)."""
    bound = fan_in**-0.5
    return rng.uniform(-bound, bound, shape).astype(dtype)


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Uniform on ±√(6/(fan_in + fan_out)), `shape` (fan_out, fan_in): the projections of attention."""
    bound = (6 / sum(shape)) ** 0.5
    return rng.uniform(-bound, bound, shape).astype(dtype)


# The shape that convolutional networks and vision transformers ask of their inputs.


def image(inputs: Any, *, minimum: int = 1) -> tuple[int, int, int]:
    """(height, width, channels), refused where it is not, or smaller than `minimum` pixels a side."""
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


# How weights are drawn and what stands before them in the forward pass: standard, kernel and μP.


class Parameterisation(abc.ABC):
    @abc.abstractmethod
    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        """W at the start."""

    @abc.abstractmethod
    def biases(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        """b at the start."""

    @abc.abstractmethod
    def factor(self, fan_in: int) -> float:
        """What stands before W in every layer."""

    @abc.abstractmethod
    def readout(self, fan_in: int) -> float:
        """What stands before the outputs of the network; fan_in that of its last layer."""


def refuse_other_parameterisation(parameterisation: Parameterisation) -> None:
    if not isinstance(parameterisation, Parameterisation):
        remedy = "Pass for example steppe.networks.mup."
        check.refuse("parameterisation", "one of steppe.networks", parameterisation, remedy)


@final
@dataclass(frozen=True)
class Standard(Parameterisation):
    """PyTorch's defaults for linear layers and convolutions."""

    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return fan_in_uniform(rng, shape, fan_in, dtype)

    def biases(self, rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
        return fan_in_uniform(rng, shape, fan_in, dtype)

    def factor(self, fan_in: int) -> float:
        return 1.0

    def readout(self, fan_in: int) -> float:
        return 1.0


@final
@dataclass(frozen=True)
class Scaled(Parameterisation):
    """N(0, 1) weights behind 1/√fan_in, outputs behind fan_in^−power.

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


# h ↦ factor · W h + b along the last axis.


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


def linear_layer(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    factor = parameterisation.factor(params["W"].shape[1])
    outputs: Array = h @ params["W"].T
    return with_bias(params, outputs if factor == 1 else factor * outputs)


def with_bias(params: Params, h: Array) -> Array:
    """h + b along the last axis, where there is a b."""
    return h + params["b"].reshape((1,) * (h.ndim - 1) + (-1,)) if "b" in params else h


def readout(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    """The last layer of a network."""
    factor = parameterisation.readout(params["W"].shape[1])
    outputs = linear_layer(params, h, parameterisation)
    return outputs if factor == 1 else factor * outputs


# A problem from its parts: network, data, loss, seed and initial scale.


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
