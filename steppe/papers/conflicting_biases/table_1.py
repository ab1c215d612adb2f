"""Table 1: every configuration of the paper by name, the further ones of figures 7, 8 and 17, and some beyond it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from steppe.check import ArgumentError, suggest

Architecture = Literal["fcn", "cnn", "cnn-bn", "resnet", "vit", "transformer"]
Data = Literal["digits", "mnist", "cifar10", "housing", "breast-cancer", "reversal"]
Loss = Literal["half_mse", "cross_entropy"]

# model, size where it is not 200×2 | data | loss | seed and scale of the start | loss goal | U-shape | panels
_TABLE = """
fcn-relu | mnist-5k | mse | 43 | 0.0001 | ✓ | 3a 13 9 11b 18 64 72
fcn-relu | mnist-5k | mse | 43 | 0.001 | ✓ | 51
fcn-relu | mnist-5k | mse | 43 | 0.01 | ✓ | 52
fcn-relu | mnist-5k | mse | 43 | 0.1 | ✓ | 53
fcn-relu | mnist-5k | ce | 43 | 0.01 | ✓ | 19 65 73
fcn-relu | mnist-5k | ce | 43 | 0.1 | ✓ | 54
fcn-relu | cifar-10-5k | mse | 43 | 0.0001 | × | 1a 3c 9 11a 20 68 76
fcn-relu | cifar-10-5k | mse | 43 | 0.001 | × | 55
fcn-relu | cifar-10-5k | mse | 43 | 0.01 | × | 6a 56
fcn-relu | cifar-10-5k | mse | 43 | 0.1 | (×) | 57 10
fcn-relu | cifar-10-5k | mse | 44 | 0.01 | × | 6b 59
fcn-relu | cifar-10-5k | mse | 45 | 0.01 | × | 60
fcn-relu | cifar-10-5k | mse | 43 x5 | 0.1 | × | 6c 61 10
fcn-relu | cifar-10-5k | ce | 43 | 0.01 | ✓ | 3b 21 69 77 10
fcn-relu | cifar-10-5k | ce | 43 | 0.1 | ✓ | 58
fcn-relu | cifar-10-5k | ce | 43 x5 | 0.01 | × | 62
fcn-relu | cifar-10-5k | ce | 43 x10 | 0.01 | × | 63
fcn-relu | mnist | mse | 43 | 0.01 | ✓ | 1b 22 66 74
fcn-relu | mnist | ce | 43 | 0.01 | (✓) | 23 67 75
fcn-relu | cifar-10 | ce | 43 | 0.1 | × | 24
fcn-relu 400x2 | mnist-5k | mse | 43 | 0.01 | × | 37
fcn-relu 600x2 | mnist-5k | mse | 43 | 0.01 | (×) | 38
fcn-relu 2000x2 | mnist-5k | mse | 43 | 0.01 | × | 39
fcn-relu 200x4 | mnist-5k | mse | 43 | 0.01 | (×) | 40
fcn-relu 200x6 | mnist-5k | mse | 43 | 0.01 | (✓) | 41
fcn-relu 400x4 | mnist-5k | mse | 43 | 0.01 | × | 42
fcn-relu 600x6 | mnist-5k | mse | 43 | 0.01 | (✓) | 43
fcn-relu 400x2 | cifar-10-5k | mse | 43 | 0.01 | × | 44
fcn-relu 600x2 | cifar-10-5k | mse | 43 | 0.01 | × | 45
fcn-relu 2000x2 | cifar-10-5k | mse | 43 | 0.01 | × | 46
fcn-relu 200x4 | cifar-10-5k | mse | 43 | 0.01 | ✓ | 47
fcn-relu 200x6 | cifar-10-5k | mse | 43 | 0.01 | ✓ | 48
fcn-relu 400x4 | cifar-10-5k | mse | 43 | 0.01 | ✓ | 49
fcn-relu 600x6 | cifar-10-5k | mse | 43 | 0.01 | ✓ | 50
fcn-tanh | mnist-5k | mse | 43 | 0.1 | × | 25
fcn-tanh | mnist-5k | ce | 43 | 0.01 | (✓) | 26
fcn-tanh | cifar-10-5k | mse | 43 | 0.001 | × | 2c 27 70 78
fcn-tanh | cifar-10-5k | mse | 43 | 0.01 | × | 2b
fcn-tanh | cifar-10-5k | mse | 43 | 0.1 | (×) | 2a
fcn-tanh | cifar-10-5k | ce | 43 | 0.01 | ✓ | 28 71 79
cnn-relu | mnist-5k | mse | 43 | 0.1 | ✓ | 5a 29
cnn-relu | mnist-5k | ce | 43 | 0.01 | ✓ | 30
cnn-relu | mnist | mse | 43 | 0.1 | (×) | 5b 31
cnn-relu | mnist | ce | 43 | 0.01 | ✓ | 32
cnn-bn-relu | cifar-10-5k | ce | 43 | 0.01 | - | 5c 33
vit-relu | mnist-5k | ce | 43 | 0.1 | (✓) | 1c 34
vit-relu | cifar-10-5k | ce | 43 | 1 | (✓) | 35
resnet-relu | cifar-10-5k | ce | 43 | 0.1 | (×) | 36
mup-relu 100x2 | mnist-5k | mse | 43 | 0.1 | - | 7a
mup-relu 200x2 | mnist-5k | mse | 43 | 0.1 | - | 7b
mup-relu 400x2 | mnist-5k | mse | 43 | 0.1 | - | 7c
kernel-relu 200x2 | mnist-5k | mse | 43 | 0.1 | - | 8a
kernel-relu 400x2 | mnist-5k | mse | 43 | 0.1 | - | 8b
kernel-relu 600x2 | mnist-5k | mse | 43 | 0.1 | - | 8c
fcn-relu | housing | mse | 43 | 0.1 | - | 17a
fcn-relu | breast-cancer | mse | 43 | 0.01 | - | 17b
transformer-relu | reversal | ce | 43 | 0.1 | - | 17c
"""
# The paper does not state the loss goals of figure 17, nor its number of sequences; we take 1,000.

# No configurations of the paper: other seeds and a larger start on MNIST, where it has them on CIFAR-10 alone.
_BEYOND = """
fcn-relu | mnist-5k | mse | 44 | 0.01 | - |
fcn-relu | mnist-5k | mse | 45 | 0.01 | - |
fcn-relu | mnist-5k | mse | 43 x5 | 0.1 | - |
"""

# Width and depth where the table does not state them.
_SIZES: dict[Architecture, tuple[int, int]] = {
    "fcn": (200, 2), "cnn": (32, 2), "cnn-bn": (32, 2), "resnet": (16, 3), "vit": (64, 4), "transformer": (64, 2),
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What is trained: a network on data. `n` and `test` are numbers of examples; 0 means all.

    `width` and `depth` are hidden neurons and layers of an FCN, filters of a CNN, the first width and the blocks a
    stage of a ResNet, dimension and layers of the transformers.
    """

    architecture: Architecture
    data: Data
    loss: Loss
    n: int = 0
    test: int = 0
    activation: Literal["relu", "tanh"] = "relu"
    width: int = 200
    depth: int = 2
    parameterisation: Literal["standard", "kernel", "mup"] = "standard"
    seed: int = 43
    scale: float = 1.0

    @property
    def name(self) -> str:
        """Network and data, each with its size.

        >>> Setting("fcn", "digits", "half_mse", n=100, width=16).name
        'fcn-relu 16×2, digits-100'
        """
        kind = {"standard": "", "kernel": " kernel", "mup": " μP"}[self.parameterisation]
        examples = f"-{self.n}" if self.n else ""
        return f"{self.architecture}-{self.activation} {self.width}×{self.depth}{kind}, {self.data}{examples}"

    def problems(self) -> Any:
        """The training problem, and the same network on the test set."""
        from steppe import losses
        from steppe.networks import build

        return build(self.network(), self.dataset(), losses.named(self.loss), seed=self.seed, scale=self.scale)

    def network(self) -> Any:
        from steppe import activations, networks

        activation = {"relu": activations.relu, "tanh": activations.tanh}[self.activation]
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

        if self.data == "digits":
            return data.digits(self.n or 1000, test=self.test or None)
        if self.data == "reversal":
            return data.reversal(self.n or 1000, test=self.test or 1000)
        load: dict[str, Callable[..., Any]] = {
            "mnist": data.mnist, "cifar10": data.cifar10, "housing": data.california_housing,
            "breast-cancer": data.breast_cancer,
        }  # fmt: skip
        return load[self.data](self.n or None, test=self.test or None)


