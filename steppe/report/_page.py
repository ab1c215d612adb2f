"""The table of claims: as one self-contained HTML page with the figures, or as Markdown."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from steppe.experiments import Measured

_MARKS = {"holds": "✓ holds", "fails": "✗ fails", "not-run": "– not run"}
_CSS = """
body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem;margin-bottom:0} .lead{color:#555;margin-top:.2rem}
table{border-collapse:collapse;width:100%;margin:1.5rem 0;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.45rem .6rem;border-bottom:1px solid #ddd}
th{border-bottom:2px solid #222} td.number{font-variant-numeric:tabular-nums;width:22rem}
.holds{color:#00624a;font-weight:600;white-space:nowrap}.fails{color:#a8320a;font-weight:600;white-space:nowrap}
.not-run{color:#666;white-space:nowrap} .detail,.source{color:#666;font-size:.82rem;display:block}
td:first-child{width:13rem}
.misprint{background:#f4f4f4;border-radius:3px;padding:0 .3rem;font-size:.78rem;color:#555;white-space:nowrap}
figure{display:inline-block;margin:0 1rem 1.5rem 0;vertical-align:top;width:27rem;max-width:100%}
figure img{width:100%} figcaption{font-size:.85rem;color:#444}
"""


def page(results: Sequence[Measured], pictures: Sequence[tuple[str, Path]], *, version: str) -> str:
    """HTML with everything inside, for a browser without a network. `pictures`: (caption, PNG)."""
    good = sum(r.as_expected and r.verdict != "not-run" for r in results)
    scales = ", ".join(sorted({r.scale for r in results})) or "none"
    rows = "\n".join(_row(r) for r in results)
    images = "\n".join(_figure(caption, png) for caption, png in pictures)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>steppe: claims</title><style>{_CSS}</style></head><body>
<h1>steppe: the claims, measured</h1>
<p class="lead">{good} of {len(results)} claims are as expected
(scale: {scales}; steppe {html.escape(version)}).
A misprint is a statement as printed that is known to be wrong: it should fail.</p>
<table><thead><tr><th>claim</th><th>statement</th><th>expected</th><th>measured</th><th>verdict</th></tr></thead>
<tbody>
{rows}
</tbody></table>
{images}
</body></html>
"""


def markdown(results: Sequence[Measured]) -> str:
    """The table of claims in Markdown, to paste into a README or an issue."""
    rows = [
        f"| {r.id} | {r.source} | {r.statement} | {r.expected} | {_number(r)} | {_MARKS[r.verdict]}"
        f"{' (misprint)' if r.misprint else ''} | {r.detail.replace('|', '¦')} |"
        for r in results
    ]
    head = "| claim | source | statement | expected | measured | verdict | detail |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- | --- |", *rows]) + "\n"


def _number(r: Measured) -> str:
    return "" if r.measured is None else f"{r.measured:.4g}"


def _row(r: Measured) -> str:
    e = html.escape
    misprint = ' <span class="misprint">misprint</span>' if r.misprint else ""
    return (
        f'<tr id="{e(r.id)}"><td>{e(r.id)}{misprint}<span class="source">{e(r.source)}</span></td>'
        f"<td>{e(r.statement)}</td><td>{e(r.expected)}</td>"
        f'<td class="number">{_number(r)}<span class="detail">{e(r.detail)}</span></td>'
        f'<td class="{r.verdict}">{_MARKS[r.verdict]}</td></tr>'
    )


def _figure(caption: str, png: Path) -> str:
    data = base64.b64encode(png.read_bytes()).decode()
    e = html.escape(caption)
    return f'<figure><img alt="{e}" src="data:image/png;base64,{data}"><figcaption>{e}</figcaption></figure>'
