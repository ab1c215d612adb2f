"""Arguments refused before anything is computed: the error names the argument, the rule, what came, the remedy."""

import difflib
import math
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np


class ArgumentError(ValueError):
    """A wrong argument; the message says which one, the rule, what came and what to do."""


def refuse(argument: str, rule: str, got: object, remedy: str) -> NoReturn:
    raise ArgumentError(f"{argument} must be {rule}; got {got!r}. {remedy}")


def integer(argument: str, value: Any, *, minimum: int, remedy: str = "Pass a whole number in that range.") -> int:
    """A whole number ≥ minimum; 100.0 and 1e5 count, True and 1.5 do not."""
    whole = not isinstance(value, bool | np.bool_) and isinstance(value, int | float | np.number)
    if not whole or not math.isfinite(value) or value != int(value) or value < minimum:
        refuse(argument, f"a whole number ≥ {minimum}", value, remedy)
    return int(value)


def number(
    argument: str, value: Any, *, minimum: float = -math.inf, above: float = -math.inf, remedy: str = ""
) -> float:
    """A finite real number, ≥ minimum and > above."""
    real = not isinstance(value, bool | str | bytes) and np.ndim(value) == 0
    try:
        result = float(value) if real else math.nan
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result) or result < minimum or result <= above:
        bound = f" > {above:g}" if above > -math.inf else f" ≥ {minimum:g}" if minimum > -math.inf else ""
        refuse(argument, f"a finite number{bound}", value, remedy or "Pass a number in that range.")
    return result


def finite(argument: str, array: Any, remedy: str = "Remove or replace the non-finite entries first.") -> None:
    values = np.asarray(array)
    if np.issubdtype(values.dtype, np.inexact) and not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise ArgumentError(f"{argument} must be finite; {bad} of {values.size} entries are NaN or infinite. {remedy}")


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence that helps someone who mistyped `name`."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "Known: " + ", ".join(known) + "."
