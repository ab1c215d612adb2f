"""The arguments that every algorithm here shares, checked before the first product."""

import numpy as np

from steppe import check

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def dimension(p: int) -> int:
    return check.integer("p", p, minimum=1, remedy="Pass the number of rows of the operator.")


def count(argument: str, value: int, p: int) -> int:
    """1 ≤ value ≤ p, such as a number of eigenpairs."""
    value = check.integer(argument, value, minimum=1)
    if value > p:
        check.refuse(argument, f"at most p = {p}", value, "A p × p operator has only p of them.")
    return value


def probability(confidence: float) -> float:
    value = check.number("confidence", confidence, remedy="Pass for instance confidence=0.99.")
    if not 0.0 < value < 1.0:
        check.refuse("confidence", "strictly between 0 and 1", confidence, "Pass for instance 0.99.")
    return value


def tolerance(rtol: float) -> float:
    return check.number("rtol", rtol, above=0.0, remedy="Pass the relative width wanted, for instance 1e-3.")


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
