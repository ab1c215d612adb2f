"""steppe verify: the claims of the papers, measured; and steppe report, the same from what is in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from steppe.cli._names import Chosen, find
from steppe.cli._shared import Computing, Stored, check_writable, counted, print_json, print_table, writing
from steppe.experiments import Scale

if TYPE_CHECKING:
    from steppe.experiments import Measured, Paper
    from steppe.report import Plot
    from steppe.store import Store


@dataclass(frozen=True)
class Verify(Computing):
    """Compute what the claims need and judge them. Exit code 1 if one fails that should hold.

    Examples: steppe verify · steppe verify wen2023 --scale paper · steppe verify wen2023/fig4b-attains-bound --json
    · steppe verify wen2023/fig4b (the claims on this figure) · steppe verify 'conflicting-biases/net-*'
    """

    targets: tyro.conf.Positional[tuple[str, ...]] = ()
    """Papers, claims (PAPER/NAME, or NAME alone), figures (the claims on them), or patterns. Default: all papers."""
    scale: Scale = "smoke"
    """smoke: seconds a claim. paper: the papers' own sizes."""
    report: Path | None = None
    """Also write a self-contained HTML page with the table and all figures; or .md: the table alone."""

    def __call__(self) -> int:
        from steppe.experiments import runs_needed

        chosen = _chosen(self.targets)
        if self.report is not None:
            check_writable("--report", self.report, folder=False)
        drawn = self.report is not None and self.report.suffix != ".md"
        figures = [figure for _, figures, _ in chosen for figure in figures] if drawn else []
        claims = [claim for _, _, claims in chosen for claim in claims]
        self.entries(runs_needed(claims, self.scale, figures=figures))
        return _judge(chosen, self.scale, self.opened(), self.report, as_json=self.json, workers=self.workers)


@dataclass(frozen=True)
class Report(Stored):
    """The table of claims and the figures as one HTML page, from the runs in the store; nothing is computed.

    Examples: steppe report wen2023 --scale paper --out report.html
    · steppe report --out claims.md (the table alone, in Markdown)
    """

    targets: tyro.conf.Positional[tuple[str, ...]] = ()
    """Papers, claims (PAPER/NAME, or NAME alone), figures (the claims on them), or patterns. Default: all papers."""
    scale: Scale = "smoke"
    """Which runs to judge."""
    out: Path = Path("report.html")
    """The page to write: HTML with the figures inside, or Markdown where the name ends in .md."""

    def __call__(self) -> int:
        chosen = _chosen(self.targets)
        check_writable("--out", self.out, folder=False)
        return _judge(chosen, self.scale, self.opened(), self.out, as_json=self.json)


def _chosen(targets: Sequence[str]) -> list[Chosen]:
    """Papers with the claims that are meant, and the figures to draw with them; only these papers are imported."""
    chosen = []
    for paper, figures, claims in find(targets):
        named = [claim for claim in paper.claims if claim in claims or any(f in figures for f in claim.needs)]
        # What is drawn: with a paper all its figures, with claims the figures that they need.
        shown = {f.id: f for f in figures} | {f.id: f for claim in named for f in claim.needs}
        chosen.append(Chosen(paper, list(shown.values()), named))
    return chosen


def _judge(
    chosen: Sequence[Chosen],
    scale: Scale,
    store: "Store",
    report: Path | None,
    *,
    as_json: bool,
    workers: int | None = None,
) -> int:
    from steppe.experiments import measure_all

    claims = [(paper, claim) for paper, _, claims in chosen for claim in claims]
    measured = measure_all(claims, scale, store, workers=workers)
    results = list(counted(measured, len(claims), "claims", silent=as_json))
    if as_json:
        print_json(results)
    else:
        print_table("", ("claim", "expected", "measured", "verdict", "detail"), [_row(r) for r in results])
        good = sum(r.as_expected and r.verdict != "not-run" for r in results)
        print(f"\n{good} of {len(results)} claims are as expected at {scale} scale")
    if report is not None:
        with writing("the file name", report):
            _write_page(chosen, results, scale, store, report, workers, silent=as_json)
        if not as_json:
            print(f"wrote {report}")
    return 0 if all(r.as_expected for r in results) else 1


def _row(r: "Measured") -> tuple[str, ...]:
    kind = "misprint, as expected" if r.misprint else "as is known" if r.known_to_fail else ""
    note = f" ({kind})" if kind and r.verdict == "fails" else ""
    return r.id, r.expected, "" if r.measured is None else f"{r.measured:.4g}", r.verdict + note, r.detail


def _write_page(
    chosen: Sequence[Chosen],
    results: "Sequence[Measured]",
    scale: Scale,
    store: "Store",
    report: Path,
    workers: int | None,
    *,
    silent: bool,
) -> None:
    from steppe import __version__
    from steppe.report import markdown, page
    from steppe.sweep import map_processes

    report.parent.mkdir(parents=True, exist_ok=True)
    if report.suffix == ".md":
        _replace(report, markdown(results))
        return
    named = [(paper, figure.id) for paper, figures, _ in chosen for figure in figures]
    found = map_processes(_Plotted(scale, store), named, workers=workers)
    plots = [plot for plot in counted(found, len(named), "figures", silent=silent) if plot is not None]
    needs = {f"{paper.id}/{c.id}": [f.name for f in c.needs] for paper, _, claims in chosen for c in claims}
    titles = {paper.id: paper.title for paper, _, _ in chosen}
    _replace(report, page(results, plots, version=__version__, needs=needs, titles=titles))


@dataclass(frozen=True)
class _Plotted:
    """A figure, named by its paper and id, from runs in the store; None where a run is missing."""

    scale: Scale
    store: "Store"

    def __call__(self, named: "tuple[Paper, str]") -> "Plot | None":
        from steppe import figures
        from steppe.report import PICTURES, Plot

        paper, id = named
        figure = paper.find_figure(id)
        runs = [self.store.get(spec) for spec in figure.runs.get(self.scale, ())]
        if not runs or None in runs:
            return None
        numbers, drawing = figure.show.numbers(runs), figure.show.draw.__name__
        png = figures.png(figure.show.draw(numbers), dpi=110) if drawing in PICTURES else None
        return Plot(figure.name, figure.title, self.scale, drawing, numbers, [run.id for run in runs if run], png)


def _replace(path: Path, text: str) -> None:
    """Write the text under a temporary name first: a full disk leaves no torn page."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
