"""Checks of arguments before anything is computed: an error names the argument, the rule, what came and the remedy."""

import math
from collections.abc import Iterable
from typing import Any, NoReturn

__all__ = ["ArgumentError", "converted", "finite", "integer", "integers", "number", "numbers", "refuse", "suggest"]


def __dir__() -> list[str]:
    return list(__all__)


class ArgumentError(ValueError):
    """A wrong argument; the message names it, the rule, what came and the remedy."""


def refuse(argument: str, rule: str, got: object, remedy: str) -> NoReturn:
    raise ArgumentError(f"{argument} must be {rule}; got {got!r}. {remedy}")


def integer(argument: str, value: Any, *, minimum: int, remedy: str = "Pass a whole number in that range.") -> int:
    """A whole number ≥ minimum, of at most 128 bits; 100.0 and 1e5 are whole, True and 1.5 are not."""
    number = _real(value)
    if not math.isfinite(number) or number != int(number) or number < minimum:
        refuse(argument, f"a whole number ≥ {minimum}", value, remedy)
    if number >= 2**128:  # a key has at most 128 bits, and a loop of that many steps would not end
        refuse(argument, f"a whole number ≥ {minimum} and below 2¹²⁸", value, remedy)
    return int(value)


def number(
    argument: str, value: Any, *, minimum: float = -math.inf, above: float = -math.inf, remedy: str = ""
) -> float:
    """A finite real number, ≥ minimum and > above."""
    result = _real(value)
    if not math.isfinite(result) or result < minimum or result <= above:
        bound = f" > {above:g}" if above > -math.inf else f" ≥ {minimum:g}" if minimum > -math.inf else ""
        refuse(argument, f"a finite number{bound}", value, remedy or "Pass a number in that range.")
    return result


def numbers(
    argument: str, values: Any, *, minimum: float = -math.inf, above: float = -math.inf, rule: str, remedy: str
) -> list[float]:
    """The distinct numbers of a non-empty list, ascending, each finite, ≥ minimum and > above."""
    listed = _listed(values)
    if not listed:
        refuse(argument, rule, values, remedy)
    return sorted({number(argument, value, minimum=minimum, above=above) for value in listed})


def integers(argument: str, values: Any, *, minimum: int, remedy: str) -> tuple[int, ...]:
    """The whole numbers ≥ minimum of a list, in its order; the list may be empty."""
    listed = _listed(values)
    if listed is None:
        refuse(argument, f"a list of whole numbers ≥ {minimum}", values, remedy)
    return tuple(integer(argument, value, minimum=minimum) for value in listed)


def finite(argument: str, array: Any, remedy: str = "Remove or replace the non-finite entries first.") -> None:
    import numpy as np  # not at the top: the command line starts without numpy

    values = np.asarray(array)
    try:
        bad = int((~np.isfinite(values)).sum())
    except TypeError:  # texts and objects: `converted` refuses them
        return
    if bad:
        raise ArgumentError(f"{argument} must be finite; {bad} of {values.size} entries are NaN or infinite. {remedy}")


def converted(argument: str, values: Any, dtype: Any) -> Any:
    """The numbers as a numpy array of this dtype, if it can hold them: no overflow, no entry that becomes 0, no lost
    imaginary part, no texts or objects.

    >>> converted("x", [1, 2], "float32").tolist()
    [1.0, 2.0]
    >>> converted("x", 1e-60, "float32")
    Traceback (most recent call last):
    steppe.check.ArgumentError: x must be within the range of float32; got 1e-60. Scale it, or work in 64 bits: ...
    """
    import numpy as np

    dtype = np.dtype(dtype)
    try:
        plain = np.asarray(values)
    except (TypeError, ValueError):
        refuse(argument, "an array of numbers", type(values).__name__, "Give all its rows the same length.")
    if plain.dtype == dtype:
        return plain
    # The kind V is that of bfloat16 and its like, and of records.
    if plain.dtype.kind not in "biufV" + "c" * (dtype.kind == "c") or plain.dtype.fields is not None:
        rule = "an array of numbers" if dtype.kind == "c" else "an array of real numbers"
        refuse(argument, rule, str(plain.dtype), f"Convert it: {argument}.astype(float).")
    with np.errstate(all="ignore"):
        result = plain.astype(dtype)
        lost = np.isfinite(plain) & ~np.isfinite(result)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            lost = (plain < limits.min) | (plain > limits.max)
        elif plain.dtype.kind not in "iub" and dtype.itemsize >= 4:
            lost |= (plain != 0) & (np.abs(result) < np.finfo(dtype).tiny)  # compiled code takes these for 0, too
    if lost.any():
        remedy = 'Scale it, or work in 64 bits: jax.config.update("jax_enable_x64", True), and float64 parameters.'
        refuse(argument, f"within the range of {dtype}", plain[lost].flat[0].item(), remedy)
    return result


def suggest(name: str, known: Iterable[str]) -> str:
    """A remedy for a mistyped `name`."""
    import difflib

    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "Known: " + ", ".join(known) + "."


def _listed(values: Any) -> list[Any] | None:
    """The values as a list; None for a single number or a text."""
    try:
        return None if isinstance(values, str | bytes) else list(values)
    except TypeError:
        return None


def _real(value: Any) -> float:
    """A number of Python, numpy or JAX as a float; NaN for everything else, such as True, "3" or a list."""
    if (
        isinstance(value, bool | str | bytes)
        or getattr(value, "dtype", None) == "bool"
        or getattr(value, "shape", ()) != ()
    ):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
