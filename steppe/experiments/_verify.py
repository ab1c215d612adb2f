"""Claims measured: the runs they need are read or computed, then every check is asked for its number."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steppe.experiments import _paper as catalogue
from steppe.experiments._paper import Claim, Figure, Finding, Paper, Scale, Verdict
from steppe.store import Store, StoreError


@dataclass(frozen=True)
class Measured:
    """A claim with its verdict, as `steppe verify --json` prints it."""

    id: str
    source: str
    statement: str
    expected: str
    measured: float | None
    verdict: Verdict
    misprint: bool
    scale: Scale
    seconds: float
    detail: str

    @property
    def as_it_should(self) -> bool:
        """A claim that holds, or a misprint that fails as printed; a claim that was not run is not judged."""
        return self.verdict != ("holds" if self.misprint else "fails")


def specs_needed(papers: Sequence[Paper], scale: Scale, *, figures: bool) -> list[tuple[str, Any]]:
    """(label, spec) of every run that the claims of these papers need, with `figures` those of all figures too.

    The longest first: a long run that is started last would leave the other cores idle.
    """
    needed = {(paper.id, id) for paper in papers for claim in paper.claims for id in claim.needs}
    shown = [
        (paper, figure)
        for paper in papers
        for figure in paper.figures
        if figure.offered(scale) and (figures or (paper.id, figure.id) in needed)
    ]
    shown.sort(key=lambda at: -at[1].seconds[scale] / max(1, len(at[1].specs[scale])))
    return [labelled for paper, figure in shown for labelled in figure_specs(paper, figure, scale)]


def figure_specs(paper: Paper, figure: Figure, scale: Scale) -> list[tuple[str, Any]]:
    return [(f"{paper.id}/{figure.id} #{k}", spec) for k, spec in enumerate(figure.specs.get(scale, ()))]


def measure(paper: Paper, claim: Claim, scale: Scale, store: Store) -> Measured:
    """The verdict on a claim from the runs in the store; `not-run` if one of them is missing or damaged."""
    started = time.perf_counter()
    finding, verdict, detail = _find(paper, claim, scale, store)
    return Measured(
        id=f"{paper.id}/{claim.id}",
        source=claim.source,
        statement=claim.statement,
        expected=claim.expected,
        measured=finding.measured if finding else None,
        verdict=verdict,
        misprint=claim.misprint,
        scale=scale,
        seconds=round(time.perf_counter() - started, 3),
        detail=detail,
    )


@dataclass(frozen=True)
class Judging:
    """`measure` for other processes: papers hold functions that do not travel, so a claim goes by its name."""

    scale: Scale
    store: Store

    def __call__(self, name: tuple[str, str]) -> Measured:
        paper = catalogue.paper(name[0])
        return measure(paper, paper.claim(name[1]), self.scale, self.store)


def _find(paper: Paper, claim: Claim, scale: Scale, store: Store) -> tuple[Finding | None, Verdict, str]:
    try:
        if absent := [id for id in claim.needs if not paper.figure(id).offered(scale)]:
            return None, "not-run", f"{', '.join(absent)} is not offered at {scale} scale"
        found = {id: [store.get(spec) for spec in paper.figure(id).specs[scale]] for id in claim.needs}
    except StoreError as error:
        return None, "not-run", str(error)
    missing = [id for id, entries in found.items() if None in entries]
    if missing:
        return (
            None,
            "not-run",
            f"runs of {', '.join(missing)} are not in the store: steppe verify computes them",
        )
    finding = claim.check(found)
    return finding, "holds" if finding.holds else "fails", finding.detail
