"""Activations, losses and heads for kernels, on an exp and a log that the compiler turns into vectors.

The exp and log of libm are calls, which it cannot. Activations and losses are data, so one compiled kernel serves all.
"""

import math
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from steppe import activations, losses
from steppe.kernels.simd import OPTIONS, dot, fma, fused, part


@intrinsic
def _polynomial(_typing, x, coefficients):  # type: ignore[no-untyped-def]
    """Σ coefficientₖ xᵏ by Horner's rule, written out."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        terms = [builder.extract_value(args[1], k) for k in range(coefficients.count)]
        result = terms.pop()
        while terms:
            result = fused(builder, result, args[0], terms.pop())
        return result

    return x(x, coefficients), codegen


@intrinsic
def _power_of_two(_typing, shifted):  # type: ignore[no-untyped-def]
    """2ᵏ for a whole number k given as k + 1.5·2^(mantissa bits), whose last bits are those of k."""
    whole, mantissa, bias = (ir.IntType(32), 23, 127) if shifted == types.float32 else (ir.IntType(64), 52, 1023)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        bits = builder.shl(builder.bitcast(args[0], whole), ir.Constant(whole, mantissa))
        return builder.bitcast(builder.add(bits, ir.Constant(whole, bias << mantissa)), args[0].type)

    return shifted(shifted), codegen


def softplus(h: Any) -> Any:
    """(log(1 + eʰ), its slope 1/(1 + e⁻ʰ)), to a few units in the last place."""
    e = math.exp(-abs(h))
    return max(h, 0.0) + math.log1p(e), (1 / (1 + e) if h > 0 else e / (1 + e))


@overload(softplus, jit_options=OPTIONS)
def _softplus(h):  # type: ignore[no-untyped-def]
    single = h == types.float32
    number, mantissa, lowest = (np.float32, 23, -87) if single else (np.float64, 52, -708)
    exponential, logarithm = (7, 7) if single else (13, 16)  # degrees that leave less than half a unit
    zero, one, two, least = number(0), number(1), number(2), number(lowest)
    shift, per_octave = number(1.5 * 2**mantissa), number(1 / math.log(2))
    # ln 2 in two parts: the first has few bits, so that k · high is exact.
    short = math.floor(math.log(2) * 2**12) / 2**12
    high, low = number(short), number(float(Decimal(2).ln() - Decimal(short)))
    taylor = tuple(number(1 / math.factorial(k)) for k in range(exponential + 1))
    artanh = tuple(number(2 / (2 * k + 1)) for k in range(logarithm + 1))

    def softplus(h):  # type: ignore[no-untyped-def]
        x = -abs(h)
        x = least if x < least else x  # NaN stays NaN
        shifted = fma(x, per_octave, shift)
        k = shifted - shift  # x/ln 2, rounded to a whole number by the size of the shift
        e = _polynomial(fma(-k, low, x - k * high), taylor) * _power_of_two(shifted)
        s = e / (two + e)  # log(1 + e) = 2 artanh s, s ≤ 1/3
        inverse = one / (one + e)
        return (h if h > zero else zero) + s * _polynomial(s * s, artanh), (inverse if h > zero else e * inverse)

    return softplus


class Activation(NamedTuple):
    """log(1 + eʰ) if `smooth`; else h where h > 0 and leak·h elsewhere, of which ReLU is leak 0."""

    smooth: bool
    leak: np.floating


def activation_of(activation: activations.Activation, number: type[np.floating]) -> Activation | None:
    """The kernel's form of a network's activation, or None."""
    if activation.leak is not None:
        return Activation(False, number(activation.leak))
    return Activation(True, number(0)) if activation == activations.softplus else None


@part
def evaluate(activation, h):  # type: ignore[no-untyped-def]
    """(σ(h), σ′(h)). The compiler moves the choice out of a loop over h."""
    if activation.smooth:
        return softplus(h)
    slope = type(h)(1) if h > type(h)(0) else activation.leak
    return slope * h, slope


class Loss(NamedTuple):
    """½ `parameter` (f − y)², or the logistic loss with smoothing `parameter`."""

    logistic: bool
    parameter: np.floating


def loss_of(loss: losses.Loss, number: type[np.floating]) -> Loss | None:
    """The kernel's form of a problem's loss, or None."""
    scales = {losses.mse: 2, losses.half_mse: 1}
    if loss in scales:
        return Loss(False, number(scales[loss]))
    # A loss of the user may have the same name.
    return Loss(True, number(loss.smoothing)) if loss.name == "logistic" and losses.ours(loss) else None


@part
def value(loss, f, y):  # type: ignore[no-untyped-def]
    """ℓ(f, y)."""
    if not loss.logistic:
        return loss.parameter * (f - y) * (f - y) / type(f)(2)
    p = loss.parameter
    return (type(f)(1) - p) * softplus(-y * f)[0] + p * softplus(y * f)[0]


@part
def slope(loss, f, y):  # type: ignore[no-untyped-def]
    """∂ℓ/∂f."""
    if not loss.logistic:
        return loss.parameter * (f - y)
    p = loss.parameter
    return y * (p * softplus(y * f)[1] - (type(f)(1) - p) * softplus(-y * f)[1])


class Head(NamedTuple):
    """The output of a two-layer net: f = v · a with a = σ(h), or f = v · a/max(‖a‖, ε) if `eps` is not 0.

    h = W₁x + b₁ is the first layer, v = W₂.
    """

    activation: Activation
    eps: np.floating


@part
def differentiate(head, h, v, shift, c, width, delta, out, room):  # type: ignore[no-untyped-def]
    """f and its derivatives at the point h + shift·delta, v + c·out: delta ← ∂f/∂h, out ← ∂f/∂v.

    If delta and out hold the derivatives at (h, v), that is the ascended point of SAM; shift = c = 0 gives (h, v).
    Returns f, ‖delta‖², ‖out‖² over the first `width` neurons. They may include padding only if σ(0) = 0. `room` is
    overwritten.
    """
    zero, one = h.dtype.type(0), h.dtype.type(1)
    for j in range(width):
        raised = v[j] + c * out[j]
        a, s = evaluate(head.activation, h[j] + shift * delta[j])
        delta[j], out[j], room[j] = s, a, raised
    square, scale, long, overflow = dot(out, out, width), one, False, zero
    if head.eps > zero:
        overflow = square - square  # NaN if ‖a‖² overflows, which is divergence and not f = 0
        long = square > head.eps * head.eps
        scale = one / (np.sqrt(square) if long else head.eps)
        square = one if long else square * scale * scale
        for j in range(width):
            out[j] *= scale
    f = dot(room, out, width) + overflow
    along = f if long else zero  # the part along a, which changes ‖a‖; below ε the scale is constant
    for j in range(width):
        delta[j] *= scale * (room[j] - along * out[j])
    return f, dot(delta, delta, width), square


@part
def perturbation(slope, squared_norm, rho):  # type: ignore[no-untyped-def]
    """c = ±ρ/‖∇f‖, with the sign that raises the loss; 0 for a fitted example, which has no direction."""
    zero = rho - rho
    if slope == zero or squared_norm == zero:  # noqa: PLR1714 (compiled)
        return zero
    c = rho / np.sqrt(squared_norm)
    return c if slope > zero else -c
