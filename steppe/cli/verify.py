"""steppe verify: the claims of the papers, measured; and steppe report, the same from what is in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli.common import Stored, counted, print_json, print_table
from steppe.cli.computing import Computing
from steppe.experiments._paper import Scale

if TYPE_CHECKING:
    from steppe.store import Store


@dataclass(frozen=True)
class Verify(Computing):
    """Compute what the claims need and judge them. Exit code 1 if one fails that should hold.

    Examples: steppe verify · steppe verify wen2023 --scale paper · steppe verify wen2023/fig4b-attains-bound --json
    """

    paper: tyro.conf.Positional[str | None] = None
    """Only this paper, or only one claim: PAPER/CLAIM, or those that fit: 'PAPER/net-*'. Default: all."""
    scale: Scale = "smoke"
    """smoke: seconds a claim. paper: the papers' own sizes."""
    report: Path | None = None
    """Also write a self-contained HTML page with the table and all figures; or .md: the table alone."""

    def __call__(self) -> int:
        from steppe.experiments._verify import specs_needed

        papers = _papers(self.paper)
        pictures = self.report is not None and self.report.suffix != ".md"
        self.entries(specs_needed(papers, self.scale, figures=pictures))
        return _judge(papers, self.scale, self.opened(), self.report, self.json, self.workers)


@dataclass(frozen=True)
class Report(Stored):
    """The table of claims and the figures as one HTML page, from the runs in the store; nothing is computed.

    Examples: steppe report wen2023 --scale paper --out report.html
    · steppe report --out claims.md (the table alone, in Markdown)
    """

    paper: tyro.conf.Positional[str | None] = None
    """Only this paper, or only one claim: PAPER/CLAIM, or those that fit: 'PAPER/net-*'. Default: all."""
    scale: Scale = "smoke"
    """Which runs to judge."""
    out: Path = Path("report.html")
    """The page to write: HTML with the figures inside, or Markdown where the name ends in .md."""

    def __call__(self) -> int:
        return _judge(_papers(self.paper), self.scale, self.opened(), self.out, self.json)


def _papers(name: str | None) -> list[Any]:
    from steppe.experiments._paper import paper, papers

    if name is None:
        return list(papers().values())
    head, _, claim = name.partition("/")
    return [paper(head).only(claim) if claim else paper(head)]


def _judge(
    papers: Sequence[Any],
    scale: Scale,
    store: "Store",
    report: Path | None,
    as_json: bool,
    workers: int | None = None,
) -> int:
    from steppe.experiments._verify import Judging
    from steppe.sweep._engine import each

    names = [(paper.id, claim.id) for paper in papers for claim in paper.claims]
    results = list(counted(each(Judging(scale, store), names, workers=workers), len(names), "claims", silent=as_json))
    if as_json:
        print_json(results)
    else:
        rows = [
            (
                r.id,
                r.expected,
                "" if r.measured is None else f"{r.measured:.4g}",
                r.verdict + (" (misprint, as it should)" if r.misprint and r.verdict == "fails" else ""),
                r.detail,
            )
            for r in results
        ]
        print_table("", ("claim", "expected", "measured", "verdict", "detail"), rows)
        good = sum(r.as_it_should and r.verdict != "not-run" for r in results)
        print(f"\n{good} of {len(results)} claims come out as they should at {scale} scale")
    if report is not None:
        _write_page(papers, results, scale, store, report, workers, silent=as_json)
        if not as_json:
            print(f"wrote {report}")
    return 0 if all(r.as_it_should for r in results) else 1


def _write_page(
    papers: Sequence[Any],
    results: Any,
    scale: Scale,
    store: "Store",
    report: Path,
    workers: int | None,
    *,
    silent: bool,
) -> None:
    from steppe import __version__
    from steppe.experiments._reproduce import Drawing
    from steppe.report.page import markdown, page
    from steppe.sweep._engine import each

    report.parent.mkdir(parents=True, exist_ok=True)
    if report.suffix == ".md":
        report.write_text(markdown(results), encoding="utf-8")
        return
    shown = [(paper, figure) for paper in papers for figure in paper.figures]
    names = [(paper.id, figure.id) for paper, figure in shown]
    drawing = Drawing(scale, store, report.parent / "figures")
    drawn = counted(each(drawing, names, workers=workers), len(names), "figures", silent=silent)
    pictures = [
        (f"{paper.id}/{figure.id}: {figure.title} ({scale} scale)", png)
        for (paper, figure), png in zip(shown, drawn, strict=True)
        if png is not None
    ]
    report.write_text(page(results, pictures, version=__version__), encoding="utf-8")
