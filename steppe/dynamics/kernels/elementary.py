"""log(1 + eʰ) and its slope in arithmetic that the compiler turns into vectors; libm's exp and log are calls."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic, overload

from steppe.dynamics.kernels.compiled import OPTIONS
from steppe.dynamics.kernels.simd import fma, fused


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
