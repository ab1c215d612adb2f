"""steppe list: what there is to run. steppe explain: one claim or figure, whole."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro

from steppe.cli._names import Chosen, find
from steppe.cli._shared import Output, Stored, duration, print_facts, print_json
from steppe.experiments import Claim, Figure, Paper, Scale

SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class List(Output):
    """Every paper, figure and claim, with the measured time of each figure at each scale.

    Examples: steppe list · steppe list wen2023 · steppe list fig1 · steppe list 'wen2023/fig4*' --kind figure --json
    """

    what: tyro.conf.Positional[tuple[str, ...]] = ()
    """Papers, figures or claims: PAPER, PAPER/NAME, NAME, or patterns like 'fig1*'. Default: everything."""
    kind: Literal["all", "paper", "figure", "claim"] = "all"
    """Only entries of this kind."""

    def __call__(self) -> int:
        chosen = [
            Chosen(
                p, figures if self.kind in ("all", "figure") else (), claims if self.kind in ("all", "claim") else ()
            )
            for p, figures, claims in find(self.what, ambiguous=True)
        ]
        shown = self.kind in ("all", "paper")
        if self.json:
            entries: list[dict[str, Any]] = [
                {"kind": "paper", "id": p.id, "title": p.title} for p, *_ in chosen if shown
            ]
            entries += [
                {"kind": "figure", "id": f.name, "title": f.title, "seconds": _seconds(f)}
                for _, figures, _ in chosen
                for f in figures
            ]
            print_json(entries + [_claim(p, c) for p, _, claims in chosen for c in claims])
            return 0
        # A pipe has no width: what a program may read is not shortened.
        width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None
        print("\n".join(listing(chosen, headed=shown, width=width)))
        return 0


def listing(chosen: Sequence[Chosen], *, headed: bool, width: int | None) -> list[str]:
    """One line an entry. With a `width`, names stand under that of their paper, and what is too long is shortened."""
    lines: list[str] = []
    for paper, figures, claims in chosen:
        prefix = f"{paper.id}/" if width is None else ""
        if headed or not prefix:
            lines.append(_short(f"{paper.id}: {paper.title}", width))
        if figures:
            rows = [(prefix + f.id, *(_time(f, scale) for scale in SCALES), f.title) for f in figures]
            lines += ["", *_columns([("figure", *SCALES, "shows"), *rows], width)]
        if claims:
            named = [(prefix + c.id, c.statement + (" (misprint)" if c.misprint else "")) for c in claims]
            lines += ["", *_columns([("claim", "states"), *named], width)]
        lines.append("")
    return lines[:-1]


def _columns(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Columns side by side; the last one takes what is left of the line."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        head = "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False))
        lines.append(_short(f"{head}  {row[-1]}", width).rstrip())
    return lines


def _short(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


@dataclass(frozen=True)
class Explain(Stored):
    """One claim or figure: what it says, what is measured, what it needs, and the verdict from stored runs.

    Examples: steppe explain wen2023/fig4b-attains-bound · steppe explain fig4b --scale paper
    """

    name: tyro.conf.Positional[str] = field(kw_only=True)
    """A claim or figure, as `steppe list` names it."""
    scale: Scale = "smoke"
    """Which runs to judge by."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError

        found = find([self.name])
        names = [name for one in found for name in one.names]
        if len(names) != 1:
            listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise ArgumentError(f"{self.name!r} means {len(names)} claims and figures: {listed}. Name one of them.")
        ((paper, figures, claims),) = found
        facts = self._claim(paper, claims[0]) if claims else _figure(paper, figures[0])
        if self.json:
            print_json(facts)
        else:
            print_facts({name: _text(value) for name, value in facts.items() if value not in ("", [], None)})
        return 0

    def _claim(self, paper: Paper, claim: Claim) -> dict[str, Any]:
        from steppe.experiments import measure

        verdict = measure(paper, claim, self.scale, self.opened())
        return _claim(paper, claim) | {
            # Of functools.partial, the function.
            "check": " ".join((getattr(claim.check, "func", claim.check).__doc__ or "").split()),
            "control": _control(paper, claim),
            "scale": self.scale,
            "verdict": verdict.verdict,
            "measured": verdict.measured,
            "detail": verdict.detail,
        }


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


def _figure(paper: Paper, figure: Figure) -> dict[str, Any]:
    return {
        "kind": "figure",
        "id": figure.name,
        "title": figure.title,
        "runs": {scale: len(specs) for scale, specs in figure.runs.items()},
        "seconds": _seconds(figure),
        "claims": [f"{paper.id}/{c.id}" for c in paper.claims if figure in c.needs],
    }


def _control(paper: Paper, claim: Claim) -> str:
    """What fails the check: the test that the claim names, its twin as printed, or tests of a checkout that name it."""
    if claim.control:
        return claim.control
    base, _, ending = claim.id.rpartition("-")
    twins = {"printed": "corrected", "corrected": "printed"}
    twin = f"{base}-{twins.get(ending, '')}"
    if twin in {c.id for c in paper.claims}:
        return f"{paper.id}/{twin}, the same check of the other formula"
    tests = Path(__file__).parents[2] / "tests" / "papers"
    named = [f"tests/papers/{p.relative_to(tests)}" for p in sorted(tests.rglob("*.py")) if _quotes(p, claim.id)]
    return "among the tests that name it: " + ", ".join(named) if named else "none is named"


def _quotes(path: Path, id: str) -> bool:
    return f'"{id}"' in path.read_text(encoding="utf-8")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {'?' if entry is None else entry}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _seconds(figure: Figure) -> dict[str, float | None]:
    from steppe.experiments import expected_seconds

    return {scale: expected_seconds(figure, scale) for scale in figure.runs}


def _time(figure: Figure, scale: Scale) -> str:
    """Empty where the figure has no such scale, a question mark where nobody has measured it."""
    if scale not in figure.runs:
        return ""
    known = _seconds(figure)[scale]
    return "?" if known is None else duration(known)
