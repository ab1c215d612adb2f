"""Checks imported when they are asked, so that the list of claims costs nothing."""

import importlib
from collections.abc import Callable
from typing import Any

from steppe.experiments._paper import Claim, Evidence, Finding

Check = Callable[[Evidence], Finding]


def theory(module: str, name: str, **options: Any) -> Check:
    """A check that needs no runs."""
    return lambda evidence: _found(module, name)(**options)


def runs(module: str, name: str, *args: Any, **options: Any) -> Check:
    """A check on finished runs."""
    return lambda evidence: _found(module, name)(evidence, *args, **options)


def pair(
    id: str, source: str, printed: str, corrected: str, expected: tuple[str, str], checks: tuple[Check, Check],
    needs: tuple[str, ...] = (),
) -> tuple[Claim, Claim]:  # fmt: skip
    """A statement that fails as printed, and what holds instead."""
    return (
        Claim(f"{id}-printed", source, printed, expected[0], checks[0], needs, misprint=True),
        Claim(f"{id}-corrected", f"{source}, corrected", corrected, expected[1], checks[1], needs),
    )


def _found(module: str, name: str) -> Callable[..., Finding]:
    found: Callable[..., Finding] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
