"""What follows the first layer of a two-layer net: the output f and its derivatives in h = W₁x + b₁ and in v = W₂."""

from typing import NamedTuple

import numpy as np

from steppe.dynamics.kernels.activations import Activation, evaluate
from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.sums import dot


class Head(NamedTuple):
    """f = v · a with a = σ(h), or f = v · a/max(‖a‖, ε) where `eps` is not 0."""

    activation: Activation
    eps: np.floating


@part
def differentiate(head, h, v, shift, c, width, delta, out, room):  # type: ignore[no-untyped-def]
    """f and its derivatives at the point h + shift·delta, v + c·out: delta ← ∂f/∂h, out ← ∂f/∂v.

    That point is where SAM looks again, if delta and out are the derivatives at h, v; shift = c = 0 is h, v itself.
    Returns f, ‖delta‖², ‖out‖² over the first `width` neurons, where padding counts only if σ(0) = 0. `room` is
    overwritten.
    """
    zero, one = h.dtype.type(0), h.dtype.type(1)
    for j in range(width):
        raised = v[j] + c * out[j]
        a, s = evaluate(head.activation, h[j] + shift * delta[j])
        delta[j], out[j], room[j] = s, a, raised
    square, scale, long, overflow = dot(out, out, width), one, False, zero
    if head.eps > zero:
        overflow = square - square  # NaN where ‖a‖² is beyond all numbers: that is divergence, and not f = 0
        long = square > head.eps * head.eps
        scale = one / (np.sqrt(square) if long else head.eps)
        square = one if long else square * scale * scale
        for j in range(width):
            out[j] *= scale
    f = dot(room, out, width) + overflow
    along = f if long else zero  # what moves ‖a‖ itself; below ε nothing does
    for j in range(width):
        delta[j] *= scale * (room[j] - along * out[j])
    return f, dot(delta, delta, width), square


@part
def perturbation(slope, squared_norm, rho):  # type: ignore[no-untyped-def]
    """c = ±ρ/‖∇f‖, up the loss; a fitted example has no direction and gets no perturbation."""
    zero = rho - rho
    if slope == zero or squared_norm == zero:  # noqa: PLR1714 (compiled)
        return zero
    c = rho / np.sqrt(squared_norm)
    return c if slope > zero else -c
