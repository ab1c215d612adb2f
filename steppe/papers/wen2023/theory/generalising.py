"""Explicit flattest networks of wen2023 that generalise."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.training_set import Floats, Params, distinct, examples

# Labels that depend on a few coordinates: one neuron for each value of these (Propositions 4.2 and A.1).


def xor(d: int, *, depth: int = 2) -> Params:
    """W₁ = r(±1, ±1, 0, …), b₁ = −r, W₂ = ±1/r with r = (d + 1)^¼ for depth 2 (Proposition 4.2, Eq. 5 corrected).

    It is right on all of {−1, 1}^d, and flattest for every training set in it: tr ∇²L = 4√(d + 1). Eq. 5 prints
    r = (d² + 1)^¼. The same construction is flattest in any depth.

    >>> params = xor(15)                                            # r = 2
    >>> params["W1"][:, :2].round(12).tolist(), params["W2"].round(12).tolist()
    ([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]], [0.5, -0.5, -0.5, 0.5])
    """
    return parity(d, (0, 1), depth=depth)


def parity(d: int, coordinates: Sequence[int], *, depth: int = 2) -> Params:
    """The flattest net with f(x) = Π x_i over k `coordinates` on all of {−1, 1}^d: 2^k neurons (Proposition A.1)."""
    support, labels = parity_table(len(coordinates))
    return junta(support, labels, d, np.sqrt(d), coordinates=coordinates, depth=depth)


def junta(
    support: Any, labels: Any, d: int, radius: float, *, coordinates: Sequence[int] | None = None, depth: int = 2
) -> Params:
    """The flattest net with f(x) = labels[j] wherever x[coordinates] = support[j], for inputs of norm `radius`.

    `support` (k, s) lists every value of the s coordinates (default: the first s) and must be a set of extreme
    points. W₁ⱼ = r wⱼ/ε, b₁ⱼ = r(ε − wⱼ·vⱼ)/ε, W₂ⱼ = yⱼ/r, r² = |yⱼ|√(R² + 1) in depth 2 (Proposition A.1; its
    Eq. 16 prints vⱼ for wⱼ and R² + 1 for its root). It interpolates and is flattest for every training set.

    >>> junta([[0.0], [1.0]], [0.0, 3.0], 2, 1.0)["W2"].round(6).tolist()      # √(3/√2)
    [0.0, 1.456475]
    """
    from steppe.flattening import separating

    points, y = distinct(support, labels)
    chosen, norm = _columns(points, d, radius, coordinates)
    params = separating.deep(separating.separate(points), norm, y, depth)
    return params | {"W1": _spread(params["W1"], chosen, d)}


def parity_table(k: int) -> tuple[Floats, Floats]:
    """{−1, 1}^k and the product of each row, starting at (1, …, 1)."""
    if not 1 <= k <= 14:
        remedy = "Each of the 2^k values needs a neuron: take fewer coordinates."
        check.refuse("coordinates", "1 to 14 of them", k, remedy)
    table = np.array(list(itertools.product((1.0, -1.0), repeat=k)))
    return table, table.prod(axis=1)


def _spread(W: Floats, chosen: list[int], d: int) -> Floats:
    """W (k, s) as k rows of R^d: its s columns at the `chosen` coordinates, 0 elsewhere."""
    full = np.zeros((len(W), d))
    full[:, chosen] = W
    return full


def _columns(points: Floats, d: int, radius: float, coordinates: Sequence[int] | None) -> tuple[list[int], Floats]:
    """The label's coordinates among d, and ‖x′‖ = √(R² + 1) for each point of the support."""
    s = points.shape[1]
    d = check.integer("d", d, minimum=s, remedy="The inputs contain the label's coordinates.")
    largest = float(np.linalg.norm(points, axis=1).max())
    # √d and the norm of a corner may differ in the last bit.
    radius = check.number("radius", radius, minimum=largest * (1 - 1e-12), remedy="‖x‖ is no less than its part.")
    named = range(s) if coordinates is None else coordinates
    chosen = [check.integer("coordinates", i, minimum=0) for i in named]
    if len(chosen) != s or len(set(chosen)) != s or max(chosen) >= d:
        rule = f"{s} different numbers from 0 to {d - 1}"
        check.refuse("coordinates", rule, coordinates, "Name the columns of x that the support describes.")
    return chosen, np.full(len(points), np.sqrt(radius**2 + 1))


# A Lipschitz label on the unit circle: a flattest minimiser of width 3n learns it (Proposition A.2, corrected).


@dataclass(frozen=True)
class Arcs:
    """Sorted angles (n,), their labels, the arcs (n,) from each angle to the next, ‖x′‖ and d."""

    angles: Floats
    labels: Floats
    arcs: Floats
    norm: float
    d: int


