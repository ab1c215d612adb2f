"""steppe critical on a problem of the user's own: MODULE:FUNCTION, which makes a steppe.Problem."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steppe.problem import Problem


def problems(target: str) -> "tuple[Problem, Problem | None]":
    """What MODULE:FUNCTION returns, looked for in the current folder too: a problem, or it and one of test data."""
    import sys

    from steppe.check import ArgumentError
    from steppe.problem import Problem

    sys.path.insert(0, "")
    try:
        made = _function(target)()
    finally:
        sys.path.remove("")
    pair = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(pair[0], Problem) or not isinstance(pair[1], Problem | None):
        raise ArgumentError(
            f"{target} returned {made!r}. It must return a steppe.Problem, or one and its test problem."
        )
    return pair


def _function(target: str) -> Any:
    import importlib
    import inspect

    from steppe.check import ArgumentError

    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        inspect.signature(function).bind()
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the last two: no such call, no such name
        remedy = "Name MODULE:FUNCTION, a function of no arguments."
        raise ArgumentError(f"cannot use {target!r}: {error}. {remedy}") from error
    return function
