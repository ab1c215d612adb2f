"""Scaled dot-product attention of several heads (Vaswani et al. 2017)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks import linear
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.initial import glorot_uniform


def init(dim: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's: the projections to queries, keys and values drawn as one matrix (3 dim, dim); no bias at the start."""
    output = linear.init(dim, dim, rng, dtype, bias=False)
    return {
        "inward": {"W": glorot_uniform(rng, (3 * dim, dim), dtype), "b": np.zeros(3 * dim, dtype)},
        "outward": output | {"b": np.zeros(dim, dtype)},
    }


def apply(params: Params, queries: Array, memory: Array, *, heads: int, causal: bool = False) -> Array:
    """softmax(QKᵀ/√(dim/heads)) V for each head, joined and projected; `queries` look at `memory`, (n, tokens, dim).

    `causal`: a token looks at itself and at those before it.
    """
    W, b = params["inward"]["W"], params["inward"]["b"]
    dim = W.shape[1]

    def projected(part: int, h: Array) -> Array:
        rows = slice(part * dim, (part + 1) * dim)
        return linear.apply({"W": W[rows], "b": b[rows]}, h).reshape(*h.shape[:2], heads, dim // heads)

    q, k, v = projected(0, queries), projected(1, memory), projected(2, memory)
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (dim // heads) ** -0.5
    if causal:
        seen = np.tri(scores.shape[2], scores.shape[3], dtype=bool)
        scores = jnp.where(seen[None, None], scores, -jnp.inf)
    mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores, axis=-1), v)
    return linear.apply(params["outward"], mixed.reshape(queries.shape))
