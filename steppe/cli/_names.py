"""Names on the command line: papers, figures and claims, with or without their paper, and patterns."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from steppe.check import ArgumentError, suggest
from steppe.experiments import Claim, Figure, Paper

_WILD = frozenset("*?[")


class Chosen(NamedTuple):
    """A paper, and which of its figures and claims are meant."""

    paper: Paper
    figures: Sequence[Figure]
    claims: Sequence[Claim]

    @property
    def names(self) -> list[str]:
        return [f"{self.paper.id}/{id}" for id in self.ids]

    @property
    def ids(self) -> list[str]:
        return [*(figure.id for figure in self.figures), *(claim.id for claim in self.claims)]


def find(targets: Iterable[str], *, ambiguous: bool = False) -> list[Chosen]:
    """What the names mean, one entry for each paper. Without a name, everything.

    A name is a PAPER, PAPER/NAME, or a NAME alone; fig1 also means the panels fig1a, fig1b; both parts may be patterns
    like 'fig1*'. A NAME alone that several papers have is refused, with a list, unless `ambiguous` is wanted.
    Only the papers that are named are imported, if all are.
    """
    from steppe.papers import names

    found: dict[str, Chosen] = {}
    for target in list(targets) or names():
        for one in _meant(target, ambiguous=ambiguous):
            before = found.get(one.paper.id, one)
            # In the order of declaration, whatever the order of the names.
            found[one.paper.id] = Chosen(
                one.paper,
                [f for f in one.paper.figures if f in (*before.figures, *one.figures)],
                [c for c in one.paper.claims if c in (*before.claims, *one.claims)],
            )
    return list(found.values())


def _meant(target: str, *, ambiguous: bool) -> list[Chosen]:
    from steppe.papers import names, paper, papers

    head, slash, pattern = target.partition("/")
    if not slash and head in names():
        found = paper(head)
        return [Chosen(found, found.figures, found.claims)]
    if slash and not _WILD & set(head):
        return [Chosen(paper(head), *paper(head).matching(pattern or "*"))]
    searched = [p for p in papers().values() if not slash or fnmatchcase(p.id, head)]
    chosen = [
        Chosen(p, figures, claims)
        for p in searched
        for figures, claims in [p.fitting(pattern if slash else head)]
        if figures or claims
    ]
    if not chosen:
        known = [*names(), *(id for p in searched for id in Chosen(p, p.figures, p.claims).ids)]
        raise ArgumentError(f"no paper, figure or claim is called {target!r}. " + _hint(head, known))
    if len(chosen) > 1 and not slash and not _WILD & set(head) and not ambiguous:
        listed = ", ".join(name for one in chosen for name in one.names)
        raise ArgumentError(f"{target!r} is in several papers. Name one: {listed}.")
    return chosen


def _hint(name: str, known: Sequence[str]) -> str:
    hint = suggest(name, known)
    return hint if hint.startswith("Did") else "`steppe list` shows all names."
