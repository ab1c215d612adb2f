"""What is trained in a row of table 1: architecture, data, loss and start, by name."""

from dataclasses import dataclass
from typing import Any, Literal

Architecture = Literal["fcn", "cnn", "cnn-bn", "resnet", "vit", "transformer"]
Data = Literal["digits", "mnist", "cifar10", "housing", "breast-cancer", "reversal"]
Name = Literal["half_mse", "cross_entropy"]


@dataclass(frozen=True)
class Setting:
    """A network on data. `n` and `test` are numbers of examples, 0 for all there are.

    `width` and `depth` are hidden neurons and layers of an FCN, filters of a CNN, the first width and the blocks a
    stage of a ResNet, dimension and layers of the transformers.
    """

    architecture: Architecture
    data: Data
    loss: Name
    n: int = 0
    test: int = 0
    activation: Literal["relu", "tanh"] = "relu"
    width: int = 200
    depth: int = 2
    parameterisation: Literal["standard", "kernel", "mup"] = "standard"
    seed: int = 43
    scale: float = 1.0

    def problems(self) -> Any:
        """The training problem, and the same network on the test set."""
        from steppe import losses
        from steppe.networks import build

        return build(self.network(), self.dataset(), losses.named(self.loss), seed=self.seed, scale=self.scale)

    def network(self) -> Any:
        from steppe import networks

        activation = {"relu": networks.relu, "tanh": networks.tanh}[self.activation]
        match self.architecture:
            case "fcn":
                kinds = {"standard": networks.standard, "kernel": networks.kernel, "mup": networks.mup}
                plain = self.parameterisation == "standard"
                kind = kinds[self.parameterisation]
                return networks.FCN((self.width,) * self.depth, activation, kind, bias=plain)
            case "cnn" | "cnn-bn":
                return networks.CNN((self.width,) * 2, activation, batch_norm=self.architecture == "cnn-bn")
            case "resnet":
                return networks.ResNet((self.width, 2 * self.width, 4 * self.width), self.depth)
            case "vit":
                return networks.ViT(7 if self.data == "mnist" else 4, self.width, self.depth)
            case "transformer":
                return networks.Transformer(self.width, 2 * self.width, self.depth, self.depth)

    def dataset(self) -> Any:
        from steppe import data

        n, test = self.n or None, self.test or None
        match self.data:
            case "digits":
                return data.digits(self.n or 1000, test=test)
            case "mnist":
                return data.mnist(n, test=test)
            case "cifar10":
                return data.cifar10(n, test=test)
            case "housing":
                return data.california_housing(n, test=test)
            case "breast-cancer":
                return data.breast_cancer(n, test=test)
            case "reversal":
                return data.reversal(self.n or 1000, test=self.test or 1000)
