"""Vector instructions for numba: loads, fused products, sums, transposes."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

BYTES = 64


class Vector(types.Type):
    """`BYTES` bytes of one floating type."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        super().__init__(f"Vector({dtype})")


def _llvm(dtype: Any) -> Any:
    number = ir.FloatType() if dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(number, 8 * BYTES // dtype.bitwidth)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Vector):
        models.PrimitiveModel.__init__(self, dmm, fe_type, _llvm(fe_type.dtype))


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _full(builder: Any, x: Any, vector: Any) -> Any:
    """The number x in every lane."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None))


@intrinsic
def lanes_of(_typing, array):  # type: ignore[no-untyped-def]
    """How many of the array's numbers fit a vector. The compiler knows it; `itemsize` is read at run time."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return context.get_constant(types.intp, 8 * BYTES // array.dtype.bitwidth)

    return types.intp(array), codegen


@intrinsic
def zeros(_typing, array):  # type: ignore[no-untyped-def]
    """A vector of zeros, of the array's type."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return ir.Constant(_llvm(array.dtype), None)

    return Vector(array.dtype)(array), codegen


@intrinsic
def at(_typing, array, index):  # type: ignore[no-untyped-def]
    """array[index] of a flat array, without the check for a negative index."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load(_pointer(context, builder, signature.args[0], *args))

    return array.dtype(array, types.intp), codegen


def read(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """The vector that begins at array[index], in LLVM's own form; `kind` is the array's type."""
    start = builder.bitcast(_pointer(context, builder, kind, array, index), _llvm(kind.dtype).as_pointer())
    vector = builder.load(start)
    vector.align = kind.dtype.bitwidth // 8
    return vector


def write(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> None:
    """array[index : index + lanes] = vector, in LLVM's own form."""
    start = builder.bitcast(_pointer(context, builder, kind, array, index), vector.type.as_pointer())
    builder.store(vector, start).align = kind.dtype.bitwidth // 8


@intrinsic
def load(_typing, array, index):  # type: ignore[no-untyped-def]
    """The vector that begins at array[index] of a flat array."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return read(context, builder, signature.args[0], *args)

    return Vector(array.dtype)(array, types.intp), codegen


@intrinsic
def store(_typing, array, index, vector):  # type: ignore[no-untyped-def]
    """array[index : index + lanes] = vector."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        write(context, builder, signature.args[0], *args)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


@intrinsic
def fma(_typing, x, y, z):  # type: ignore[no-untyped-def]
    """x·y + z, rounded once: three numbers, or three vectors, of which x may be one number for all lanes."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        spread = isinstance(z, Vector) and not isinstance(x, Vector)
        return fused(builder, _full(builder, args[0], args[2].type) if spread else args[0], *args[1:])

    return z(x if isinstance(x, Vector) or not isinstance(z, Vector) else z.dtype, y, z), codegen


def fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """x·y + z in LLVM's own form."""
    number = z.type.element if isinstance(z.type, ir.VectorType) else z.type
    bits = 32 if isinstance(number, ir.FloatType) else 64
    name = f"llvm.fma.v{z.type.count}f{bits}" if isinstance(z.type, ir.VectorType) else f"llvm.fma.f{bits}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(z.type, [z.type] * 3), name)
    return builder.call(function, [x, y, z])


@intrinsic
def add(_typing, x, y):  # type: ignore[no-untyped-def]
    """x + y, two vectors."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fadd(*args)

    return x(x, y), codegen


@intrinsic
def subtract(_typing, x, y):  # type: ignore[no-untyped-def]
    """x − y, two vectors."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fsub(*args)

    return x(x, y), codegen


@intrinsic
def multiply(_typing, x, y):  # type: ignore[no-untyped-def]
    """x·y, two vectors, or a number x for all lanes."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fmul(args[0] if isinstance(x, Vector) else _full(builder, args[0], args[1].type), args[1])

    return y(x if isinstance(x, Vector) else y.dtype, y), codegen


@intrinsic
def negative(_typing, x):  # type: ignore[no-untyped-def]
    """−x, a vector."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fneg(args[0])

    return x(x), codegen


@intrinsic
def slopes(_typing, h, leak):  # type: ignore[no-untyped-def]
    """1 in the lanes where h > 0, and the number `leak` in the others."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = args[0].type
        one = ir.Constant(kind, [1.0] * kind.count)
        positive = builder.fcmp_ordered(">", args[0], ir.Constant(kind, None))
        return builder.select(positive, one, _full(builder, args[1], kind))

    return h(h, h.dtype), codegen


@intrinsic
def total(_typing, vector):  # type: ignore[no-untyped-def]
    """The sum of the lanes, by halves."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        rest, lanes = args[0], args[0].type.count
        while lanes > 1:
            lanes //= 2
            low, high = (
                ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes)))
                for start in (0, lanes)
            )
            rest = builder.fadd(builder.shuffle_vector(rest, rest, low), builder.shuffle_vector(rest, rest, high))
        return builder.extract_element(rest, ir.Constant(ir.IntType(32), 0))

    return vector.dtype(vector), codegen


