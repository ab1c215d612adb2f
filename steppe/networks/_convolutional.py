"""Convolutional networks of conflicting-biases: the CNN and residual networks, with or without batch statistics.

Images are (n, height, width, channels). Convolutions have stride 1 and are padded to keep the size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.activations import Activation, check_activation, relu
from steppe.networks._architecture import Architecture, image_shape
from steppe.networks._layers import (
    Freezable,
    Parameterisation,
    Params,
    add_bias,
    apply_linear,
    apply_readout,
    check_parameterisation,
    init_linear,
    standard,
)
from steppe.problem import Predict

# Entries of a matrix of neighbourhoods: a megabyte of float32, which fits into the cache of a core.
_CACHED = 2**18

EPS = 1e-5  # PyTorch's

# Normalises h by the γ and β of a layer.
Normalise = Callable[[Params, Array], Array]
Forward = Callable[[Any, Array, Normalise], Array]
Moments = tuple[Array, Array]

# Examples that pass through a trained network at once.
_ROWS = 500


def init_convolution(
    outputs: int,
    inputs: int,
    rng: np.random.Generator,
    dtype: Any,
    *,
    size: int = 3,
    parameterisation: Parameterisation = standard,
    bias: bool = True,
) -> Params:
    """W (outputs, inputs, size, size), as PyTorch has it, and b (outputs,)."""
    fan_in = inputs * size * size
    params = {"W": parameterisation.weights(rng, (outputs, inputs, size, size), fan_in, dtype)}
    if bias:
        params["b"] = parameterisation.biases(rng, (outputs,), fan_in, dtype)
    return params


def apply_convolution(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    W = params["W"]
    factor = parameterisation.factor(int(np.prod(W.shape[1:])))
    outputs = convolution(h, W)
    return add_bias(params, outputs if factor == 1 else factor * outputs)


def convolution(h: Array, W: Array) -> Array:
    """W as a matrix times the neighbourhoods of the pixels as columns, for a few images at a time.

    Our gradients run in loops, and there the compiler's own convolution is up to 50 times as slow. The columns of all
    images would take the memory of h times the pixels of W, more than the cache. The derivative computes the columns
    again, which costs little.

    >>> convolution(jnp.ones((1, 2, 3, 1)), jnp.ones((1, 1, 3, 3)))[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [4.0, 6.0, 4.0]]
    """
    n, most = len(h), max(1, _CACHED // math.prod((*h.shape[1:], *W.shape[2:])))
    if n <= most:
        return _few(h, W)
    parts = -(-n // most)
    together = -(-n // parts)
    filled = jnp.pad(h, ((0, parts * together - n), *[(0, 0)] * 3)).reshape(parts, together, *h.shape[1:])
    return jax.lax.map(lambda part: _few(part, W), filled).reshape(-1, *h.shape[1:3], len(W))[:n]


@jax.checkpoint
def _few(h: Array, W: Array) -> Array:
    """Channels come before pixels: the longer axis is then contiguous."""
    outputs, _, *size = W.shape
    n, height, width, _ = h.shape
    # As "SAME" does: for an even size the larger half of the margin comes after the image.
    margins = [((s - 1) // 2, s // 2) for s in size]
    framed = jnp.pad(h.transpose(3, 0, 1, 2), ((0, 0), (0, 0), *margins))
    shifted = [framed[:, :, i : i + height, j : j + width] for i in range(size[0]) for j in range(size[1])]
    columns = jnp.stack(shifted).reshape(-1, n * height * width)
    matrix = W.transpose(0, 2, 3, 1).reshape(outputs, -1)
    return (matrix @ columns).reshape(outputs, n, height, width).transpose(1, 2, 3, 0)


def _windows(h: Array) -> Array:
    """(n, height/2, 2, width/2, 2, channels), without a last odd row or column, as in PyTorch."""
    n, height, width, channels = h.shape
    rows, columns = height // 2, width // 2
    return h[:, : 2 * rows, : 2 * columns].reshape(n, rows, 2, columns, 2, channels)


@jax.custom_jvp
def max_pool(h: Array) -> Array:
    """The largest entry of each 2×2 window.

    Gradients through equinox.nn.MaxPool2d (a `reduce_window`) take 2.4 times as long or more.

    >>> max_pool(jnp.arange(8.0).reshape(1, 2, 4, 1)).ravel().tolist()
    [5.0, 7.0]
    """
    return jnp.max(_windows(h), axis=(2, 4))


@max_pool.defjvp
def _max_pool_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The derivative of the largest entry; of the last one if entries tie.

    JAX differentiates a maximum by h == max(h), shared among ties. The compiler repeats cheap operations where it uses
    them, and the two sides may be rounded differently. Then one entry of a tie counts, or both in full: with batch
    normalisation before the pooling, Hessian products were wrong by 24%. A comparison always selects one entry.
    """
    (h,), (dh,) = primals, tangents
    (a, b, c, d), (da, db, dc, dd) = _corners(h), _corners(dh)
    top, bottom = a > b, c > d
    upper = jnp.where(top, a, b) > jnp.where(bottom, c, d)
    return max_pool(h), jnp.where(upper, jnp.where(top, da, db), jnp.where(bottom, dc, dd))


