"""The function that a ReLU net on a line computes: its pieces, f″, the weight g, and the chain of Lemma 4."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from steppe import check
from steppe.papers.mulayoff2021.theory._flattest import one_hidden, rescaling
from steppe.training_set import Floats, inputs


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """f with f″ = Σ jumps[k] δ(x − knots[k]); left of all knots f(x) = slope x + offset. The knots increase strictly.

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
        return self.slope * x + self.offset + bends

    @property
    def slopes(self) -> Floats:
        """f′ on each piece, from left to right: one value more than there are knots."""
        return self.slope + np.concatenate([[0.0], np.cumsum(self.jumps)])

    def second_derivative(self, low: float = -np.inf, high: float = np.inf) -> tuple[Floats, Floats]:
        """(places, weights) of the deltas of f″ in the open interval (low, high)."""
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
    """The function f(x) = Σ w₂ᵢ relu(w₁ᵢx + b₁ᵢ) + b₂ of a net: f″ = Σ |w₁ᵢ|w₂ᵢ δ(x − τᵢ) with τᵢ = −b₁ᵢ/w₁ᵢ.

    The paper prints w₁ᵢw₂ᵢ as the weight of a delta, which has the wrong sign for neurons that open to the left. The
    bound takes the absolute value of sums of neurons that share a threshold, and these sums need |w₁ᵢ|w₂ᵢ. Thresholds
    closer than `rtol`, relative to max(1, |τ|), become one knot, and their weights are added. Knots of weight 0 are
    left out.

    >>> net = {"W1": [[1.0], [-1.0]], "b1": [0.0, 0.0], "W2": [1.0, 1.0], "b2": 0.0}
    >>> f = piecewise_linear(net)                                   # |x|
    >>> f.knots.tolist(), f.jumps.tolist(), f.slope
    ([0.0], [2.0], -1.0)
    """
    w1, b1, w2, b2 = univariate(params)
    bent = w1 != 0
    # Left of all knots only neurons that open to the left are active. A neuron with w₁ = 0 adds a constant.
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
    """w₁, b₁, w₂ and b₂ of a net with one input and one output."""
    net = one_hidden(params)
    if net["W1"].shape[1] != 1 or net["W2"].ndim != 1:
        shapes = {name: a.shape for name, a in net.items()}
        check.refuse("params", "a net with one input and one output", shapes, "f″ as deltas needs a line.")
    return net["W1"][:, 0], net["b1"], net["W2"], float(net["b2"])


def weight(x: Any, at: Any) -> Floats:
    """g = min(g₊, g₋) at each number in `at`, for training inputs x ((S38) to (S40)): the weight of |f″| in the bound.

    g is large at the centre of the training points and 0 outside them.

    >>> weight([-1.0, 1.0], [0.0, 2.0]).round(6).tolist()           # ¼ · 1 · √2 at the centre
    [0.353553, 0.0]
    """
    return np.minimum(rightward(x, at), leftward(x, at))


def rightward(x: Any, at: Any) -> Floats:
    """g₊(τ) = P²(X > τ) E[X − τ | X > τ] √(1 + E[X | X > τ]²), X uniform on x; 0 where no X > τ."""
    points, at = training(x), np.asarray(at, dtype=float)
    above = points > at[..., None]
    count = above.sum(axis=-1)
    mean = np.where(above, points, 0.0).sum(axis=-1) / np.maximum(count, 1)
    distance = np.where(above, points - at[..., None], 0.0).sum(axis=-1) / np.maximum(count, 1)
    return (count / len(points)) ** 2 * distance * np.sqrt(1 + mean**2)


def leftward(x: Any, at: Any) -> Floats:
    """g₋, the same for X < τ: it is g₊ of the mirrored data."""
    return rightward(-training(x), -np.asarray(at, dtype=float))


def training(x: Any) -> Floats:
    """Training inputs on a line, of shape (n,) or (n, 1), as float64 of shape (n,)."""
    points = np.asarray(x, dtype=float)
    if points.ndim == 2 and points.shape[1] == 1:
        points = points[:, 0]
    if points.ndim != 1 or len(points) == 0:
        check.refuse("x", "one number for each example", f"shape {points.shape}", "g needs inputs on a line.")
    check.finite("x", points)
    return points


@dataclass(frozen=True)
class Chain:
    """The inequalities of Lemma 4, from the sharpness of a net down to a number that its function alone decides.

    Each number is at least the next. The last three are None unless the inputs lie on a line.

    sharpness: λ_max(ΦᵀΦ)/n, which is λ_max ∇²L at an interpolator;
    mean: ‖Φ1‖²/n², the curvature in the direction 1/√n (S33);
    product: 1 + (2/n²) Σ |w₂ᵢ| ‖Σⱼ x′ⱼ 1[h > 0]‖ |Σⱼ relu(hᵢⱼ)|, its minimum over rescalings (S33, S35);
    thresholds: the same with |w₁ᵢw₂ᵢ| and τᵢ, without neurons with w₁ = 0 (S37);
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
        """The least ratio of a link to the next. The lemma says that it is at least 1."""
        values = self.values
        return min(a / b for a, b in pairwise(values))


def chain(params: Mapping[str, Any], x: Any) -> Chain:
    """Lemma 4 link by link, for a net with one output.

    >>> net = {"W1": [[1.0]], "b1": [0.0], "W2": [1.0], "b2": 0.0}
    >>> c = chain(net, [[1.0]])                                     # ∇f = (1, 1, 1, 1); no data left of the knot
    >>> c.sharpness, round(c.product, 6), c.function
    (4.0, 3.828427, 1.0)
    """
    net, points = one_hidden(params), inputs(x)
    if net["W2"].ndim != 1:
        check.refuse("params", "a net with one output", net["W2"].shape, "Lemma 4 is about scalar functions.")
    n = len(points)
    h = points @ net["W1"].T + net["b1"]
    active, hidden = h > 0, np.maximum(h, 0.0)
    extended = np.column_stack([points, np.ones(n)])
    sums = np.linalg.norm(active.T @ extended, axis=1)  # ‖Σⱼ x′ⱼ 1[hᵢⱼ > 0]‖
    totals = hidden.sum(axis=0)
    form, attached = rescaling(net, points)
    # Detached neurons are not in `form`, but they are in the net.
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
    """1 + 2 ∫|f″| g ≤ λ_max(∇²L) for every one-hidden-layer ReLU net that computes f and interpolates (Lemma 4)."""
    return 1 + 2 * weighted_roughness(f, training(x))


def stability_bound(lr: Any) -> Any:
    """1/η − ½ ≥ ∫|f″| g for every f that gradient descent with step size η can converge to (Theorem 1).

    >>> stability_bound(0.5)
    1.5
    """
    return 1 / lr - 0.5
