"""Vision transformers (Dosovitskiy et al. 2021) of conflicting-biases."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import encoder_layer, linear, token_norm
from steppe.problems.networks.activations import Activation, refuse_other, relu
from steppe.problems.networks.architecture import Architecture
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.heads import refuse_uneven
from steppe.problems.networks.image import image


@dataclass(frozen=True)
class ViT(Architecture):
    """Patches, a class token and learned positions through encoder layers; a linear layer reads the class token.

    The paper's for MNIST unless told; `vit_cifar` is the one for CIFAR-10. Normalised before attention and network,
    and once at the end; the networks are `hidden` wide, four times `dim` unless told (the paper does not say).

    >>> vit_cifar.patch, vit_cifar.dim, vit_cifar.layers, vit_cifar.heads
    (4, 128, 6, 4)
    """

    patch: int = 7
    dim: int = 64
    layers: int = 4
    heads: int = 4
    hidden: int | None = None
    activation: Activation = relu

    def __post_init__(self) -> None:
        for name in ("patch", "dim", "layers", "heads"):
            check.integer(name, getattr(self, name), minimum=1)
        if self.hidden is not None:
            check.integer("hidden", self.hidden, minimum=1)
        refuse_uneven(self.dim, self.heads)
        refuse_other(self.activation)

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """PyTorch's defaults; the class token starts at zero, positions at N(0, 0.02²) (torchvision's choice)."""
        height, width, channels = image(inputs)
        if height % self.patch or width % self.patch:
            remedy = "Take a patch that divides both sides: 7 for MNIST, 4 for CIFAR-10 and the digits."
            check.refuse("patch", f"a divisor of {height} and {width}", self.patch, remedy)
        tokens = (height // self.patch) * (width // self.patch)
        hidden = 4 * self.dim if self.hidden is None else self.hidden
        return {
            "patches": linear.init(self.dim, channels * self.patch**2, rng, dtype),
            "token": np.zeros(self.dim, dtype),
            "positions": rng.normal(scale=0.02, size=(tokens + 1, self.dim)).astype(dtype),
            "layers": [encoder_layer.init(self.dim, hidden, rng, dtype) for _ in range(self.layers)],
            "norm": token_norm.init(self.dim, dtype),
            "linear": linear.init(check.integer("outputs", outputs, minimum=1), self.dim, rng, dtype),
        }

    def __call__(self, params: Params, x: Array) -> Array:
        patches = linear.apply(params["patches"], self._patches(x))
        token = jnp.broadcast_to(params["token"][None, None], (len(x), 1, self.dim)).astype(patches.dtype)
        h = jnp.concatenate([token, patches], axis=1) + params["positions"][None]
        for layer in params["layers"]:
            h = encoder_layer.apply(layer, h, heads=self.heads, activation=self.activation, norm_first=True)
        return linear.apply(params["linear"], token_norm.apply(params["norm"], h[:, 0]))

    def _patches(self, x: Array) -> Array:
        """(n, tokens, patch · patch · channels), row after row of patches."""
        n, height, width, channels = x.shape
        p = self.patch
        cut = x.reshape(n, height // p, p, width // p, p, channels)
        return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, -1, p * p * channels)


vit_mnist = ViT()
vit_cifar = ViT(patch=4, dim=128, layers=6)
