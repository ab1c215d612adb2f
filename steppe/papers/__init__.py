"""The papers: each a package (or a module) of this folder with a PAPER, found by its name and imported alone."""

import importlib as _importlib
import pkgutil as _pkgutil

from steppe._exports import exported as _exported
from steppe.check import ArgumentError as _ArgumentError
from steppe.check import suggest as _suggest
from steppe.experiments import Paper as _Paper


def names() -> list[str]:
    """The names of all papers; nothing is imported. conflicting-biases is the module conflicting_biases."""
    found = (m.name for m in _pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(name.replace("_", "-") for name in found)


def paper(id: str) -> _Paper:
    """The paper with this name; no other one is imported."""
    if id not in names():
        raise _ArgumentError(f"unknown paper {id!r}. " + _suggest(id, names()))
    found: _Paper = _importlib.import_module(f"{__name__}.{id.replace('-', '_')}").PAPER
    return found


def papers() -> dict[str, _Paper]:
    return {id: paper(id) for id in names()}


__dir__ = _exported(__name__)