def arcs(x: Any, y: Any) -> Arcs:
    """The training set of Proposition A.2: x[:2] on the unit circle, one norm ‖x‖ = R, the label a function of x[:2].

    >>> arcs([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).arcs.round(6).tolist()       # π/2 and 3π/2
    [1.570796, 4.712389]
    """
    points, labels = examples(x, y)
    if points.shape[1] < 2:
        check.refuse("x", "of two coordinates or more", points.shape, "The first two lie on the unit circle.")
    norms = np.linalg.norm(points, axis=1)
    off = np.abs(np.linalg.norm(points[:, :2], axis=1) - 1)
    if off.max() > 1e-12:
        i = int(np.argmax(off))
        check.refuse("x", "on the unit circle in its first two coordinates", points[i, :2].tolist(), f"Fix row {i}.")
    if np.ptp(norms) > 1e-12 * norms[0]:
        check.refuse("x", "of one norm", f"{norms.min():g} to {norms.max():g}", "Proposition A.2 needs ‖x‖ = R.")
    v, labels = distinct(points[:, :2], labels)
    angles = np.arctan2(v[:, 1], v[:, 0])
    order = np.argsort(angles)
    angles = angles[order]
    between = np.diff(angles, append=angles[0] + 2 * np.pi)
    return Arcs(angles, labels[order], between, float(np.sqrt(norms[0] ** 2 + 1)), points.shape[1])


def unit(angles: Floats) -> Floats:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def circle(x: Any, y: Any, *, ramp: float | None = None) -> Params:
    """A needle at each training point and, on each arc between two of them, a plateau at the mean of their labels.

    A needle is the memorising neuron, active within τ of its point. A plateau is the difference of two neurons with
    one weight vector; it is silent at every training point, so it adds nothing to the trace. The net interpolates, and
    tr ∇²L = (4/n) Σ ‖x′ᵢ‖|yᵢ|. For an L-Lipschitz label its mean square error over the circle is at most
    (Lδ/2)² + (2/π) Σⱼ τⱼ max y², δ the longest arc, τⱼ = min(arcⱼ/8, ramp) in radians. The default ramp = δ²/4n makes
    this (L²/4 + max y²/2π) δ². Outputs have a relative rounding error of about 1e-16/τ².

    Eq. 17 as printed does not interpolate (`printed.circle`). With its bias corrected its n neurons keep an error of
    order y² or more (`printed.circle_arcs`): one neuron for each arc, 0 at both ends, cannot follow the label.

    >>> circle([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])["W1"].shape
    (6, 2)
    """
    data = arcs(x, y)
    longest = float(data.arcs.max())
    ramp = longest**2 / (4 * len(data.arcs)) if ramp is None else check.number("ramp", ramp, above=0.0)
    tau = np.minimum(data.arcs / 8, ramp)
    needles = _needles(data.angles, np.minimum(tau, np.roll(tau, 1)), data.labels, data.norm)
    plateaus = _plateaus(data.angles + data.arcs / 2, data.arcs / 2, tau, (data.labels + np.roll(data.labels, -1)) / 2)
    joined = {name: np.concatenate([needles[name], plateaus[name]]) for name in needles}
    return joined | {"W1": _spread(joined["W1"], [0, 1], data.d)}


def _needles(angles: Floats, tau: Floats, y: Floats, norm: float) -> Params:
    from steppe.flattening import separating

    # 2(1 − cos τ) without cancellation: first_layer lets a neuron fall to 0 at half of its gap, which is at τ.
    gaps = 4 * np.sin(tau / 2) ** 2
    separation = separating.Separation(unit(angles), np.ones(len(y)), gaps)
    return separating.deep(separation, np.full(len(y), norm), y, 2)


def _plateaus(centres: Floats, half: Floats, tau: Floats, value: Floats) -> Params:
    """value · (relu(w·v − cos(h − τ)) − relu(w·v − cos(h − 2τ))) / (cos(h − 2τ) − cos(h − τ))."""
    rise = 2 * np.sin(half - 1.5 * tau) * np.sin(tau / 2)
    outgoing = np.sqrt(np.abs(value) / rise)
    # The outgoing weight of a plateau at 0 is 0; its incoming one is then free.
    slope = np.where(outgoing > 0, outgoing, 1.0)
    w = slope[:, None] * unit(centres)
    sign = np.sign(value) * outgoing
    return {
        "W1": np.concatenate([w, w]),
        "b1": np.concatenate([-slope * np.cos(half - tau), -slope * np.cos(half - 2 * tau)]),
        "W2": np.concatenate([sign, -sign]),
    }


# Nets of the other architectures that compute xor: without bias, and with simplified batch and layer normalisation.


