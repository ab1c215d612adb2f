"""The chain of inequalities of Lemma 4: from the sharpness of a net down to what its function alone decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import inputs
from steppe.constructions.flattest.one_hidden import one_hidden, rescaling
from steppe.constructions.function_space.piecewise import PiecewiseLinear, piecewise_linear, univariate
from steppe.constructions.function_space.weight import training, weight


@dataclass(frozen=True)
class Chain:
    """Each number is at least the next. The last three speak of a line, and are None for other inputs.

    sharpness: λ_max(ΦᵀΦ)/n, which is λ_max ∇²L at an interpolator;
    mean: ‖Φ1‖²/n², the direction 1/√n (S33);
    product: 1 + (2/n²) Σ |w₂ᵢ| ‖Σⱼ x′ⱼ 1[h > 0]‖ |Σⱼ relu(hᵢⱼ)|, the flattest rescaling for that direction (S33, S35);
    thresholds: the same with |w₁ᵢw₂ᵢ| and τᵢ, without neurons of w₁ = 0 (S37);
    neurons: 1 + 2 Σ |w₁ᵢw₂ᵢ| g(τᵢ) (S41);
    function: 1 + 2 ∫|f″| g (S42), where neurons that share a threshold are added before the absolute value.
    """

    sharpness: float
    mean: float
    product: float
    thresholds: float | None
    neurons: float | None
    function: float | None

    @property
    def values(self) -> tuple[float, ...]:
        links = (self.sharpness, self.mean, self.product, self.thresholds, self.neurons, self.function)
        return tuple(v for v in links if v is not None)

    @property
    def slack(self) -> float:
        """The least ratio of a link to the next; the lemma says that it is at least 1."""
        values = self.values
        return min(a / b for a, b in pairwise(values))


def chain(params: Mapping[str, Any], x: Any) -> Chain:
    """Lemma 4 link by link for a net of one output; f″ and g need inputs on a line.

    >>> net = {"W1": [[1.0]], "b1": [0.0], "W2": [1.0], "b2": 0.0}
    >>> c = chain(net, [[1.0]])                                     # ∇f = (1, 1, 1, 1); no data left of the knot
    >>> c.sharpness, round(c.product, 6), c.function
    (4.0, 3.828427, 1.0)
    """
    net, points = one_hidden(params), inputs(x)
    if net["W2"].ndim != 1:
        check.refuse("params", "a net of one output", net["W2"].shape, "Lemma 4 is about scalar functions.")
    n = len(points)
    h = points @ net["W1"].T + net["b1"]
    active, hidden = h > 0, np.maximum(h, 0.0)
    extended = np.column_stack([points, np.ones(n)])
    sums = np.linalg.norm(active.T @ extended, axis=1)  # ‖Σⱼ x′ⱼ 1[hᵢⱼ > 0]‖
    totals = hidden.sum(axis=0)
    form, attached = rescaling(net, points)
    # Neurons that no rescaling moves belong to the net all the same.
    rest = np.setdiff1d(np.arange(len(net["b1"])), attached)
    gram = form.gram(np.zeros(form.units)) + hidden[:, rest] @ hidden[:, rest].T / n
    mean = 1 + float(np.sum((net["W2"] * sums) ** 2 + totals**2)) / n**2
    product = 1 + 2 * float(np.sum(np.abs(net["W2"]) * sums * totals)) / n**2
    sharpness = float(np.linalg.eigvalsh(gram)[-1])
    if points.shape[1] != 1:
        return Chain(sharpness, mean, product, None, None, None)
    w1, b1, w2, _ = univariate(net)
    line = w1 != 0
    tau = -b1[line] / w1[line]
    away = np.abs(np.where(active[:, line], points - tau, 0.0).sum(axis=0))
    thresholds = 1 + 2 * float(np.sum(np.abs(w1 * w2)[line] * sums[line] * away)) / n**2
    neurons = 1 + 2 * float(np.sum(np.abs(w1 * w2)[line] * weight(points, tau)))
    function = least_sharpness(piecewise_linear(net), points)
    return Chain(sharpness, mean, product, thresholds, neurons, function)


def weighted_roughness(f: PiecewiseLinear, x: Any) -> float:
    """∫|f″| g."""
    return float(np.abs(f.jumps) @ weight(x, f.knots))


def least_sharpness(f: PiecewiseLinear, x: Any) -> float:
    """1 + 2 ∫|f″| g ≤ λ_max(∇²L) for every one-hidden-layer ReLU net that is f and interpolates (Lemma 4)."""
    return 1 + 2 * weighted_roughness(f, training(x))


def stability_bound(lr: float) -> float:
    """1/η − ½ ≥ ∫|f″| g for every f that gradient descent with step size η can converge to (Theorem 1).

    >>> stability_bound(0.5)
    1.5
    """
    return 1 / check.number("lr", lr, above=0.0) - 0.5
