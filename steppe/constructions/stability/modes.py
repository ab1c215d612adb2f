"""Minima where the loss has no second derivative: neurons whose kink sits on a training point, and their modes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.constructions._examples import Floats, Params, inputs
from steppe.constructions.flattest.one_hidden import one_hidden

Masks = NDArray[np.bool_]


@dataclass(frozen=True)
class Range:
    """A number that is known exactly (lower == upper), or between two."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Modes:
    """The smooth pieces of the loss that meet at a minimum of a one-hidden-layer net with one output.

    A mode decides for each kink (example, neuron) of `kinks` whether the neuron is active there; everywhere else
    `active` does. All 2^kinks of them fit, and at the minimum all have the same value and gradient 0 (S54 to S57).
    """

    net: Params
    x: Floats
    active: Masks
    kinks: NDArray[np.int64]

    @property
    def count(self) -> int:
        return 2 ** len(self.kinks)

    @property
    def crowd(self) -> int:
        """p_max: the most kinks on one training point."""
        return int(np.bincount(self.kinks[:, 0], minlength=1).max()) if len(self.kinks) else 0

    def pattern(self, choice: Any) -> Masks:
        """Who is active on which example in the mode where `choice[k]` tells of kink k."""
        active = self.active.copy()
        active[self.kinks[:, 0], self.kinks[:, 1]] = choice
        return active

    def tangents(self, active: Masks) -> Floats:
        """Φᵀ (n, parameters): a row x′ⱼ w₂ ⊙ I, relu(hⱼ) ⊙ I, 1 for each example (S76)."""
        h = self.x @ self.net["W1"].T + self.net["b1"]
        slopes = active * self.net["W2"]
        extended = np.column_stack([self.x, np.ones(len(self.x))])
        inner = (slopes[:, :, None] * extended[:, None, :]).reshape(len(self.x), -1)
        return np.column_stack([inner, h * active, np.ones(len(self.x))])

    def sharpness(self, active: Masks) -> float:
        """λ_max(H_m) of the mode, H_m = Φ_m Φ_mᵀ/n (S59)."""
        rows = self.tangents(active)
        return float(np.linalg.eigvalsh(rows @ rows.T)[-1] / len(self.x))

    def __iter__(self) -> Iterator[Masks]:
        for number in range(self.count):
            yield self.pattern([(number >> k) & 1 for k in range(len(self.kinks))])

    def largest_entry(self) -> float:
        """C: no entry of ∇φ(xⱼ; θ*, m) is larger, in any mode and for any example (Lemma 5)."""
        return float(np.abs(self.tangents(self.pattern(True))).max())


def modes(params: Mapping[str, Any], x: Any, *, rtol: float = 1e-9) -> Modes:
    """The modes at a minimum; a kink is a |w₁·xⱼ + b₁| of at most `rtol` times the size of its terms.

    >>> m = modes({"W1": [[1.0]], "b1": [0.0], "W2": [2.0], "b2": 0.0}, [[0.0], [1.0]])
    >>> m.count, m.crowd, m.kinks.tolist()                          # the neuron opens at x = 0
    (2, 1, [[0, 0]])
    >>> [round(m.sharpness(active), 6) for active in m]
    [5.054886, 6.545085]
    """
    net, points = one_hidden(params), inputs(x)
    if net["W2"].ndim != 1:
        check.refuse("params", "a net of one output", net["W2"].shape, "Take one output at a time.")
    rtol = check.number("rtol", rtol, minimum=0.0)
    h = points @ net["W1"].T + net["b1"]
    size = np.abs(points) @ np.abs(net["W1"]).T + np.abs(net["b1"])
    # A neuron with w₂ = 0, or without a first layer, has no kink that anyone notices.
    felt = (net["W2"] != 0) & ((net["W1"] != 0).any(axis=1) | (net["b1"] != 0))
    kinked = (np.abs(h) <= rtol * size) & felt
    return Modes(net, points, h > 0, np.argwhere(kinked))


def upper_sharpness(found: Modes, *, cap: int = 4096) -> Range:
    """λ_max^upper = max over the modes of λ_max(H_m): exact up to `cap` modes, between bounds for more.

    The lower bound is a mode that no single toggle improves. The upper one adds to it the most that toggling can add:
    √λ(m) ≤ √λ(m₀) + ‖Φ_m − Φ_m₀‖/√n, the sharp form of Lemma 5.
    """
    if found.count <= check.integer("cap", cap, minimum=1):
        top = max(found.sharpness(active) for active in found)
        return Range(top, top)
    best = _toggling(found, 1.0)
    return Range(best, (np.sqrt(best) + np.sqrt(_toggled(found) / len(found.x))) ** 2)


def lower_sharpness(found: Modes, *, cap: int = 4096) -> Range:
    """The least λ_max(H_m) of all modes, in the same way: `upper` is that of a mode that exists."""
    if found.count <= check.integer("cap", cap, minimum=1):
        least = min(found.sharpness(active) for active in found)
        return Range(least, least)
    best = _toggling(found, -1.0)
    return Range(max(0.0, np.sqrt(best) - np.sqrt(_toggled(found) / len(found.x))) ** 2, best)


def _toggling(found: Modes, sign: float) -> float:
    """The largest, or with sign −1 the least, sharpness that single toggles lead to from the mode of all active."""
    choice = np.ones(len(found.kinks), dtype=bool)
    best = sign * found.sharpness(found.pattern(choice))
    improved = True
    while improved:
        improved = False
        for k in range(len(choice)):
            choice[k] = not choice[k]
            trial = sign * found.sharpness(found.pattern(choice))
            if trial > best:
                best, improved = trial, True
            else:
                choice[k] = not choice[k]
    return sign * best


def _toggled(found: Modes) -> float:
    """‖Φ_m − Φ_m̃‖² at most: Σ w₂ᵢ² ‖x′ⱼ‖² over the kinks of an example, the largest of them.

    Where a neuron has kinks on two examples, columns overlap and the sum over all of them is taken.
    """
    examples, neurons = found.kinks.T
    parts = found.net["W2"][neurons] ** 2 * (1 + np.sum(found.x[examples] ** 2, axis=1))
    if len(np.unique(neurons)) < len(neurons):
        return float(parts.sum())
    return float(np.bincount(examples, weights=parts).max())
