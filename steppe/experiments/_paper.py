"""What a paper is here: figures that run, and claims that are measured."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, Protocol

from steppe.check import ArgumentError, suggest

Scale = Literal["smoke", "laptop", "paper"]
Verdict = Literal["holds", "fails", "not-run"]


class Spec(Protocol):
    """A frozen dataclass that describes one run and can compute it."""

    def compute(self, checkpoint: Any, progress: Callable[[Any], None]) -> Any: ...


@dataclass(frozen=True)
class Figure:
    """A figure: the runs it shows, at each scale that it has; the numbers it plots, as plain JSON; and how.

    At the scales of `by_name` it is run only where it is asked for by its name: not with its paper, and for no claim.
    """

    id: str
    title: str
    specs: Mapping[Scale, Sequence[Spec]]
    numbers: Callable[[Sequence[Any]], dict[str, Any]] = field(repr=False)
    draw: Callable[[Mapping[str, Any]], Any] = field(repr=False)
    seconds: Mapping[Scale, float]
    by_name: frozenset[Scale] = frozenset()

    def offered(self, scale: Scale) -> bool:
        """Whether it is run with its paper."""
        return scale in self.specs and scale not in self.by_name


@dataclass(frozen=True)
class Finding:
    """What a check measured: the number, whether the claim holds, and the detail a reader wants (spread, seeds)."""

    measured: float
    holds: bool
    detail: str = ""


Evidence = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper with a check on the finished runs of the figures it `needs`, or on none.

    A `misprint` is a statement as printed that is known to be wrong: failing is what it should do.
    """

    id: str
    source: str
    statement: str
    expected: str
    check: Callable[[Evidence], Finding] = field(repr=False, compare=False)
    needs: tuple[str, ...] = ()
    misprint: bool = False


@dataclass(frozen=True)
class Paper:
    id: str
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]

    def figure(self, id: str) -> Figure:
        for figure in self.figures:
            if figure.id == id:
                return figure
        raise ArgumentError(f"{self.id} has no figure {id!r}. " + suggest(id, [f.id for f in self.figures]))

    def claim(self, id: str) -> Claim:
        for claim in self.claims:
            if claim.id == id:
                return claim
        raise ArgumentError(f"{self.id} has no claim {id!r}. " + suggest(id, [c.id for c in self.claims]))

    def only(self, pattern: str) -> "Paper":
        """The paper cut down to one claim, or to those that a pattern like net-* fits, and the figures they need."""
        claims = tuple(c for c in self.claims if fnmatchcase(c.id, pattern)) or (self.claim(pattern),)
        needed = {id for claim in claims for id in claim.needs}
        return replace(self, claims=claims, figures=tuple(f for f in self.figures if f.id in needed))


@cache
def papers() -> dict[str, Paper]:
    """Every paper: a package of `steppe.papers` with a PAPER."""
    package = importlib.import_module("steppe.papers")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg]
    found: list[Paper] = [importlib.import_module(f"steppe.papers.{name}").PAPER for name in names]
    return {paper.id: paper for paper in sorted(found, key=lambda p: p.id)}


def paper(id: str) -> Paper:
    if id not in papers():
        raise ArgumentError(f"unknown paper {id!r}. " + suggest(id, papers()))
    return papers()[id]


def figures(target: str) -> list[tuple[Paper, Figure]]:
    """The figures a name like wen2023/fig4b or wen2023 means."""
    head, _, tail = target.partition("/")
    if head not in papers():
        known = [f"{p.id}/{f.id}" for p in papers().values() for f in p.figures]
        raise ArgumentError(f"unknown figure {target!r}. " + suggest(target, [*papers(), *known]))
    found = paper(head)
    return [(found, found.figure(tail))] if tail else [(found, figure) for figure in found.figures]
