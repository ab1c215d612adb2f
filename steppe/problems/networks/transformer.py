"""The encoder-decoder transformer of conflicting-biases, for sequence reversal."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks import decoder_layer, encoder_layer, linear, token_norm
from steppe.problems.networks.activations import Activation, refuse_other, relu
from steppe.problems.networks.architecture import Architecture
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.heads import refuse_uneven
from steppe.problems.networks.initial import glorot_uniform
from steppe.problems.networks.positions import sinusoidal


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
            check.refuse("inputs", "the shapes of source and shifted", inputs, "Take steppe.problems.data.reversal.")
        layers = {
            "encoder": [encoder_layer.init(self.dim, self.hidden, rng, dtype) for _ in range(self.encoder_layers)],
            "encoder_norm": token_norm.init(self.dim, dtype),
            "decoder": [decoder_layer.init(self.dim, self.hidden, rng, dtype) for _ in range(self.decoder_layers)],
            "decoder_norm": token_norm.init(self.dim, dtype),
        }
        drawn = jax.tree.map(lambda a: glorot_uniform(rng, a.shape, dtype) if a.ndim == 2 else a, layers)
        embeddings = {
            name: rng.standard_normal((outputs + 1, self.dim)).astype(dtype) for name in ("source", "shifted")
        }
        return {"embeddings": embeddings, **drawn, "linear": linear.init(outputs, self.dim, rng, dtype)}

    def __call__(self, params: Params, x: dict[str, Array]) -> Array:
        options: dict[str, Any] = {"heads": self.heads, "activation": self.activation}
        memory = self._embedded(params, x, "source")
        for layer in params["encoder"]:
            memory = encoder_layer.apply(layer, memory, norm_first=False, **options)
        memory = token_norm.apply(params["encoder_norm"], memory)
        h = self._embedded(params, x, "shifted")
        for layer in params["decoder"]:
            h = decoder_layer.apply(layer, h, memory, **options)
        return linear.apply(params["linear"], token_norm.apply(params["decoder_norm"], h))

    def _embedded(self, params: Params, x: dict[str, Array], name: str) -> Array:
        table = params["embeddings"][name]
        return table[x[name]] + jnp.asarray(sinusoidal(x[name].shape[1], self.dim), table.dtype)[None]