def _corners(h: Array) -> list[Array]:
    windows = _windows(h)
    return [windows[:, :, i, :, j] for i in (0, 1) for j in (0, 1)]


def average_pool(h: Array) -> Array:
    return jnp.mean(_windows(h), axis=(2, 4))


def init_batch_norm(channels: int, dtype: Any) -> Params:
    """γ = 1 and β = 0."""
    return {"gamma": np.ones(channels, dtype), "beta": np.zeros(channels, dtype)}


def apply_batch_norm(params: Params, h: Array) -> Array:
    """γ (h − μ)/√(var + eps) + β with mean and variance over all axes but the last; derivatives include them.

    >>> apply_batch_norm(init_batch_norm(1, np.float32), jnp.array([[1.0], [3.0]])).ravel().round(3).tolist()
    [-1.0, 1.0]
    """
    return _normalised(params, h, _moments(h))


def _moments(h: Array) -> Moments:
    axes = tuple(range(h.ndim - 1))
    mean = jnp.mean(h, axis=axes, keepdims=True)
    return mean, jnp.mean((h - mean) ** 2, axis=axes, keepdims=True)


def _apply_constant(params: Params, h: Array) -> Array:
    """The same without derivatives of mean and variance."""
    return _normalised(params, h, jax.lax.stop_gradient(_moments(h)))


def _normalised(params: Params, h: Array, moments: Moments) -> Array:
    along, (mean, variance) = (1,) * (h.ndim - 1) + (-1,), moments
    scale = params["gamma"].reshape(along) / jnp.sqrt(variance + EPS)
    return (h - mean) * scale + params["beta"].reshape(along)


@dataclass(frozen=True)
class _ConstantMoments:
    """A network normalised by the statistics of x, which count as constants."""

    network: "CNN | ResNet"

    def __call__(self, params: Params, x: Array) -> Array:
        return self.network.forward(params, x, _apply_constant)


@dataclass(frozen=True, eq=False)
class TrainingStatistics(Freezable):
    """A network on other data, normalised by the statistics that its training inputs have at the given parameters.

    PyTorch keeps a running mean of the statistics instead. In full-batch training it converges to the same values once
    the parameters stand still.
    """

    forward: Forward
    train: Any

    def __call__(self, params: Any, x: Array) -> Array:
        return self.predict(params, x, params)

    def predict(self, params: Any, x: Array, source: Any) -> Array:
        """Outputs, with the statistics of the training inputs at the parameters `source`."""
        moments: list[Moments] = []

        def save_moments(layer: Params, h: Array) -> Array:
            moments.append(_moments(h))
            return _normalised(layer, h, moments[-1])

        self.forward(source, jnp.asarray(self.train, x.dtype), save_moments)

        def one_row(row: Array) -> Array:
            saved = iter(moments)
            return self.forward(params, row[None], lambda layer, h: _normalised(layer, h, next(saved)))[0]

        return jax.lax.map(one_row, x, batch_size=_ROWS)

    def frozen(self) -> Predict:
        return _ConstantTraining(self)


@dataclass(frozen=True)
class _ConstantTraining:
    network: TrainingStatistics

    def __call__(self, params: Any, x: Array) -> Array:
        return self.network.predict(params, x, jax.lax.stop_gradient(params))


