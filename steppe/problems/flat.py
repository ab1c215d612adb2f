"""Parameters as one flat vector: `w` and the way back to the pytree."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check


@dataclass(frozen=True)
class Unravel:
    """w ↦ the pytree of parameters. Hashable by structure, so that problems of one shape share compiled code."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def fits(self, params: Any) -> bool:
        """Whether it is a pytree of this structure, with arrays of these shapes."""
        leaves, treedef = jax.tree.flatten(params)
        return bool(treedef == self.treedef) and tuple(np.shape(a) for a in leaves) == self.shapes

    def __call__(self, w: Array) -> Any:
        leaves, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + int(np.prod(shape))
            leaves.append(w[start:stop].reshape(shape).astype(dtype))
            start = stop
        return jax.tree.unflatten(self.treedef, leaves)


def ravel(params: Any) -> tuple[Array, Unravel]:
    """The flat vector of a pytree of real floating arrays, leaf after leaf in tree order, and the way back."""
    leaves, treedef = jax.tree.flatten(params)
    if not any(map(np.size, leaves)):
        check.refuse(
            "params", "a pytree with at least one array that is not empty", params, "Pass the network's parameters."
        )
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        where = "params" + jax.tree_util.keystr(path)
        if not isinstance(leaf, Array | np.ndarray | np.generic | float):
            check.refuse(where, "an array", leaf, "Split off what is not trained: eqx.partition(model, eqx.is_array).")
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            check.refuse(
                where,
                "of a real floating type",
                str(jnp.result_type(leaf)),
                "Convert it: params.astype(float).",
            )
        if getattr(leaf, "dtype", None) == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
            check.refuse(
                where,
                "at most float32 while JAX runs in 32 bits",
                "float64",
                'Call jax.config.update("jax_enable_x64", True) first, or convert it: params.astype("float32").',
            )
        check.finite(where, leaf)
    arrays = [np.asarray(leaf, jnp.result_type(leaf)) for leaf in leaves]
    unravel = Unravel(treedef, tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))
    # In numpy: JAX would compile a program for each new shape.
    return jnp.asarray(np.concatenate([a.ravel() for a in arrays], dtype=jnp.result_type(*arrays))), unravel
