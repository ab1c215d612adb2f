"""The report: one self-contained HTML page with claims, their verdicts and interactive figures; or Markdown."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from steppe.experiments import Measured
from steppe.report._vega import plain, rows, spec
from steppe.report._views import view

_MARKS = {"holds": "✓ holds", "fails": "✗ fails", "not-run": "– not run"}
_MISPRINT = "✗ fails as printed"


@dataclass(frozen=True)
class Plot:
    """A figure of the report: its numbers, how it is drawn, and where they come from.

    `drawing` names the function of `steppe.figures` that draws it. `png` is needed where only the picture shows it.
    """

    name: str
    title: str
    scale: str
    drawing: str
    numbers: Mapping[str, Any]
    runs: Sequence[str] = ()
    png: bytes | None = None

    @property
    def anchor(self) -> str:
        return "figure-" + re.sub(r"[^\w-]", "-", self.name)


def page(
    results: Sequence[Measured],
    plots: Sequence[Plot] = (),
    *,
    version: str,
    needs: Mapping[str, Sequence[str]] | None = None,
    titles: Mapping[str, str] | None = None,
) -> str:
    """HTML with everything inside, for a browser without a network.

    `needs` maps the id of a claim to the names of the figures that it is judged on, `titles` the id of a paper to its
    title. Claims stand beside the first figure that they are judged on.
    """
    needs, titles = needs or {}, titles or {}
    papers = list(dict.fromkeys([_paper(r.id) for r in results] + [_paper(p.name) for p in plots]))
    specs: list[Any] = []
    sections = [_section(paper, titles.get(paper, ""), results, plots, needs, specs) for paper in papers]
    data = json.dumps(specs, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = [_static(name) for name in ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js", "report.js")]
    body = "\n".join(
        [
            _summary(results, plots, version),
            "<main>",
            _filters(papers, results),
            _attention(results),
            *sections,
            "</main>",
            f'<script type="application/json" id="specs">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>steppe: the claims, measured</title>"
        f"<style>{_static('report.css')}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def markdown(results: Sequence[Measured]) -> str:
    """The table of claims in Markdown, to paste into a README or an issue."""
    lines = [
        f"| {r.id} | {r.source} | {r.statement} | {r.expected} | {_number(r)} | {_MARKS[r.verdict]}"
        f"{' (misprint)' if r.misprint else ' (known)' if r.known_to_fail else ''} | {r.detail.replace('|', '¦')} |"
        for r in results
    ]
    head = "| claim | source | statement | expected | measured | verdict | detail |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- | --- |", *lines]) + "\n"


def _static(name: str) -> str:
    return files("steppe.report").joinpath("static", name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Only these scripts run, nothing is loaded, and nothing is sent."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'"
    )


def _paper(name: str) -> str:
    return name.partition("/")[0]


def _number(r: Measured) -> str:
    return "" if r.measured is None else f"{r.measured:.4g}"


def _state(r: Measured) -> str:
    """The word by which the page filters: the verdict, or misprint for one that fails as it should."""
    return "misprint" if r.misprint and r.verdict == "fails" else r.verdict


def _summary(results: Sequence[Measured], plots: Sequence[Plot], version: str) -> str:
    judged = [r for r in results if not r.misprint]
    count = {verdict: sum(r.verdict == verdict for r in judged) for verdict in _MARKS}
    misprints = [r for r in results if r.misprint]
    shown = sum(r.verdict == "fails" for r in misprints)
    scales = ", ".join(sorted({r.scale for r in results})) or "no"
    papers = ", ".join(dict.fromkeys(_paper(r.id) for r in results)) or "no paper"
    seconds = sum(r.seconds for r in results)
    e = html.escape
    return (
        "<header><h1>steppe: the claims, measured</h1>"
        f"<p>This report judges {len(judged)} claims of {e(papers)} at {scales} scale with steppe {e(version)}: "
        f"<b class='holds'>{count['holds']} hold</b>, <b class='fails'>{count['fails']} fail</b>, "
        f"<b class='not-run'>{count['not-run']} were not run</b>. Besides, {shown} of {len(misprints)} misprints "
        "(formulas that are wrong as printed) <b class='misprint'>fail as printed</b>, as they should. "
        f"It shows {len(plots)} figures. Judging took {seconds:.0f} seconds of computing beyond the runs.</p></header>"
    )


def _filters(papers: Sequence[str], results: Sequence[Measured]) -> str:
    states = list(dict.fromkeys(_state(r) for r in results))
    boxes = "".join(
        f'<label><input type="checkbox" name="{kind}" value="{value}" checked> {value}</label>'
        for kind, values in (("paper", papers), ("state", states))
        for value in map(html.escape, values)
    )
    return (
        '<form id="filters" aria-label="Filters"><input type="search" id="words" placeholder="words" '
        f'aria-label="Show claims with these words">{boxes}<output id="count" aria-live="polite"></output></form>'
    )


def _attention(results: Sequence[Measured]) -> str:
    """What falls short or was not run."""
    short = [r for r in results if not r.as_expected or r.verdict == "not-run"]
    if not short:
        return "<section><h2>What falls short</h2><p>Nothing: all claims were run and are as expected.</p></section>"
    rows = "".join(_row(r, anchored=False) for r in sorted(short, key=lambda r: r.verdict))
    return f"<section><h2>What falls short or was not run</h2>{_table(rows)}</section>"


def _section(
    paper: str,
    title: str,
    results: Sequence[Measured],
    plots: Sequence[Plot],
    needs: Mapping[str, Sequence[str]],
    specs: list[Any],
) -> str:
    mine = [r for r in results if _paper(r.id) == paper]
    shown = {p.name: p for p in plots if _paper(p.name) == paper}
    beside: dict[str, list[Measured]] = {}
    for r in mine:
        place = (
            "misprints"
            if r.misprint or r.id.endswith("-corrected")
            else next((f for f in needs.get(r.id, ()) if f in shown), "")
        )
        beside.setdefault(place, []).append(r)
    parts = [_figure(plot, beside.get(name, []), specs) for name, plot in shown.items()]
    if "" in beside:
        parts.append("<h3>Claims without a figure</h3>" + _table("".join(map(_row, beside[""]))))
    if "misprints" in beside:
        parts.append(
            "<h3>Misprints</h3><p>As printed, the formula gives the first number; as corrected, the second.</p>"
            + _table("".join(map(_row, sorted(beside["misprints"], key=lambda r: r.id))))
        )
    heading = html.escape(f"{paper}: {title}" if title else paper)
    return f'<section class="paper" data-paper="{html.escape(paper)}"><h2>{heading}</h2>{"".join(parts)}</section>'


def _table(rows: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("verdict", "claim", "expected", "measured"))
    return f'<div class="wide"><table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(r: Measured, *, anchored: bool = True) -> str:
    state = _state(r)
    mark = _MISPRINT if state == "misprint" else _MARKS[r.verdict]
    anchor = f' id="{html.escape(r.id)}"' if anchored else ""
    detail = f'<span class="detail">{typeset(r.detail)}</span>' if r.detail else ""
    return (
        f'<tr{anchor} data-paper="{html.escape(_paper(r.id))}" data-state="{state}"><td class="{state}">{mark}</td>'
        f'<td>{typeset(r.statement)}<span class="detail"><a href="#{html.escape(r.id)}">{html.escape(r.id)}</a> · '
        f"{typeset(r.source)}</span></td><td>{typeset(r.expected)}</td>"
        f'<td><span class="number">{_number(r)}</span>{detail}</td></tr>'
    )


def _figure(plot: Plot, claims: Sequence[Measured], specs: list[Any]) -> str:
    panels = view(plot.drawing, plot.numbers)
    if "rows" in plot.numbers and plot.drawing == "table":
        shown = _plain_table(plot.numbers["head"], plot.numbers["rows"])
    elif panels is None:
        data = base64.b64encode(plot.png or b"").decode()
        shown = f'<img alt="{html.escape(plot.title)}" src="data:image/png;base64,{data}">'
    else:
        shown = "".join(_panel(panel, specs) for panel in panels)
    command = f"steppe reproduce {plot.name} --scale {plot.scale}"
    runs = f"{len(plot.runs)} run{'s' * (len(plot.runs) != 1)}: {', '.join(plot.runs[:3])}{' …' * (len(plot.runs) > 3)}"
    about = " · ".join([html.escape(plot.name), typeset(plot.title), f"<code>{html.escape(command)}</code>", runs])
    caption = f"<figcaption><b>{typeset(plot.numbers.get('title', plot.title))}</b><br>{about}</figcaption>"
    judged = _table("".join(map(_row, claims))) if claims else ""
    return f'<figure id="{plot.anchor}">{caption}<div class="panels">{shown}</div></figure>{judged}'


def _panel(panel: Mapping[str, Any], specs: list[Any]) -> str:
    """A place for the chart, which the script draws when it comes into view, and its numbers as a table."""
    specs.append(spec(panel))
    k = len(specs) - 1
    label = html.escape(f"{panel.get('title') or panel['y']}: {panel['y']} against {panel['x']}")
    return (
        f'<div class="panel"><div class="chart" role="img" aria-label="{label}" data-spec="{k}"></div><p class="save">'
        '<button data-save="png">PNG</button><button data-save="svg">SVG</button><button data-save="csv">CSV</button>'
        f'</p><details data-table="{k}"><summary>{len(rows(panel))} numbers</summary></details></div>'
    )


def _plain_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{typeset(cell)}</th>' for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{typeset(str(cell))}</td>" for cell in row) + "</tr>" for row in body)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


_SCRIPT = re.compile(r"([\^_])(\{[^{}]*\}|\([^()]*\)|[−-]?[\w½¼⅓⅔∞*]+)")


def typeset(text: str) -> str:
    """Plain text with x^2, a_k and n^{−1/2} as HTML.

    >>> typeset("‖W₁‖ ≤ n^{−1/2} & λ_max")
    '‖W₁‖ ≤ n<sup>−1/2</sup> &amp; λ<sub>max</sub>'
    """

    def raised(match: re.Match[str]) -> str:
        mark, what = match.groups()
        # A name such as steppe_x has a word before its underscore; a symbol is one letter.
        before = re.search(r"\w*$", text_before(match))
        if mark == "_" and before is not None and len(before.group()) != 1:
            return match.group()
        tag = "sup" if mark == "^" else "sub"
        return f"<{tag}>{what[1:-1] if what[0] == '{' else what}</{tag}>"

    def text_before(match: re.Match[str]) -> str:
        return match.string[: match.start()]

    return _SCRIPT.sub(raised, html.escape(plain(str(text))))
