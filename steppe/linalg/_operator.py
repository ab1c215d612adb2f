"""A symmetric operator known by its products with vectors, and the checked arguments that all solvers share."""

from collections.abc import Callable

import numpy as np

from steppe import check

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Matvec = Callable[[np.ndarray], np.ndarray]

# A length-n sum in precision u, added in blocks as BLAS and XLA do, is off by λ √log₂n · u of its terms except
# with probability 2 exp(−λ²/2) (Higham and Mary 2019, Theorem 3.1). λ = 4, n = 2⁶⁴: 32 u, that is 16 ulp.
ROUNDING = 16.0

# The rounding of a float32 product leaves at least half of its digits; a larger difference is not rounding.
ASYMMETRY = float(np.sqrt(np.finfo(np.float32).eps))


def in_precision(matvec: Matvec, dtype: type[np.floating]) -> Matvec:
    """The product carried out in `dtype`: for a compiled float32 function that refuses a float64 vector.

    >>> in_precision(lambda v: v / 3, np.float32)(np.ones(1)).dtype
    dtype('float32')
    """
    return lambda v: np.asarray(matvec(np.asarray(v, dtype=dtype)), dtype=dtype)


class Operator:
    """v ↦ Av in float64 on the host, counted and checked.

    The function receives a read-only float64 vector, and its product is copied to float64: a jitted float32 function
    can be passed as it is. `precision` bounds the error of a product, ‖computed − Av‖ ≤ precision ‖A‖‖v‖; by default
    it is 16 ulp of the dtype that the function returns.

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
        product = np.asarray(self._matvec(sent))
        self.matvecs += 1
        if product.shape != (self.p,):
            rule = f"a function that maps shape ({self.p},) to shape ({self.p},)"
            check.refuse("matvec", rule, product.shape, "Flatten its result, or correct p.")
        if not np.issubdtype(product.dtype, np.floating) and not np.issubdtype(product.dtype, np.integer):
            check.refuse("matvec", "a function that returns real numbers", product.dtype, "Cast its result.")
        if not self._stated and product.dtype.itemsize < 8 and np.issubdtype(product.dtype, np.floating):
            self.precision = ROUNDING * float(np.finfo(product.dtype).eps)
            self._stated = True
        # A copy: lambda v: v returns a row of the basis, which must not be overwritten.
        result: Vector = np.array(product, dtype=np.float64)
        check.finite("matvec", result, "Check that the parameters and the loss are finite.")
        self.scale = max(self.scale, length(result) / (length(v) or 1.0))
        return result

    def asymmetric(self, gap: float) -> None:
        """Refuses the operator if ⟨u, Av⟩ − ⟨Au, v⟩ = gap for unit u and v is larger than any rounding."""
        if gap > ASYMMETRY * self.scale:
            rule = "symmetric, ⟨u, Av⟩ = ⟨Au, v⟩"
            got = f"a difference of {gap:.3g} at ‖A‖ ≈ {self.scale:.3g}"
            check.refuse("matvec", rule, got, "Pass v ↦ (Av + Aᵀv)/2, or remove the randomness from the product.")


def dimension(p: int) -> int:
    return check.integer("p", p, minimum=1, remedy="Pass the number of rows of the operator.")


def count(argument: str, value: int, p: int) -> int:
    """1 ≤ value ≤ p, such as a number of eigenpairs."""
    value = check.integer(argument, value, minimum=1)
    if value > p:
        check.refuse(argument, f"at most p = {p}", value, "A p × p operator has only p of them.")
    return value


def vector(argument: str, value: np.ndarray, p: int) -> Vector:
    """A finite, non-zero float64 vector of length p; a copy."""
    result = np.array(value, dtype=np.float64)
    if result.shape != (p,):
        check.refuse(argument, f"a vector of shape ({p},)", result.shape, "Flatten it, or correct p.")
    check.finite(argument, result)
    if not result.any():
        check.refuse(argument, "non-zero", "only zeros", "Leave it out for a random start.")
    return result


def generator(key: int | np.random.Generator) -> np.random.Generator:
    """An integer seed or a generator, as a generator.

    >>> generator(3).integers(100) == generator(3).integers(100)
    np.True_
    """
    if isinstance(key, np.random.Generator):
        return key
    remedy = "Pass an integer seed or a numpy Generator."
    return np.random.default_rng(check.integer("key", key, minimum=0, remedy=remedy))


def length(x: np.ndarray) -> float:
    """‖x‖ without underflow or overflow of the squares.

    >>> length(np.array([3e-200, 4e-200]))
    5e-200
    """
    plain = float(np.linalg.norm(x))
    if 1e-140 < plain < 1e140:
        return plain
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.linalg.norm(x / largest)) if largest > 0.0 else 0.0


def project(x: Vector, rows: Matrix) -> Vector:
    """x minus its components along orthonormal rows; twice, because one pass leaves rounding along the rows.

    >>> project(np.array([3.0, 4.0]), np.array([[1.0, 0.0]])).tolist()
    [0.0, 4.0]
    """
    for _ in range(2):
        x = x - (rows @ x) @ rows
    return x


def outside(x: Vector, rows: Matrix) -> Vector:
    """The unit direction of x orthogonal to the rows; zero if only rounding is left.

    >>> outside(np.array([3.0, 4.0]), np.array([[1.0, 0.0]])).tolist()
    [0.0, 1.0]
    """
    left = project(x, rows)
    size = float(np.linalg.norm(left))
    result: Vector = left / size if size > 1e-8 * float(np.linalg.norm(x)) else np.zeros_like(x)
    return result
