"""Attention: the vision transformer and the encoder-decoder transformer."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.activations import Activation, refuse_other, relu
from steppe.networks._architecture import Architecture, Params, glorot_uniform, image, init_linear, linear_layer

# A width that attention can share among its heads.


def refuse_uneven(dim: int, heads: int) -> None:
    if dim % heads:
        check.refuse("dim", f"a multiple of the {heads} heads", dim, "Change one of the two.")


# Scaled dot-product attention of several heads (Vaswani et al. 2017).


def init_attention(dim: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's: the projections to queries, keys and values drawn as one matrix (3 dim, dim); no bias at the start."""
    output = init_linear(dim, dim, rng, dtype, bias=False)
    return {
        "inward": {"W": glorot_uniform(rng, (3 * dim, dim), dtype), "b": np.zeros(3 * dim, dtype)},
        "outward": output | {"b": np.zeros(dim, dtype)},
    }


def attend(params: Params, queries: Array, memory: Array, *, heads: int, causal: bool = False) -> Array:
    """softmax(QKᵀ/√(dim/heads)) V for each head, joined and projected; `queries` look at `memory`, (n, tokens, dim).

    `causal`: a token looks at itself and at those before it.
    """
    W, b = params["inward"]["W"], params["inward"]["b"]
    dim = W.shape[1]

    def projected(part: int, h: Array) -> Array:
        rows = slice(part * dim, (part + 1) * dim)
        return linear_layer({"W": W[rows], "b": b[rows]}, h).reshape(*h.shape[:2], heads, dim // heads)

    q, k, v = projected(0, queries), projected(1, memory), projected(2, memory)
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (dim // heads) ** -0.5
    if causal:
        seen = np.tri(scores.shape[2], scores.shape[3], dtype=bool)
        scores = jnp.where(seen[None, None], scores, -jnp.inf)
    mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores, axis=-1), v)
    return linear_layer(params["outward"], mixed.reshape(queries.shape))


# Sinusoidal positions (Vaswani et al. 2017): sin and cos of position / 10000^(2k/dim), in turn.


