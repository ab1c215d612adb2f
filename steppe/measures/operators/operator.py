"""A curvature matrix as a product with vectors, and its dense twin."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.measures.operators.statistics import Statistics

# Columns of an identity multiplied at a time; so few in all that compiling a loop would take longer than they do.
_COLUMNS, _FEW = 32, 256
# A dense matrix beyond this takes 3 GB in float64.
_DENSE = 20_000


class Operator(eqx.Module):
    """A symmetric `size` × `size` matrix known by v ↦ Av.

    What the product needs from (problem, w) was computed once, when the operator was made; a product is one call
    of compiled code, in the precision of the parameters.
    """

    product: Callable[[Array], Array]
    size: int = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    name: str = eqx.field(static=True)
    statistics: Statistics = eqx.field(static=True)

    def matvec(self, v: ArrayLike) -> Array:
        """Av."""
        return _apply(self.product, jnp.asarray(v, self.dtype))

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Av on the host, for steppe.linalg."""
        return np.asarray(self.matvec(v))

    def dense(self) -> Array:
        """A itself, (size, size): for tests and small problems."""
        if self.size > _DENSE:
            remedy = "Use products: operator.matvec, or the measures built on them."
            check.refuse("size", f"at most {_DENSE} for a dense matrix", self.size, remedy)
        if self.size <= _FEW:
            return jnp.asarray(np.stack([self(e) for e in np.eye(self.size)], axis=1))
        return _columns(self.product, jnp.eye(self.size, dtype=self.dtype))


_apply = eqx.filter_jit(lambda product, v: product(v))
_columns = eqx.filter_jit(lambda product, rows: jax.lax.map(product, rows, batch_size=_COLUMNS).T)
