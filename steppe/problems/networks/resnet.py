"""Residual networks for small images (He et al. 2016): ResNet-20 of conflicting-biases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import batch_statistics, convolution, linear, pooling
from steppe.problems.networks.activations import Activation, refuse_other, relu
from steppe.problems.networks.architecture import Architecture
from steppe.problems.networks.batch_statistics import Normalise
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.image import image
from steppe.problems.problem import Predict


@dataclass(frozen=True)
class ResNet(Architecture):
    """A convolution, then stages of residual blocks, the mean over all pixels, and a linear layer.

    A block is σ(skip(h) + BN(conv(σ(BN(conv(h)))))). A stage that is wider than the one before starts with 2×2
    average pooling; its first skip is batch normalisation and zeros for the new channels. Depth 2·blocks·stages + 2.

    >>> ResNet().depth
    20
    """

    widths: Sequence[int] = (16, 32, 64)
    blocks: int = 3
    activation: Activation = relu

    def __post_init__(self) -> None:
        widths = check.integers("widths", self.widths, minimum=1, remedy="Pass for example widths=(16, 32, 64).")
        object.__setattr__(self, "widths", widths)
        refuse_other(self.activation)
        check.integer("blocks", self.blocks, minimum=1)
        if not self.widths or list(self.widths) != sorted(set(self.widths)):
            check.refuse("widths", "growing from stage to stage", self.widths, "The skips add channels: (16, 32, 64).")

    @property
    def depth(self) -> int:
        """Convolutions on the longest path, and the linear layer."""
        return 2 * self.blocks * len(self.widths) + 2

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        _, _, channels = image(inputs, minimum=2 ** (len(self.widths) - 1))
        outputs = check.integer("outputs", outputs, minimum=1)

        def normalised(b: int, a: int) -> Params:
            return convolution.init(b, a, rng, dtype, bias=False) | batch_statistics.init(b, dtype)

        first, stages, before = normalised(self.widths[0], channels), [], self.widths[0]
        for width in self.widths:
            blocks = []
            for _ in range(self.blocks):
                skip = {"skip": batch_statistics.init(before, dtype)} if width != before else {}
                blocks.append({"first": normalised(width, before), "second": normalised(width, width)} | skip)
                before = width
            stages.append(blocks)
        return {"first": first, "stages": stages, "linear": linear.init(outputs, before, rng, dtype)}

    def forward(self, params: Params, x: Array, normalise: Normalise = batch_statistics.apply) -> Array:
        """Outputs, with another normalisation than by the statistics of x."""

        def normalised(layer: Params, h: Array) -> Array:
            return normalise(layer, convolution.apply(layer, h))

        h = self.activation(normalised(params["first"], x))
        for block in (block for stage in params["stages"] for block in stage):
            skip = h
            if "skip" in block:
                h = pooling.average(h)
                new = block["second"]["gamma"].size - h.shape[-1]
                skip = jnp.pad(normalise(block["skip"], h), (*[(0, 0)] * 3, (0, new)))
            branch = normalised(block["second"], self.activation(normalised(block["first"], h)))
            h = self.activation(skip + branch)
        return linear.apply(params["linear"], jnp.mean(h, axis=(1, 2)))

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)

    def after_training(self, x: Any) -> Predict:
        return batch_statistics.TrainingStatistics(self.forward, x)
