"""How weights are drawn and what stands before them in the forward pass: standard, kernel and μP.

A layer computes factor · W h + b, and the last one readout · (factor · W h + b). The hypothesis space is the same for
all three; gradient descent, sharpness and norms are not (conflicting-biases, section H.7).

| | W | b | factor | readout | rates that transfer over widths n |
| --- | --- | --- | --- | --- | --- |
| `standard` | uniform on ±1/√fan_in | the same | 1 | 1 | |
| `kernel` (Jacot et al. 2018) | N(0, 1) | 0 | 1/√fan_in | 1 | η |
| `mup` (Yang et al. 2022, Noci et al. 2024) | N(0, 1) | 0 | 1/√fan_in | 1/√fan_in | η ∝ n |

The paper prints the last layers without the 1/√fan_in that its hidden layers have: the kernel outputs would then grow
as √n and its μP would be the kernel parameterisation. What it says of rates and widths fits the table above.
"""

import abc
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.problems.networks.initial import fan_in_uniform


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
        remedy = "Pass for example steppe.problems.networks.mup."
        check.refuse("parameterisation", "one of steppe.problems.networks", parameterisation, remedy)


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
