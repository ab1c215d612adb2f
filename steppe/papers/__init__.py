"""The papers: each a package (or a module) of this folder with a PAPER, found by its name and imported alone."""

import importlib
import pkgutil

from steppe.check import ArgumentError, suggest
from steppe.experiments import Paper


def names() -> list[str]:
    """The names of all papers; nothing is imported. conflicting-biases is the module conflicting_biases."""
    found = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(name.replace("_", "-") for name in found)


def paper(id: str) -> Paper:
    """The paper with this name; no other one is imported."""
    if id not in names():
        raise ArgumentError(f"unknown paper {id!r}. " + suggest(id, names()))
    found: Paper = importlib.import_module(f"{__name__}.{id.replace('-', '_')}").PAPER
    return found


def papers() -> dict[str, Paper]:
    return {id: paper(id) for id in names()}
