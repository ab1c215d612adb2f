"""Claims whose checks are imported when they are asked: the list of claims itself costs nothing."""

import importlib
from collections.abc import Callable
from typing import Any

from steppe.experiments._paper import Claim, Evidence, Finding

Check = Callable[[Evidence], Finding]


def theory(module: str, name: str, *args: Any, **options: Any) -> Check:
    """A check that needs no runs."""
    return lambda evidence: _found(module, name)(*args, **options)


def runs(module: str, name: str) -> Check:
    """A check on finished runs."""
    return lambda evidence: _found(module, name)(evidence)


def pair(
    id: str, source: str, printed: str, corrected: str, expected: str, module: str, name: str, *args: Any
) -> tuple[Claim, Claim]:
    """A misprint: as printed, and as corrected."""
    return (
        Claim(f"{id}-printed", source, printed, expected, theory(module, name, *args, as_printed=True), misprint=True),
        Claim(f"{id}-corrected", f"{source}, corrected", corrected, expected,
              theory(module, name, *args, as_printed=False)),
    )  # fmt: skip


def _found(module: str, name: str) -> Callable[..., Finding]:
    found: Callable[..., Finding] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
