"""The function of a one-dimensional ReLU net: knots, slopes, and f″ as a sum of deltas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, Params
from steppe.constructions.flattest.one_hidden import one_hidden


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """f with f″ = Σ jumps[k] δ(x − knots[k]), knots rising and distinct, f(x) = slope x + offset left of them all.

    >>> f = PiecewiseLinear(np.array([0.0]), np.array([2.0]), -1.0, 0.0)    # |x|
    >>> f([-2.0, 3.0]).tolist(), f.slopes.tolist(), f.roughness(-1.0, 1.0)
    ([2.0, 3.0], [-1.0, 1.0], 2.0)
    """

    knots: Floats
    jumps: Floats
    slope: float
    offset: float

    def __call__(self, x: Any) -> Floats:
        x = np.asarray(x, dtype=float)
        bends = np.maximum(x[..., None] - self.knots, 0.0) @ self.jumps
        values: Floats = self.slope * x + self.offset + bends
        return values

    @property
    def slopes(self) -> Floats:
        """f′ on each of the pieces, from left to right: one more than there are knots."""
        slopes: Floats = self.slope + np.concatenate([[0.0], np.cumsum(self.jumps)])
        return slopes

    def second_derivative(self, low: float = -np.inf, high: float = np.inf) -> tuple[Floats, Floats]:
        """Where f″ has its deltas in the open interval (low, high), and how much each weighs."""
        inside = (self.knots > low) & (self.knots < high)
        return self.knots[inside], self.jumps[inside]

    def roughness(self, low: float = -np.inf, high: float = np.inf) -> float:
        """∫|f″| over the open interval (low, high): the total variation of f′."""
        return float(np.abs(self.second_derivative(low, high)[1]).sum())

    def variation(self, low: float, high: float) -> float:
        """∫|f′| over (low, high): the total variation of f."""
        knots, _ = self.second_derivative(low, high)
        values = self(np.concatenate([[low], knots, [high]]))
        return float(np.abs(np.diff(values)).sum())


def piecewise_linear(params: Mapping[str, Any], *, rtol: float = 1e-12) -> PiecewiseLinear:
    """f(x) = Σ w₂ᵢ relu(w₁ᵢx + b₁ᵢ) + b₂ as what it is; f″ = Σ |w₁ᵢ|w₂ᵢ δ(x − τᵢ) with τᵢ = −b₁ᵢ/w₁ᵢ.

    The paper writes w₁ᵢw₂ᵢ for the weight of a delta, which has the wrong sign for neurons that open to the left; the
    bound takes absolute values of single neurons and of their sums, and the sums need |w₁ᵢ|. Thresholds closer than
    `rtol`, relative to the larger of 1 and their size, are one knot, and their weights are added; knots where nothing
    bends are left out.

    >>> net = {"W1": [[1.0], [-1.0]], "b1": [0.0, 0.0], "W2": [1.0, 1.0], "b2": 0.0}
    >>> f = piecewise_linear(net)                                   # |x|
    >>> f.knots.tolist(), f.jumps.tolist(), f.slope
    ([0.0], [2.0], -1.0)
    """
    w1, b1, w2, b2 = univariate(params)
    bent = w1 != 0
    # Left of all knots only the neurons that open to the left are active; one without slope is a constant.
    slope = float(np.sum((w1 * w2)[w1 < 0]))
    offset = float(np.sum((b1 * w2)[w1 < 0]) + np.sum((np.maximum(b1, 0.0) * w2)[~bent]) + b2)
    order = np.argsort(-b1[bent] / w1[bent], kind="stable")
    knots, jumps = (0.0 - b1[bent] / w1[bent])[order], (np.abs(w1) * w2)[bent][order]
    if not len(knots):
        return PiecewiseLinear(knots, jumps, slope, offset)
    heads = np.flatnonzero(np.diff(knots, prepend=-np.inf) > rtol * np.maximum(1.0, np.abs(knots)))
    weights = np.add.reduceat(jumps, heads)
    kept = weights != 0
    return PiecewiseLinear(knots[heads][kept], weights[kept], slope, offset)


def univariate(params: Mapping[str, Any]) -> tuple[Floats, Floats, Floats, float]:
    """w₁, b₁, w₂ and b₂ of a net of one input and one output."""
    net: Params = one_hidden(params)
    if net["W1"].shape[1] != 1 or net["W2"].ndim != 1:
        shapes = {name: a.shape for name, a in net.items()}
        check.refuse("params", "a net of one input and one output", shapes, "f″ as deltas needs a function on a line.")
    return net["W1"][:, 0], net["b1"], net["W2"], float(net["b2"])
