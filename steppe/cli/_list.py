"""steppe list: what there is to run. steppe explain: one claim or figure, whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import tyro

from steppe.cli._shared import Output, Stored, duration, print_json, print_table
from steppe.experiments import Claim, Figure, Paper, Scale

SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class List(Output):
    """Every paper, figure and claim, with the measured time of each figure at each scale.

    Examples: steppe list · steppe list wen2023 · steppe list 'wen2023/fig4*' · steppe list --kind figure --json
    """

    what: tyro.conf.Positional[str | None] = None
    """Only this paper (PAPER), or what a pattern fits: 'PAPER/fig1*'. Default: everything."""
    kind: Literal["all", "paper", "figure", "claim"] = "all"
    """Only entries of this kind."""

    def __call__(self) -> int:
        from steppe.experiments import expected_seconds

        def seconds(figure: Figure) -> dict[str, float | None]:
            return {scale: expected_seconds(figure, scale) for scale in figure.runs}

        chosen = _chosen(self.what)
        figures = [(p, f) for p, fs, _ in chosen for f in fs if self.kind in ("all", "figure")]
        claims = [(p, c) for p, _, cs in chosen for c in cs if self.kind in ("all", "claim")]
        shown = [p for p, _, _ in chosen if self.kind in ("all", "paper")]
        if self.json:
            entries: list[dict[str, Any]] = [{"kind": "paper", "id": p.id, "title": p.title} for p in shown]
            entries += [{"kind": "figure", "id": f.name, "title": f.title, "seconds": seconds(f)} for _, f in figures]
            print_json(entries + [_claim(p, c) for p, c in claims])
            return 0
        for paper in shown:
            print(f"{paper.id}: {paper.title}")
        if figures:
            rows = [(f.name, f.title, *(_time(seconds(f), scale) for scale in SCALES)) for _, f in figures]
            print()
            print_table("", ("figure", "shows", *SCALES), rows)
        if claims:
            print()
            statement = [(c.statement + (" (misprint)" if c.misprint else "")) for _, c in claims]
            named = [(f"{p.id}/{c.id}", c.source) for p, c in claims]
            print_table("", ("claim", "source", "statement"), [(*n, s) for n, s in zip(named, statement, strict=True)])
        return 0


@dataclass(frozen=True)
class Explain(Stored):
    """One claim or figure: what it says, what is measured, what it needs, and the verdict from stored runs.

    Examples: steppe explain wen2023/fig4b-attains-bound · steppe explain wen2023/fig4b --scale paper
    """

    name: tyro.conf.Positional[str] = field(kw_only=True)
    """PAPER/CLAIM or PAPER/FIGURE, as `steppe list` names it."""
    scale: Scale = "smoke"
    """Which runs to judge by."""

    def __call__(self) -> int:
        from steppe.experiments import measure

        found = _chosen(self.name)
        if "/" not in self.name or sum(len(fs) + len(cs) for _, fs, cs in found) != 1:
            from steppe.check import ArgumentError

            raise ArgumentError(f"{self.name!r} names no single claim or figure. `steppe list` shows their names.")
        ((paper, figures, claims),) = found
        if claims:
            verdict = measure(paper, claims[0], self.scale, self.opened())
            facts = _claim(paper, claims[0]) | {"scale": self.scale, "verdict": verdict.verdict}
            facts |= {"measured": verdict.measured, "detail": verdict.detail, "check": _check(claims[0])}
        else:
            figure = figures[0]
            on_it = [f"{paper.id}/{c.id}" for c in paper.claims if figure in c.needs]
            runs = {scale: len(specs) for scale, specs in figure.runs.items()}
            facts = {"kind": "figure", "id": figure.name, "title": figure.title, "runs": runs, "claims": on_it}
        if self.json:
            print_json(facts)
        else:
            print_table("", ("", ""), [(name, _text(value)) for name, value in facts.items()])
        return 0


def _chosen(what: str | None) -> list[tuple[Paper, Sequence[Figure], Sequence[Claim]]]:
    """The papers that a name or pattern means, each with the figures and claims it means. Imports only those papers."""
    from steppe.papers import paper, papers

    if what is None:
        return [(p, p.figures, p.claims) for p in papers().values()]
    head, slash, pattern = what.partition("/")
    found = paper(head)
    if not slash:
        return [(found, found.figures, found.claims)]
    return [(found, *found.matching(pattern))]


def _claim(paper: Paper, claim: Claim) -> dict[str, Any]:
    return {
        "kind": "claim",
        "id": f"{paper.id}/{claim.id}",
        "source": claim.source,
        "statement": claim.statement,
        "expected": claim.expected,
        "misprint": claim.misprint,
        "figures": [figure.name for figure in claim.needs],
    }


def _check(claim: Claim) -> str:
    """What the check measures, as its own docstring says it."""
    return " ".join((claim.check.__doc__ or "").split())


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {entry}" for name, entry in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _time(seconds: dict[str, float | None], scale: Scale) -> str:
    """Empty where the figure has no such scale, a question mark where nobody has measured it."""
    if scale not in seconds:
        return ""
    known = seconds[scale]
    return "?" if known is None else duration(known)
