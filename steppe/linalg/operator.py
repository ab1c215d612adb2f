"""A symmetric operator known only by its product with a vector."""

from collections.abc import Callable

import numpy as np

from steppe import check
from steppe.linalg.arguments import Vector, dimension
from steppe.linalg.orthogonal import length

Matvec = Callable[[np.ndarray], np.ndarray]

# A length-n sum in precision u, added in blocks as BLAS and XLA do, is off by λ √log₂n · u of its terms except
# with probability 2 exp(−λ²/2) (Higham and Mary 2019, Theorem 3.1). λ = 4, n = 2⁶⁴: 32 u, that is 16 ulp.
ROUNDING = 16.0

# What a float32 product can get wrong at most keeps half of its digits; more than that is no rounding.
ASYMMETRY = float(np.sqrt(np.finfo(np.float32).eps))


def in_precision(matvec: Matvec, dtype: type[np.floating]) -> Matvec:
    """The product carried out in `dtype`: for a compiled float32 function that refuses a float64 vector.

    >>> in_precision(lambda v: v / 3, np.float32)(np.ones(1)).dtype
    dtype('float32')
    """
    return lambda v: np.asarray(matvec(np.asarray(v, dtype=dtype)), dtype=dtype)


class Operator:
    """v ↦ Av in host float64, counted and checked.

    The vector goes out as read-only float64 and the product comes back as a float64 copy, whatever precision it
    was computed in: a jitted float32 function can be passed as it is. `precision` bounds its error,
    ‖computed − Av‖ ≤ precision ‖A‖‖v‖; left out, it is 16 ulp of the dtype that the product returns.

    >>> a = Operator(lambda v: 2 * v, 3)
    >>> a(np.ones(3)), a.matvecs
    (array([2., 2., 2.]), 1)
    """

    def __init__(self, matvec: Matvec, p: int, precision: float | None = None) -> None:
        if not callable(matvec):
            check.refuse("matvec", "a function of a vector", matvec, "Pass for instance lambda v: A @ v.")
        self._matvec = matvec
        self.p = dimension(p)
        self.matvecs = 0
        self.scale = 0.0  # max ‖Av‖/‖v‖ so far, a lower bound of ‖A‖
        # The basis is float64, so a perfect product still leaves float64 rounding in the projections.
        self.precision = ROUNDING * float(np.finfo(np.float64).eps)
        if precision is not None:
            self.precision += check.number("precision", precision, minimum=0.0)
        self._stated = precision is not None

    def __call__(self, v: Vector) -> Vector:
        sent = v.view()
        sent.flags.writeable = False
        came = np.asarray(self._matvec(sent))
        self.matvecs += 1
        if came.shape != (self.p,):
            rule = f"a function that maps shape ({self.p},) to shape ({self.p},)"
            check.refuse("matvec", rule, came.shape, "Flatten its result, or correct p.")
        if not np.issubdtype(came.dtype, np.floating) and not np.issubdtype(came.dtype, np.integer):
            check.refuse("matvec", "a function that returns real numbers", came.dtype, "Cast its result.")
        if not self._stated and came.dtype.itemsize < 8 and np.issubdtype(came.dtype, np.floating):
            self.precision = ROUNDING * float(np.finfo(came.dtype).eps)
            self._stated = True
        # A copy: lambda v: v hands back a row of the basis, which must not be written into.
        result: Vector = np.array(came, dtype=np.float64)
        check.finite("matvec", result, "Its product is not finite: are the parameters, or the loss, finite?")
        self.scale = max(self.scale, length(result) / (length(v) or 1.0))
        return result

    def asymmetric(self, gap: float) -> None:
        """Refuses the operator where ⟨u, Av⟩ − ⟨Au, v⟩ = gap is beyond any rounding of products of unit vectors."""
        if gap > ASYMMETRY * self.scale:
            rule = "symmetric, ⟨u, Av⟩ = ⟨Au, v⟩"
            got = f"a difference of {gap:.3g} at ‖A‖ ≈ {self.scale:.3g}"
            check.refuse("matvec", rule, got, "Pass v ↦ (Av + Aᵀv)/2, or look for randomness in the product.")