@dataclass(frozen=True)
class Row:
    """One configuration; `mark` is its U-shape as printed, "-" if none is printed."""

    name: str
    setting: Setting
    goal: float
    mark: str
    figures: tuple[str, ...]


def stand_ins(settings: Iterable[Setting]) -> str:
    """The names of the settings that are no row, of the paper or beyond it, each once; "" if all are.

    >>> stand_ins([row("fcn-relu-mnist-5k-mse-0.01").setting, Setting("fcn", "digits", "half_mse", n=100, width=16)])
    'fcn-relu 16×2, digits-100'
    """
    published = {row.setting for row in rows().values()}
    return "; ".join(dict.fromkeys(setting.name for setting in settings if setting not in published))


@cache
def rows() -> dict[str, Row]:
    """All configurations, by name; those beyond the paper are in none of its figures."""
    found = [_row(line) for line in (_TABLE.strip() + _BEYOND).splitlines()]
    return {row.name: row for row in found}


def row(name: str) -> Row:
    if name not in rows():
        raise ArgumentError(f"unknown row {name!r} of table 1. " + suggest(name, rows()))
    return rows()[name]


def shown_in(figure: str) -> Row:
    """The configuration that the paper shows in a panel, "3a" for example."""
    return next(row for row in rows().values() if figure in row.figures)


