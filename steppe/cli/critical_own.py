"""steppe critical on a problem of the user's own: MODULE:FUNCTION, which makes a steppe.Problem."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steppe.problems import Problem
    from steppe.rates import Sweep


def problems(target: str) -> "tuple[Problem, Problem | None]":
    """What MODULE:FUNCTION returns, looked for in the current folder too: a problem, or it and one of test data."""
    import sys

    from steppe.check import ArgumentError
    from steppe.problems import Problem

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


def summary(swept: "Sweep") -> dict[str, Any]:
    """Where sharpness leaves its plateau, up to 3 η_c: that of the ends, and the smoothed maximum along the runs, which
    is the one to look at where sharpness falls again before the end (cross-entropy)."""
    from steppe.rates import corner

    critical = swept.critical[-1]
    ends = swept.at(critical.loss)
    found: dict[str, Any] = {"rates": len(swept.descents), "reached": int((ends["outcome"] == 0).sum())}
    for name in ("sharpness", "smoothed_sharpness"):
        if (fit := corner(ends, critical.rate, name)) is None:
            continue
        interval = [fit.lower / critical.rate, fit.upper / critical.rate] if fit.found else None
        found[name] = {"leaves_over_critical": fit.rate / critical.rate, "interval": interval, "slope": fit.slope}
    return found


def summary_lines(swept: "Sweep") -> list[str]:
    found = summary(swept)
    lines = [f"reached: {found['reached']} of {found['rates']} rates"]
    for name, what in (("sharpness", "sharpness at the end"), ("smoothed_sharpness", "its smoothed maximum")):
        if (fit := found.get(name)) is not None:
            where = (
                "nowhere"
                if fit["interval"] is None
                else (
                    f"at {fit['leaves_over_critical']:.3g} η_c [{fit['interval'][0]:.3g}, {fit['interval'][1]:.3g}], "
                    f"slope {fit['slope']:.2f}"
                )
            )
            lines.append(f"{what} leaves its plateau {where}")
    return lines