def sinusoidal(length: int, dim: int) -> NDArray[np.float64]:
    """(length, dim).

    >>> sinusoidal(2, 2).round(4).tolist()
    [[0.0, 1.0], [0.8415, 0.5403]]
    """
    angles = np.arange(length)[:, None] * 10_000.0 ** (-2 * (np.arange(dim) // 2)[None] / dim)
    return np.where(np.arange(dim)[None] % 2 == 0, np.sin(angles), np.cos(angles))


# Layer normalisation of tokens: γ (h − mean)/√(var + eps) + β over the last axis.

EPS = 1e-5  # PyTorch's


def init_token_norm(size: int, dtype: Any) -> Params:
    """γ = 1 and β = 0."""
    return {"gamma": np.ones(size, dtype), "beta": np.zeros(size, dtype)}


def token_normalised(params: Params, h: Array) -> Array:
    """
    >>> apply(init(2, np.float64), jnp.array([[1.0, 3.0]])).round(3).tolist()
    [[-1.0, 1.0]]
    """
    centred = h - jnp.mean(h, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    along = (1,) * (h.ndim - 1) + (-1,)
    return params["gamma"].reshape(along) * centred / jnp.sqrt(variance + EPS) + params["beta"].reshape(along)


# A transformer's encoder layer: self-attention and a two-layer network on each token, both residual.


def init_encoder_layer(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    return {
        "attention": init_attention(dim, rng, dtype),
        "norm1": init_token_norm(dim, dtype),
        "widen": init_linear(hidden, dim, rng, dtype),
        "narrow": init_linear(dim, hidden, rng, dtype),
        "norm2": init_token_norm(dim, dtype),
    }


def feed_forward(params: Params, h: Array, activation: Activation) -> Array:
    return linear_layer(params["narrow"], activation(linear_layer(params["widen"], h)))


def encode(params: Params, h: Array, *, heads: int, activation: Activation, norm_first: bool) -> Array:
    """Normalised before each of the two (Dosovitskiy et al. 2021) or after each sum (Vaswani et al. 2017)."""

    def attended(h: Array) -> Array:
        return attend(params["attention"], h, h, heads=heads)

    if norm_first:
        h = h + attended(token_normalised(params["norm1"], h))
        return h + feed_forward(params, token_normalised(params["norm2"], h), activation)
    h = token_normalised(params["norm1"], h + attended(h))
    return token_normalised(params["norm2"], h + feed_forward(params, h, activation))


# A transformer's decoder layer: causal self-attention, attention to the encoder's output, a network on each token.


def init_decoder_layer(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    cross = {"cross": init_attention(dim, rng, dtype), "norm3": init_token_norm(dim, dtype)}
    return init_encoder_layer(dim, hidden, rng, dtype) | cross


def decode(params: Params, h: Array, memory: Array, *, heads: int, activation: Activation) -> Array:
    """Normalised after each sum (Vaswani et al. 2017)."""
    h = token_normalised(params["norm1"], h + attend(params["attention"], h, h, heads=heads, causal=True))
    h = token_normalised(params["norm2"], h + attend(params["cross"], h, memory, heads=heads))
    return token_normalised(params["norm3"], h + feed_forward(params, h, activation))


# Vision transformers (Dosovitskiy et al. 2021) of conflicting-biases.


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
            "patches": init_linear(self.dim, channels * self.patch**2, rng, dtype),
            "token": np.zeros(self.dim, dtype),
            "positions": rng.normal(scale=0.02, size=(tokens + 1, self.dim)).astype(dtype),
            "layers": [init_encoder_layer(self.dim, hidden, rng, dtype) for _ in range(self.layers)],
            "norm": init_token_norm(self.dim, dtype),
            "linear": init_linear(check.integer("outputs", outputs, minimum=1), self.dim, rng, dtype),
        }

    def __call__(self, params: Params, x: Array) -> Array:
        patches = linear_layer(params["patches"], self._patches(x))
        token = jnp.broadcast_to(params["token"][None, None], (len(x), 1, self.dim)).astype(patches.dtype)
        h = jnp.concatenate([token, patches], axis=1) + params["positions"][None]
        for layer in params["layers"]:
            h = encode(layer, h, heads=self.heads, activation=self.activation, norm_first=True)
        return linear_layer(params["linear"], token_normalised(params["norm"], h[:, 0]))

    def _patches(self, x: Array) -> Array:
        """(n, tokens, patch · patch · channels), row after row of patches."""
        n, height, width, channels = x.shape
        p = self.patch
        cut = x.reshape(n, height // p, p, width // p, p, channels)
        return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, -1, p * p * channels)


vit_mnist = ViT()
vit_cifar = ViT(patch=4, dim=128, layers=6)


# The encoder-decoder transformer of conflicting-biases, for sequence reversal.


@dataclass(frozen=True)
class Transformer(Architecture):
    """Logits (n, length, symbols) for x = {"source", "shifted"}, both (n, length) of symbol numbers.

    `shifted` is the target with the start symbol 0 in front (teacher forcing); the symbols themselves count from 1.
    Learned embeddings of both, fixed sinusoidal positions, PyTorch's `nn.Transformer` between them and the linear
    layer: normalised after each sum, and once more after encoder and decoder.
    """

    dim: int = 64
    hidden: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 2
    heads: int = 4
    activation: Activation = relu

    def __post_init__(self) -> None:
        for name in ("dim", "hidden", "encoder_layers", "decoder_layers", "heads"):
            check.integer(name, getattr(self, name), minimum=1)
        refuse_uneven(self.dim, self.heads)
        refuse_other(self.activation)

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """PyTorch's defaults: embeddings N(0, 1), the matrices of encoder and decoder Glorot uniform."""
        outputs = check.integer("outputs", outputs, minimum=1)
        if not isinstance(inputs, dict) or set(inputs) != {"source", "shifted"}:
            check.refuse("inputs", "the shapes of source and shifted", inputs, "Take steppe.data._cube.")
        layers = {
            "encoder": [init_encoder_layer(self.dim, self.hidden, rng, dtype) for _ in range(self.encoder_layers)],
            "encoder_norm": init_token_norm(self.dim, dtype),
            "decoder": [init_decoder_layer(self.dim, self.hidden, rng, dtype) for _ in range(self.decoder_layers)],
            "decoder_norm": init_token_norm(self.dim, dtype),
        }
        drawn = jax.tree.map(lambda a: glorot_uniform(rng, a.shape, dtype) if a.ndim == 2 else a, layers)
        embeddings = {
            name: rng.standard_normal((outputs + 1, self.dim)).astype(dtype) for name in ("source", "shifted")
        }
        return {"embeddings": embeddings, **drawn, "linear": init_linear(outputs, self.dim, rng, dtype)}

    def __call__(self, params: Params, x: dict[str, Array]) -> Array:
        options: dict[str, Any] = {"heads": self.heads, "activation": self.activation}
        memory = self._embedded(params, x, "source")
        for layer in params["encoder"]:
            memory = encode(layer, memory, norm_first=False, **options)
        memory = token_normalised(params["encoder_norm"], memory)
        h = self._embedded(params, x, "shifted")
        for layer in params["decoder"]:
            h = decode(layer, h, memory, **options)
        return linear_layer(params["linear"], token_normalised(params["decoder_norm"], h))

    def _embedded(self, params: Params, x: dict[str, Array], name: str) -> Array:
        table = params["embeddings"][name]
        return table[x[name]] + jnp.asarray(sinusoidal(x[name].shape[1], self.dim), table.dtype)[None]