def _row(line: str) -> Row:
    model, data, loss, seeds, goal, mark, figures = (cell.strip() for cell in line.split("|"))
    kind, _, size = model.partition(" ")
    seed, _, scale = seeds.partition(" x")
    setting = replace(_setting(kind, data, loss), seed=int(seed), scale=float(scale or 1))
    if size:
        width, depth = map(int, size.split("x"))
        setting = replace(setting, width=width, depth=depth)
    parts = [model.replace(" ", "-"), data, loss, goal] + ([] if seeds == "43" else [seeds.replace(" ", "-")])
    return Row("-".join(parts), setting, float(goal), mark, tuple(figures.split()))


def _setting(kind: str, data: str, loss: str) -> Setting:
    head, _, activation = kind.rpartition("-")
    names: dict[str, Architecture] = {name: name for name in _SIZES}
    architecture = names.get(head, "fcn")
    places: dict[str, tuple[Data, int]] = {
        "mnist-5k": ("mnist", 5000), "mnist": ("mnist", 0),
        "cifar-10-5k": ("cifar10", 5000), "cifar-10": ("cifar10", 0),
        "housing": ("housing", 0), "breast-cancer": ("breast-cancer", 0), "reversal": ("reversal", 1000),
    }  # fmt: skip
    where, n = places[data]
    width, depth = _SIZES[architecture]
    if architecture == "vit" and where == "cifar10":
        width, depth = 128, 6
    return Setting(
        architecture, where, "half_mse" if loss == "mse" else "cross_entropy", n=n,
        activation="tanh" if activation == "tanh" else "relu", width=width, depth=depth,
        parameterisation="mup" if head == "mup" else "kernel" if head == "kernel" else "standard",
    )  # fmt: skip
