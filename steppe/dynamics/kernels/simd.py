"""Vectors of 64 bytes inside compiled code: what keeps a tile of a product in registers.

Elementwise loops need none of this, the compiler makes vectors of them by itself. Sums do: it may not reorder them,
and the accumulators of a product must stay in registers over the inner loop. `fma` rounds once, in every context, so
that the same sum is rounded in the same way whichever loop it stands in.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
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
    """How many of the array's numbers a vector has. The compiler knows it, where itemsize is read at run time."""

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
    """array[index] of a flat array, without looking whether the index is negative."""

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