# Kernels are compiled without the interpreter's lock and kept on disk. No fastmath: sums are added as written.
OPTIONS: dict[str, Any] = {"error_model": "numpy"}

# For a function that only compiled code calls: it is not kept on disk by itself, and has no wrapper for Python. For a
# tuple of arrays the wrapper would be more code than the function.
part = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)

_SOURCES = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """A compiled function, kept on disk for as long as no file of this folder changes.

    Numba alone checks the function's own file, and would keep old code of the functions that it calls.
    """
    compiled = numba.njit(nogil=True, cache=True, no_cfunc_wrapper=True, **OPTIONS)(function)
    compiled._cache._cache_file._version += _SOURCES
    return compiled


@part
def dot(a, b, size):  # type: ignore[no-untyped-def]
    """Σ aₖbₖ over the first `size` numbers, always in the same order: four vectors of sums, single ones, numbers."""
    lanes = lanes_of(a)
    whole = size // lanes * lanes
    first = whole // (4 * lanes) * (4 * lanes)
    s0, s1, s2, s3 = zeros(a), zeros(a), zeros(a), zeros(a)
    for k in range(0, first, 4 * lanes):
        s0, s1 = fma(load(a, k), load(b, k), s0), fma(load(a, k + lanes), load(b, k + lanes), s1)
        k2, k3 = k + 2 * lanes, k + 3 * lanes
        s2, s3 = fma(load(a, k2), load(b, k2), s2), fma(load(a, k3), load(b, k3), s3)
    for k in range(first, whole, lanes):
        s0 = fma(load(a, k), load(b, k), s0)
    result = total(add(add(s0, s1), add(s2, s3)))
    for k in range(whole, size):
        result += a[k] * b[k]
    return result


@intrinsic
def transpose(_typing, A, a, row_a, B, b, row_b):  # type: ignore[no-untyped-def]
    """B[c, r] = A[r, c] for a square block, one row a lane, in registers; the flat arrays start at A[a] and B[b]."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = 8 * BYTES // A.dtype.bitwidth

        def row(start: Any, stride: Any, r: int) -> Any:
            return builder.add(start, builder.mul(stride, ir.Constant(stride.type, r)))

        rows = [read(context, builder, signature.args[0], args[0], row(args[1], args[2], r)) for r in range(lanes)]
        bit = lanes // 2
        while bit:  # rows whose numbers differ in this bit alone exchange the columns that differ in it
            # A shuffle numbers the lanes of the second vector after those of the first.
            low = [c - bit + lanes if c & bit else c for c in range(lanes)]
            high = [c + lanes if c & bit else c + bit for c in range(lanes)]
            kept, given = (ir.Constant(ir.VectorType(ir.IntType(32), lanes), mask) for mask in (low, high))
            for r in range(lanes):
                if not r & bit:
                    x, y = rows[r], rows[r + bit]
                    rows[r], rows[r + bit] = builder.shuffle_vector(x, y, kept), builder.shuffle_vector(x, y, given)
            bit //= 2
        for r in range(lanes):
            write(context, builder, signature.args[3], args[3], row(args[4], args[5], r), rows[r])
        return context.get_dummy_value()

    return types.void(A, types.intp, types.intp, B, types.intp, types.intp), codegen
