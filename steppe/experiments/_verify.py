"""Claims measured: the runs they need are read or computed, then every check is asked for its number."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steppe.experiments._paper import Claim, Figure, Finding, NotJudgedError, Paper, Scale, Verdict
from steppe.experiments._seconds import expected_seconds

if TYPE_CHECKING:
    from steppe.store import Store


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
    known_to_fail: bool = False

    @property
    def as_expected(self) -> bool:
        """The claim holds, or it fails and is a misprint or known to. A claim that was not run is not judged."""
        return self.verdict != ("holds" if self.misprint or self.known_to_fail else "fails")


def verify(
    paper: Paper,
    scale: Scale = "smoke",
    *,
    store: "Store | None" = None,
    claims: Sequence[Claim] | None = None,
    workers: int | None = None,
) -> list[Measured]:
    """Compute what the claims of a paper need (default: all claims) and measure them."""
    from steppe.store import Store
    from steppe.sweep import execute

    store, claims = store or Store(), paper.claims if claims is None else claims
    execute([spec for _, spec in runs_needed(claims, scale)], store, workers=workers)
    return list(measure_all([(paper, claim) for claim in claims], scale, store, workers=workers))


def runs_needed(claims: Iterable[Claim], scale: Scale, *, figures: Iterable[Figure] = ()) -> list[tuple[str, Any]]:
    """(label, spec) of every run that these claims need, and of these figures.

    The longest run comes first: a long run that starts last would leave the other cores idle.
    """
    wanted = {figure.name: figure for claim in claims for figure in claim.needs} | {f.name: f for f in figures}
    shown = [figure for figure in wanted.values() if figure.offered(scale)]
    shown.sort(key=lambda f: -(expected_seconds(f, scale) or 0) / max(1, len(f.runs[scale])))
    return [labelled for figure in shown for labelled in labelled_runs(figure, scale)]


def labelled_runs(figure: Figure, scale: Scale) -> list[tuple[str, Any]]:
    return [(f"{figure.name} #{k}", spec) for k, spec in enumerate(figure.runs.get(scale, ()))]


def measure_all(
    claims: Sequence[tuple[Paper, Claim]], scale: Scale, store: "Store", *, workers: int | None = None
) -> Iterable[Measured]:
    """The verdicts on claims whose runs are in the store, in their order, as soon as each is there."""
    from steppe.sweep import map_processes

    return map_processes(_Judge(scale, store), [(paper, claim.id) for paper, claim in claims], workers=workers)


@dataclass(frozen=True)
class _Judge:
    """`measure` for other processes: a check is a function without a name, so a claim travels as its id."""

    scale: Scale
    store: "Store"

    def __call__(self, named: tuple[Paper, str]) -> Measured:
        paper, id = named
        return measure(paper, paper.find_claim(id), self.scale, self.store)


def measure(paper: Paper, claim: Claim, scale: Scale, store: "Store") -> Measured:
    """The verdict on a claim from the runs in the store; `not-run` if one of them is missing or damaged."""
    started = time.perf_counter()
    finding, verdict, detail = _find(claim, scale, store)
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
        known_to_fail=scale in claim.fails_at,
    )


def _find(claim: Claim, scale: Scale, store: "Store") -> tuple[Finding | None, Verdict, str]:
    from steppe.store import StoreError

    offered = [figure for figure in claim.needs if figure.offered(scale)]
    absent = [figure.id for figure in claim.needs if figure not in offered]
    if absent and not (claim.partial and offered):
        return None, "not-run", f"{_named(absent)} is not offered at {scale} scale"
    try:
        found = [[store.get(spec) for spec in figure.runs[scale]] for figure in offered]
    except StoreError as error:
        return None, "not-run", str(error)
    if claim.partial and any(run is not None for runs in found for run in runs):
        found = [[run for run in runs if run is not None] for runs in found]
    missing = [figure.id for figure, runs in zip(offered, found, strict=True) if None in runs]
    if missing:
        return (
            None,
            "not-run",
            f"runs of {_named(missing)} are not in the store, or of another version: steppe verify computes them",
        )
    try:
        finding = claim.check(*found)
    except NotJudgedError as reason:
        return None, "not-run", str(reason)
    return finding, "holds" if finding.holds else "fails", finding.detail


def _named(ids: Sequence[str]) -> str:
    """The first three of these names, and how many more there are."""
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
