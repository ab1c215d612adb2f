"""The least trace from squared gradients that any framework has computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from steppe import check
from steppe._result import Rows
from steppe.flattening import _rescaling
from steppe.flattening._neurons import AnyLayer, Arrays, Exponents
from steppe.training_set import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Balanced(Rows, index="group", columns=("t",)):
    """e^t are the scales of the groups, `factors` what each parameter is multiplied by. Σ c falls from `before` to
    `value`, and no scales give less than `lower`; `gap` = (value − lower)/value. Numpy takes it as its `t`."""

    t: Floats
    factors: Floats
    value: float
    lower: float
    before: float

    @property
    def gap(self) -> float:
        return (self.value - self.lower) / self.value if self.value > 0 else 0.0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        return np.array(self.t, dtype=dtype)


def balance(groups: Any, squared_gradients: Any) -> Balanced:
    """The scales of `groups` that minimise Σ_k c_k e^{−2(At)_k}, with c the `squared_gradients`, certified.

    c_k = (1/n) Σ (∂f/∂w_k)² over examples and outputs is the diagonal of the Gauss-Newton matrix for `half_mse`. The
    function is that of the parameters times `factors`.

    `groups` is a list of `Neurons`, or of layers that `flatten` has found; then `squared_gradients` is a dictionary
    {array: squares}, or one flat vector for found layers. Or `groups` is the matrix A of exponents itself, (parameters,
    groups): 1 where a parameter grows with a group, −1 where it shrinks.

    >>> from steppe.flattening import Neurons
    >>> best = balance([Neurons(into={"W1": 0}, out={"W2": 0})], {"W1": [[1.0]], "W2": [64.0]})
    >>> best.before, round(best.value, 9), round(best.lower, 9), (best.factors**2).round(9).tolist()    # 2 √(1 · 64)
    (65.0, 16.0, 16.0, [0.125, 8.0])
    >>> balance(np.array([[1.0], [-1.0]]), [1.0, 64.0]).gap < 1e-12
    True
    """
    exponents, c = _read(groups, squared_gradients)
    if c.shape != (len(exponents.of),) or not (np.isfinite(c) & (c >= 0)).all():
        rule = f"{len(exponents.of)} finite numbers ≥ 0, one for each parameter"
        check.refuse("squared_gradients", rule, f"shape {c.shape}", "Pass the mean squares of the gradients.")
    weights = exponents.sums(c)
    t = _rescaling.balance(exponents.rows, weights)
    value, lower = float(np.sum(weights * np.exp(-2 * (exponents.rows @ t)))), 0.0
    lower = min(_rescaling.lower_bound(exponents.rows, weights, t), value)  # at the minimum rounding may exchange them
    return Balanced(t, exponents.factors(t), value, lower, float(np.sum(weights)))


def _read(groups: Any, squares: Any) -> tuple[Exponents, Floats]:
    """Exponents and weights."""
    if isinstance(groups, AnyLayer):
        groups = [groups]
    listed = isinstance(groups, Sequence) and bool(groups) and all(isinstance(g, AnyLayer) for g in groups)
    if isinstance(squares, Mapping):
        arrays = Arrays.named({name: np.shape(a) for name, a in squares.items()})
        c = np.concatenate([np.asarray(a, dtype=float).ravel() for a in squares.values()] or [np.empty(0)])
    else:
        arrays, c = Arrays.named({"w": np.shape(squares)}), np.asarray(squares, dtype=float)
    if listed:
        return arrays.exponents(groups)[0], c
    A = csr_array(groups) if issparse(groups) else np.asarray(groups)
    if A.ndim != 2 or A.dtype.kind not in "fiu":
        rule = "a list of steppe.flattening.Neurons, or a matrix of exponents (parameters, groups)"
        check.refuse("groups", rule, groups, 'For example [Neurons(into={"W1": 0, "b1": 0}, out={"W2": 1})].')
    return Exponents.merged(np.arange(A.shape[0]), csr_array(A, dtype=float)), c