@dataclass(frozen=True)
class CNN(Architecture, Freezable):
    """3×3 convolutions, each with activation and 2×2 max pooling, then a linear layer.

    With `batch_norm`, each convolution is normalised before its activation by the statistics of all examples.

    >>> CNN().init((28, 28, 1), 10, np.random.default_rng(0))["linear"]["W"].shape     # 28/2/2 = 7 pixels a side
    (10, 1568)
    """

    filters: Sequence[int] = (32, 32)
    activation: Activation = relu
    batch_norm: bool = False
    parameterisation: Parameterisation = standard

    def __post_init__(self) -> None:
        filters = check.integers("filters", self.filters, minimum=1, remedy="Pass for example filters=(32, 32).")
        object.__setattr__(self, "filters", filters)
        check_activation(self.activation)
        check_parameterisation(self.parameterisation)
        if self.batch_norm and self.parameterisation != standard:
            check.refuse(
                "parameterisation",
                "standard with batch_norm=True",
                self.parameterisation,
                "The scale of a normalised layer does not reach the output; take batch_norm=False.",
            )

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        height, width, channels = image_shape(inputs, minimum=2 ** len(self.filters))
        outputs = check.integer("outputs", outputs, minimum=1)
        layers = []
        for a, b in pairwise((channels, *self.filters)):
            layer = init_convolution(b, a, rng, dtype, parameterisation=self.parameterisation)
            layers.append(layer | (init_batch_norm(b, dtype) if self.batch_norm else {}))
        shrunk = 2 ** len(self.filters)
        features = (height // shrunk) * (width // shrunk) * (channels, *self.filters)[-1]
        last = init_linear(outputs, features, rng, dtype, parameterisation=self.parameterisation)
        return {"convolutions": layers, "linear": last}

    def forward(self, params: Params, x: Array, normalise: Normalise = apply_batch_norm) -> Array:
        """Outputs, normalised by the statistics of x by default."""
        h = x
        for layer in params["convolutions"]:
            h = apply_convolution(layer, h, self.parameterisation)
            h = normalise(layer, h) if self.batch_norm else h
            h = max_pool(self.activation(h))
        return apply_readout(params["linear"], h.reshape(len(h), -1), self.parameterisation)

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)

    def after_training(self, x: Any) -> Predict:
        return TrainingStatistics(self.forward, x) if self.batch_norm else self

    def frozen(self) -> Predict:
        return _ConstantMoments(self) if self.batch_norm else self


@dataclass(frozen=True)
class ResNet(Architecture, Freezable):
    """A residual network for small images (He et al. 2016), ResNet-20 of conflicting-biases by default.

    A convolution, stages of residual blocks, the mean over all pixels, and a linear layer. A block is
    σ(skip(h) + BN(conv(σ(BN(conv(h)))))). A stage wider than the one before starts with 2×2 average pooling, and its
    first skip is batch normalisation and zeros for the new channels. The depth is 2·blocks·stages + 2.

    >>> ResNet().depth
    20
    """

    widths: Sequence[int] = (16, 32, 64)
    blocks: int = 3
    activation: Activation = relu

    def __post_init__(self) -> None:
        widths = check.integers("widths", self.widths, minimum=1, remedy="Pass for example widths=(16, 32, 64).")
        object.__setattr__(self, "widths", widths)
        check_activation(self.activation)
        check.integer("blocks", self.blocks, minimum=1)
        if not self.widths or list(self.widths) != sorted(set(self.widths)):
            check.refuse("widths", "rising from stage to stage", self.widths, "The skips add channels: (16, 32, 64).")

    @property
    def depth(self) -> int:
        """The number of convolutions on the longest path, plus 1 for the linear layer."""
        return 2 * self.blocks * len(self.widths) + 2

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        _, _, channels = image_shape(inputs, minimum=2 ** (len(self.widths) - 1))
        outputs = check.integer("outputs", outputs, minimum=1)

        def normalised(b: int, a: int) -> Params:
            return init_convolution(b, a, rng, dtype, bias=False) | init_batch_norm(b, dtype)

        first, stages, before = normalised(self.widths[0], channels), [], self.widths[0]
        for width in self.widths:
            blocks = []
            for _ in range(self.blocks):
                skip = {"skip": init_batch_norm(before, dtype)} if width != before else {}
                blocks.append({"first": normalised(width, before), "second": normalised(width, width)} | skip)
                before = width
            stages.append(blocks)
        return {"first": first, "stages": stages, "linear": init_linear(outputs, before, rng, dtype)}

    def forward(self, params: Params, x: Array, normalise: Normalise = apply_batch_norm) -> Array:
        """Outputs, normalised by the statistics of x by default."""

        def normalised(layer: Params, h: Array) -> Array:
            return normalise(layer, apply_convolution(layer, h))

        h = self.activation(normalised(params["first"], x))
        for block in (block for stage in params["stages"] for block in stage):
            skip = h
            if "skip" in block:
                h = average_pool(h)
                new = block["second"]["gamma"].size - h.shape[-1]
                skip = jnp.pad(normalise(block["skip"], h), (*[(0, 0)] * 3, (0, new)))
            branch = normalised(block["second"], self.activation(normalised(block["first"], h)))
            h = self.activation(skip + branch)
        return apply_linear(params["linear"], jnp.mean(h, axis=(1, 2)))

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)

    def after_training(self, x: Any) -> Predict:
        return TrainingStatistics(self.forward, x)

    def frozen(self) -> Predict:
        return _ConstantMoments(self)
