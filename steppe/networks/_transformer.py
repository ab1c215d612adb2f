"""The transformers of conflicting-biases: attention, encoder and decoder layers, and the two networks built of them.

Tokens are (n, tokens, dim).
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.activations import Activation, check_activation, relu
from steppe.networks._architecture import Architecture, image_shape
from steppe.networks._layers import Params, apply_linear, init_linear, uniform

EPS = 1e-5  # PyTorch's


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Uniform on ±√(6/(fan_in + fan_out)), `shape` (fan_out, fan_in): PyTorch's draw for attention."""
    return uniform(rng, shape, (6 / sum(shape)) ** 0.5, dtype)


def check_heads(dim: int, heads: int) -> None:
    if dim % heads:
        check.refuse("dim", f"a multiple of the {heads} heads", dim, "Change one of the two.")


def init_attention(dim: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults: queries, keys and values are projected by one matrix (3 dim, dim), and biases are 0."""
    output = init_linear(dim, dim, rng, dtype, bias=False)
    return {
        "inward": {"W": glorot_uniform(rng, (3 * dim, dim), dtype), "b": np.zeros(3 * dim, dtype)},
        "outward": output | {"b": np.zeros(dim, dtype)},
    }


def apply_attention(params: Params, queries: Array, memory: Array, *, heads: int, causal: bool = False) -> Array:
    """softmax(QKᵀ/√(dim/heads)) V for each head, joined and projected (Vaswani et al. 2017).

    Q is computed from `queries`, K and V from `memory`. If `causal`, a token sees itself and the tokens before it.
    Hessian products through equinox.nn.MultiheadAttention take up to 1.16 times as long.
    """
    W, b = params["inward"]["W"], params["inward"]["b"]
    dim = W.shape[1]

    def projected(part: int, h: Array) -> Array:
        rows = slice(part * dim, (part + 1) * dim)
        return apply_linear({"W": W[rows], "b": b[rows]}, h).reshape(*h.shape[:2], heads, dim // heads)

    q, k, v = projected(0, queries), projected(1, memory), projected(2, memory)
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (dim // heads) ** -0.5
    if causal:
        seen = np.tri(scores.shape[2], scores.shape[3], dtype=bool)
        scores = jnp.where(seen[None, None], scores, -jnp.inf)
    mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores, axis=-1), v)
    return apply_linear(params["outward"], mixed.reshape(queries.shape))


def sinusoidal(length: int, dim: int) -> NDArray[np.float64]:
    """Positions (length, dim): sin and cos of position / 10000^(2k/dim) alternate (Vaswani et al. 2017).

    >>> sinusoidal(2, 2).round(4).tolist()
    [[0.0, 1.0], [0.8415, 0.5403]]
    """
    angles = np.arange(length)[:, None] * 10_000.0 ** (-2 * (np.arange(dim) // 2)[None] / dim)
    return np.where(np.arange(dim)[None] % 2 == 0, np.sin(angles), np.cos(angles))


def init_layer_norm(size: int, dtype: Any) -> Params:
    """γ = 1 and β = 0."""
    return {"gamma": np.ones(size, dtype), "beta": np.zeros(size, dtype)}


def apply_layer_norm(params: Params, h: Array) -> Array:
    """γ (h − mean)/√(var + eps) + β over the last axis.

    Training steps of a ViT through equinox.nn.LayerNorm take 1.12 times as long.

    >>> apply_layer_norm(init_layer_norm(2, np.float32), jnp.array([[1.0, 3.0]])).round(3).tolist()
    [[-1.0, 1.0]]
    """
    centred = h - jnp.mean(h, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    along = (1,) * (h.ndim - 1) + (-1,)
    return params["gamma"].reshape(along) * centred / jnp.sqrt(variance + EPS) + params["beta"].reshape(along)


def init_encoder_layer(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    return {
        "attention": init_attention(dim, rng, dtype),
        "norm1": init_layer_norm(dim, dtype),
        "widen": init_linear(hidden, dim, rng, dtype),
        "narrow": init_linear(dim, hidden, rng, dtype),
        "norm2": init_layer_norm(dim, dtype),
    }


def feed_forward(params: Params, h: Array, activation: Activation) -> Array:
    """A network with one hidden layer, on each token."""
    return apply_linear(params["narrow"], activation(apply_linear(params["widen"], h)))


def apply_encoder_layer(params: Params, h: Array, *, heads: int, activation: Activation, norm_first: bool) -> Array:
    """Self-attention and a network on each token, both residual.

    Normalised before each of the two if `norm_first` (Dosovitskiy et al. 2021), else after each sum (Vaswani et al.
    2017).
    """

    def attended(h: Array) -> Array:
        return apply_attention(params["attention"], h, h, heads=heads)

    if norm_first:
        h = h + attended(apply_layer_norm(params["norm1"], h))
        return h + feed_forward(params, apply_layer_norm(params["norm2"], h), activation)
    h = apply_layer_norm(params["norm1"], h + attended(h))
    return apply_layer_norm(params["norm2"], h + feed_forward(params, h, activation))


def init_decoder_layer(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    cross = {"cross": init_attention(dim, rng, dtype), "norm3": init_layer_norm(dim, dtype)}
    return init_encoder_layer(dim, hidden, rng, dtype) | cross


def apply_decoder_layer(params: Params, h: Array, memory: Array, *, heads: int, activation: Activation) -> Array:
    """Causal self-attention, attention to `memory` (the encoder's output), a network on each token; all residual.

    Normalised after each sum (Vaswani et al. 2017).
    """
    h = apply_layer_norm(params["norm1"], h + apply_attention(params["attention"], h, h, heads=heads, causal=True))
    h = apply_layer_norm(params["norm2"], h + apply_attention(params["cross"], h, memory, heads=heads))
    return apply_layer_norm(params["norm3"], h + feed_forward(params, h, activation))


@dataclass(frozen=True)
class ViT(Architecture):
    """A vision transformer (Dosovitskiy et al. 2021), the paper's for MNIST by default; `vit_cifar` is for CIFAR-10.

    Encoder layers act on patches and a class token with learned positions; a linear layer reads the class token. Tokens
    are normalised before attention, before each network, and once at the end. The networks have `hidden` neurons, four
    times `dim` by default (the paper does not say).

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
        check_heads(self.dim, self.heads)
        check_activation(self.activation)

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """PyTorch's defaults; the class token is zero and positions are N(0, 0.02²), as in torchvision."""
        height, width, channels = image_shape(inputs)
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
            "norm": init_layer_norm(self.dim, dtype),
            "linear": init_linear(check.integer("outputs", outputs, minimum=1), self.dim, rng, dtype),
        }

    def __call__(self, params: Params, x: Array) -> Array:
        patches = apply_linear(params["patches"], self._patches(x))
        token = jnp.broadcast_to(params["token"][None, None], (len(x), 1, self.dim)).astype(patches.dtype)
        h = jnp.concatenate([token, patches], axis=1) + params["positions"][None]
        for layer in params["layers"]:
            h = apply_encoder_layer(layer, h, heads=self.heads, activation=self.activation, norm_first=True)
        return apply_linear(params["linear"], apply_layer_norm(params["norm"], h[:, 0]))

    def _patches(self, x: Array) -> Array:
        """(n, tokens, patch · patch · channels), patches row by row."""
        n, height, width, channels = x.shape
        p = self.patch
        cut = x.reshape(n, height // p, p, width // p, p, channels)
        return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, -1, p * p * channels)


vit_mnist = ViT()
vit_cifar = ViT(patch=4, dim=128, layers=6)


@dataclass(frozen=True)
class Transformer(Architecture):
    """Encoder and decoder for sequence reversal: logits (n, length, symbols).

    The inputs are x = {"source", "shifted"}, both (n, length) of symbol numbers from 1. `shifted` is the target behind
    the start symbol 0 (teacher forcing). Both get learned embeddings and sinusoidal positions; then follow PyTorch's
    `nn.Transformer` (normalised after each sum, and after encoder and decoder) and a linear layer.
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
        check_heads(self.dim, self.heads)
        check_activation(self.activation)

    def init(self, inputs: Any, outputs: int, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """PyTorch's defaults: embeddings are N(0, 1), the matrices of encoder and decoder Glorot uniform."""
        outputs = check.integer("outputs", outputs, minimum=1)
        if not isinstance(inputs, dict) or set(inputs) != {"source", "shifted"}:
            check.refuse("inputs", "the shapes of source and shifted", inputs, "Take steppe.data.reversal.")
        layers = {
            "encoder": [init_encoder_layer(self.dim, self.hidden, rng, dtype) for _ in range(self.encoder_layers)],
            "encoder_norm": init_layer_norm(self.dim, dtype),
            "decoder": [init_decoder_layer(self.dim, self.hidden, rng, dtype) for _ in range(self.decoder_layers)],
            "decoder_norm": init_layer_norm(self.dim, dtype),
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
            memory = apply_encoder_layer(layer, memory, norm_first=False, **options)
        memory = apply_layer_norm(params["encoder_norm"], memory)
        h = self._embedded(params, x, "shifted")
        for layer in params["decoder"]:
            h = apply_decoder_layer(layer, h, memory, **options)
        return apply_linear(params["linear"], apply_layer_norm(params["decoder_norm"], h))

    def _embedded(self, params: Params, x: dict[str, Array], name: str) -> Array:
        table = params["embeddings"][name]
        return table[x[name]] + jnp.asarray(sinusoidal(x[name].shape[1], self.dim), table.dtype)[None]
