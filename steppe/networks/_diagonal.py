"""Diagonal linear networks: f(x) = ⟨w^L, x⟩ with shared weights, and f(x) = ⟨u ⊙ v, x⟩ with two factors."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.losses import half_mse
from steppe.problem import Problem

Floats: TypeAlias = NDArray[np.float64]

# A relative residual of least squares below this is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SharedWeights:
    """f(x) = ⟨w^L, x⟩ with the power of each entry: L layers diag(w) that share their weights; parameters w (d,).

    >>> SharedWeights(3)(np.array([1.0, 2.0]), np.array([[5.0, 1.0]])).tolist()     # 5·1³ + 1·2³
    [13.0]
    """

    depth: int = 2

    def __call__(self, w: Array, x: Array) -> Array:
        output: Array = x @ w**self.depth
        return output


@dataclass(frozen=True)
class TwoFactors:
    """f(x) = ⟨u ⊙ v, x⟩; parameters u (d,), v (d,).

    >>> TwoFactors()({"u": np.array([1.0, 2.0]), "v": np.array([3.0, -1.0])}, np.array([[5.0, 1.0]])).tolist()
    [13.0]
    """

    def __call__(self, params: dict[str, Array], x: Array) -> Array:
        output: Array = x @ (params["u"] * params["v"])
        return output


def diagonal_problem(x: Any, y: Any, *, depth: int = 2, start: Any = 0.1) -> Problem:
    """½(⟨w^L, x⟩ − y)² with L = `depth`, or its mean over the rows of x; w0 is `start`, a vector or a number α for α·1.

    Raises if no w fits the data; an even L needs some u = w^L ≥ 0 with ⟨u, x⟩ = y.

    >>> p = diagonal_problem([1.0, 0.5], 1.5, start=[1.0, 1.0])
    >>> float(p.loss(p.w0))
    0.0
    """
    depth = check.integer("depth", depth, minimum=1)
    x, y = _rows(x, y)
    _solvable(x, y, nonnegative=depth % 2 == 0)
    return Problem(SharedWeights(depth), _start("start", start, x.shape[1]), x, y, half_mse)


def two_factor_problem(x: Any, y: Any, *, u: Any = 0.1, v: Any = 0.1) -> Problem:
    """(1/n) Σ ½(⟨u ⊙ v, xᵢ⟩ − yᵢ)²; the initial parameters u and v are vectors, or numbers for constant vectors.

    >>> p = two_factor_problem([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0], u=[2.0, 1.0], v=[1.0, 1.0])
    >>> float(p.loss(p.w0))                                         # ½ (0² + 2²) / 2
    1.0
    """
    x, y = _rows(x, y)
    _solvable(x, y, nonnegative=False)
    d = x.shape[1]
    return Problem(TwoFactors(), {"u": _start("u", u, d), "v": _start("v", v, d)}, x, y, half_mse)


def _rows(x: Any, y: Any) -> tuple[Floats, Floats]:
    points, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if points.ndim == 1 and labels.ndim == 0:
        points, labels = points[None], labels[None]
    if points.ndim != 2 or points.size == 0 or labels.shape != points.shape[:1]:
        rule = "(d,) with a number y, or (n, d) with y (n,)"
        check.refuse("x", f"of shape {rule}", f"x {points.shape}, y {labels.shape}", "Reshape x or y.")
    check.finite("x", points)
    check.finite("y", labels)
    if not points.any():
        check.refuse("x", "not all zero", points.tolist(), "At x = 0 the network outputs 0 for all weights.")
    return points, labels


def _solvable(x: Floats, y: Floats, *, nonnegative: bool) -> None:
    from scipy.optimize import nnls

    u = nnls(x, y)[0] if nonnegative else np.linalg.lstsq(x, y)[0]
    residual = float(np.abs(x @ u - y).max())
    if residual > _ROUNDING * float(np.abs(y).max()):
        rule = "⟨u, x⟩ for some u ≥ 0, since an even power is never negative" if nonnegative else "⟨u, x⟩ for some u"
        remedy = f"No weights fit y: the least residual is {residual:.3g}. Change signs of x or y, or use an odd depth."
        check.refuse("y", rule, y.tolist(), remedy)


def _start(name: str, value: Any, d: int) -> NDArray[Any]:
    start = np.asarray(value, dtype=jax.dtypes.canonicalize_dtype(np.float64))
    if start.shape not in ((), (d,)):
        check.refuse(name, f"a number or a vector of {d}", f"shape {start.shape}", "Pass for example 0.1.")
    check.finite(name, start)
    return np.broadcast_to(start, (d,)).copy()
