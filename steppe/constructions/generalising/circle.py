"""A Lipschitz label on the unit circle, learned by a flattest minimiser of width 3n (Proposition A.2, corrected)."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions import one_hot
from steppe.constructions._examples import Floats, Params
from steppe.constructions.arcs import arcs, unit
from steppe.constructions.generalising.junta import spread
from steppe.constructions.separating import Separation


def circle(x: Any, y: Any, *, ramp: float | None = None) -> Params:
    """A needle at each training point and, on each arc between two of them, a plateau at the mean of their labels.

    A needle is the memorising neuron, active within τ of its point. A plateau is the difference of two neurons with
    one weight vector, silent at every training point, so that it adds nothing to the trace. The net interpolates,
    tr ∇²L = (4/n) Σ ‖x′ᵢ‖|yᵢ|, and for an L-Lipschitz label its mean square error over the circle is at most
    (Lδ/2)² + (2/π) Σⱼ τⱼ max y², δ the longest arc, τⱼ = min(arcⱼ/8, ramp) in radians. Unless given, ramp = δ²/4n,
    which makes it (L²/4 + max y²/2π) δ². Outputs carry a relative rounding error of about 1e-16/τ².

    Eq. 17 as printed does not interpolate, and with its bias mended its n neurons keep an error of order y² or more
    (`printed.circle`, `printed.circle_arcs`): one neuron an arc, 0 at its ends, cannot follow the label.

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
    return joined | {"W1": spread(joined["W1"], [0, 1], data.d)}


def _needles(angles: Floats, tau: Floats, y: Floats, norm: float) -> Params:
    # 1 − cos τ without cancellation; the gap is the half-way mark of first_layer's default fraction.
    gaps = 4 * np.sin(tau / 2) ** 2
    separation = Separation(unit(angles), np.ones(len(y)), gaps)
    return one_hot.deep(separation, np.full(len(y), norm), y, 2)


def _plateaus(centres: Floats, half: Floats, tau: Floats, value: Floats) -> Params:
    """value · (relu(w·v − cos(h − τ)) − relu(w·v − cos(h − 2τ))) / (cos(h − 2τ) − cos(h − τ))."""
    rise = 2 * np.sin(half - 1.5 * tau) * np.sin(tau / 2)
    outgoing = np.sqrt(np.abs(value) / rise)
    # A plateau at 0 is left out by its outgoing weight; its incoming one is then free.
    slope = np.where(outgoing > 0, outgoing, 1.0)
    w = slope[:, None] * unit(centres)
    sign = np.sign(value) * outgoing
    return {
        "W1": np.concatenate([w, w]),
        "b1": np.concatenate([-slope * np.cos(half - tau), -slope * np.cos(half - 2 * tau)]),
        "W2": np.concatenate([sign, -sign]),
    }