def no_bias_xor(d: int, *, epsilon: float = 0.5, scale: float = 1.0) -> Params:
    """Four rows s(±(1 + ε), ±(1 − ε), 0, …), W₂ = ±1/(s(2 − 2ε)): f(x) = x₁x₂ on {−1, 1}^d, for 0 < ε < 1 (A.2.4).

    Its Σ ‖W₁ⱼ‖|W₂ⱼ| = 2√2 √(1 + ε²)/(1 − ε) does not grow with d, so P_xor meets Condition 2. `scale` is s, 1 in
    the paper. Over all of P_xor tr ∇²L = d/(s(1 − ε))² + 8s²(1 + ε²), least where the two terms are equal.

    >>> no_bias_xor(2)["W1"].tolist(), no_bias_xor(2)["W2"].tolist()
    ([[1.5, 0.5], [1.5, -0.5], [-1.5, 0.5], [-1.5, -0.5]], [1.0, -1.0, -1.0, 1.0])
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    scale = check.number("scale", scale, above=0.0)
    epsilon = check.number("epsilon", epsilon, above=0.0, remedy="At 0 inputs sit on relu's kink.")
    if epsilon >= 1:
        check.refuse("epsilon", "below 1", epsilon, "At 1 the second coordinate is lost.")
    signs = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)
    W1 = np.zeros((4, d))
    W1[:, :2] = scale * signs * (1 + epsilon, 1 - epsilon)
    return {"W1": W1, "W2": signs.prod(axis=1) / (scale * (2 - 2 * epsilon))}


def no_bias_tie(d: int) -> Params:
    """`no_bias_xor` at ε = 0: rows s(±1, ±1, 0, …), W₂ = ±1/2s, s = d^¼/2, at a kink on half of the cube.

    With relu′(0) = 0, as autodiff has it, tr ∇²L = 4√d on every training set in {−1, 1}^d: the least possible (Eq. 3).
    On the whole cube the limit of nets without kinks, `no_bias_xor` for ε → 0 at its best scale, costs √2 as much.

    >>> no_bias_tie(16)["W1"][:, :2].tolist(), no_bias_tie(16)["W2"].tolist()
    ([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], [0.5, -0.5, -0.5, 0.5])
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    scale = d**0.25 / 2
    corners, labels = parity_table(2)
    return {"W1": np.pad(scale * corners, ((0, 0), (0, d - 2))), "W2": labels / (2 * scale)}


def sim_bn_xor(d: int, *, scale: float = 1e3, width: int = 4) -> Params:
    """W₁ = s(±1, ±1, 0, …), b₁ = −s, |γ| = |W₂| = 1/√2, sign(W₂) = that of x₁x₂ (proof of Lemma A.1, signs corrected).

    γ has one entry for each neuron, as in the proofs; the definition in section 2 prints a scalar. On a complete
    training set {−1, 1}² × S the net interpolates, and tr ∇²L = 8 + 2V/s² at width 4, V = E‖σ − E σ‖² for σ uniform
    on S: it approaches the infimum 8 as the scale s grows (Theorem 3.2, Lemmas A.1 and A.3). A larger width splits
    the four neurons into k copies with |γ| and |W₂| divided by √k. The paper pads with silent neurons, which batch
    normalisation would divide 0/0.

    >>> params = sim_bn_xor(2, scale=1.0)
    >>> params["W1"].tolist()[1], params["b1"].tolist()[1], params["W2"].round(6).tolist()[1]
    ([1.0, -1.0], -1.0, -0.707107)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    width = check.integer("width", width, minimum=4, remedy="Each corner (±1, ±1) needs a neuron.")
    scale = check.number("scale", scale, above=0.0)
    corner = np.arange(width) % 4
    signs = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)[corner]
    share = np.sqrt(0.5 / np.bincount(corner)[corner])
    W1 = np.zeros((width, d))
    W1[:, :2] = scale * signs
    return {"W1": W1, "b1": np.full(width, -scale), "gamma": share, "W2": signs.prod(axis=1) * share}


def sim_ln_xor(d: int, eps: float) -> Params:
    """W₁ = 2ε(±1, ±1, 0, …), b₁ = −2ε, W₂ = ±1 for ε < 2√(d + 1): tr ∇²L = 2 on every training set (Proposition 5.2,
    Eq. 18).

    >>> sim_ln_xor(3, 0.5)["W1"].round(12).tolist()[0]
    [1.0, 1.0, 0.0]
    """
    support, labels = parity_table(2)
    return sim_ln_junta(support, labels, d, np.sqrt(d), eps)


def sim_ln_junta(
    support: Any, labels: Any, d: int, radius: float, eps: float, *, coordinates: Sequence[int] | None = None
) -> Params:
    """`junta` for 2-MLP-Sim-LN(ε): the flattest net with f(x) = labels[j] wherever x[coordinates] = support[j]."""
    from steppe.flattening import separating

    points, y = distinct(support, labels)
    chosen, norm = _columns(points, d, radius, coordinates)
    params = separating.sim_ln(separating.separate(points), norm, y, eps)
    return params | {"W1": _spread(params["W1"], chosen, d)}
