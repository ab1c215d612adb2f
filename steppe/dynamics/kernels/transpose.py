"""Square blocks of a matrix turned within registers: rows of neurons become vectors with a neuron in each lane."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from steppe.dynamics.kernels.simd import BYTES, read, write


@intrinsic
def transpose(_typing, A, a, row_a, B, b, row_b):  # type: ignore[no-untyped-def]
    """B[c, r] = A[r, c] for as many rows and columns as a vector has lanes, in flat arrays from A[a] and B[b] on."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = 8 * BYTES // A.dtype.bitwidth

        def row(start: Any, stride: Any, r: int) -> Any:
            return builder.add(start, builder.mul(stride, ir.Constant(stride.type, r)))

        rows = [read(context, builder, signature.args[0], args[0], row(args[1], args[2], r)) for r in range(lanes)]
        bit = lanes // 2
        while bit:  # rows whose numbers differ in this bit alone exchange the columns that differ in it
            # In a shuffle the lanes of the second vector are counted on after those of the first.
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
