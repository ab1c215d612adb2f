"""An audit for a person: one screen of text, or one HTML page with its figures inside."""

import base64
import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe._result import panel
from steppe.auditing._result import Audit, Block, Check, Row
from steppe.estimate import Estimate

if TYPE_CHECKING:
    from steppe.auditing._compare import Comparison

_WIDTH = 110
_MARKS = {"holds": "✓", "fails": "✗", "not-run": "–"}
# Blocks on the screen; the page and the JSON have all of them.
_SHOWN = 6


_ONE = {"products": "product", "losses": "loss", "gradients": "gradient"}


def number(x: float) -> str:
    return "–" if math.isnan(x) else "∞" if x == math.inf else f"{x:.4g}"


def interval(e: Estimate) -> str:
    return "exact" if e.is_exact else f"[{number(e.lower)}, {number(e.upper)}]"


def cost(row: Row) -> str:
    if row.estimate is None or not row.estimate.matvecs:
        return ""
    unit = row.unit if row.estimate.matvecs != 1 else _ONE[row.unit]
    return f"{row.estimate.matvecs} {unit}"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    assert row.estimate is not None
    data = "" if row.data is None else f"± {row.data:.2g}"
    loose = "" if row.estimate.converged else " *"
    return row.label, number(row.estimate.value), interval(row.estimate) + loose, data, cost(row)


_BLOCK_HEAD = ("block", "parameters", "norm", "trace", "sharpness")
_HEAD = ("", "value", "interval", "other data", "cost")


def screen(audit: Audit) -> str:
    """The text of `print(audit)`."""
    known, missing = _known(audit), [row for row in audit.rows if row.estimate is None]
    table = _aligned([_HEAD, *(_cells(row) for row in known)])
    lines = [
        f"{audit.title}",
        f"{audit.parameters:,} parameters, {audit.examples:,} examples, {audit.seconds:.1f} s",
        "",
        *table,
    ]
    if any(not row.estimate.converged for row in known if row.estimate is not None):
        lines.append("* the work ended before the interval had the accuracy asked for")
    if audit.optimizer:
        lines += textwrap.wrap(f"edge: {audit.optimizer}", _WIDTH, subsequent_indent="  ")
    if audit.blocks:
        lines += ["", *_blocks(audit.blocks)]
    for row in missing:
        lines += textwrap.wrap(f"{row.label}: {row.note}", _WIDTH, initial_indent="– ", subsequent_indent="  ")
    lines.append("")
    lines += [line for check in audit.checks if check.verdict != "holds" for line in _check(check)]
    held = sum(check.verdict == "holds" for check in audit.checks)
    lines += [f"{held} of {len(audit.checks)} checks hold", "", *textwrap.wrap(audit.reading, _WIDTH)]
    return "\n".join(lines)


def _check(check: Check) -> list[str]:
    return textwrap.wrap(f"{_MARKS[check.verdict]} {check.name}: {check.detail}", _WIDTH, subsequent_indent="  ")


def _blocks(blocks: Sequence[Block]) -> list[str]:
    arrays = [block for block in blocks if block.arrays == 1 or len(blocks) == 1]
    top = sorted(blocks, key=lambda b: -(b.sharpness.value if b.sharpness else b.trace.value if b.trace else 0.0))
    shown = sorted(top[:_SHOWN], key=list(blocks).index)
    rows = [_BLOCK_HEAD, *(_block(b) for b in shown)]
    lines = _aligned(rows)
    if len(blocks) > len(shown):
        lines.append(f"the {len(shown)} sharpest of {len(blocks)} blocks ({len(arrays)} arrays)")
    return lines


def _block(block: Block) -> tuple[str, ...]:
    values = ["–" if e is None else number(e.value) for e in (block.trace, block.sharpness)]
    return (block.name, f"{block.size:,}", number(block.norm), *values)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _known(audit: Audit) -> list[Row]:
    return [row for row in audit.rows if row.estimate is not None]


def side_by_side(found: "Comparison") -> str:
    """The text of a comparison: one line a measure, one column a network."""
    names = list(found.audits)
    rows = [("", *names, "flattest", "separated")]
    for order in found.orders:
        star = " °" if order.invariant else ""
        values = [number(order.values[name]) for name in names]
        rows.append((order.label + star, *values, order.order[0], "yes" if order.separated else "no"))
    lines = [*_aligned(rows), "° rescaling neurons does not change it", "", *textwrap.wrap(found.reading, _WIDTH)]
    return "\n".join(lines)


# The page.

_CSS = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem;margin-bottom:0}h2{font-size:1.15rem;margin-top:2.2rem}.lead{color:#555;margin-top:.2rem}
.reading{background:#f5f7f9;border-left:4px solid #0072B2;padding:.8rem 1rem;margin:1.2rem 0}
table{border-collapse:collapse;width:100%;margin:1rem 0;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #ddd}
th{border-bottom:2px solid #222}td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
.note{color:#666;font-size:.82rem;display:block}.holds{color:#00624a;font-weight:600}.fails{color:#a8320a;font-weight:600}
.not-run{color:#666}figure{display:inline-block;margin:0 1rem 1.5rem 0;vertical-align:top;width:29rem;max-width:100%}
figure.wide{width:46rem}figure img{width:100%}figcaption{font-size:.85rem;color:#444}
"""


def page(audits: Sequence[Audit], comparison: "Comparison | None" = None) -> str:
    """HTML with everything inside. Names of the user's are escaped; nothing is loaded from elsewhere."""
    title = "steppe: comparison" if comparison is not None else f"steppe: audit of {audits[0].title}"
    names = list(comparison.audits) if comparison is not None else [audit.title for audit in audits]
    body = "" if comparison is None else _comparison(comparison)
    body += "\n".join(_section(name, audit) for name, audit in zip(names, audits, strict=True))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{_e(title)}</title><style>{_CSS}</style></head><body>
{body}
</body></html>
"""


def _e(text: Any) -> str:
    return html.escape(str(text))


def _section(name: str, audit: Audit) -> str:
    rows = [
        [_e(c) for c in _cells(row)[:1]] + [_e(c) for c in _cells(row)[1:]] + [_e(row.note)] for row in _known(audit)
    ]
    measured = _table(["measure", "value", "interval", "other data", "cost", "remark"], rows)
    missing = [[_e(row.label), _e(row.note)] for row in audit.rows if row.estimate is None]
    blocks = [[_e(cell) for cell in _block(b)] for b in audit.blocks]
    verdicts = [
        [_e(c.name), f'<span class="{c.verdict}">{_MARKS[c.verdict]} {_e(c.verdict)}</span>', _e(c.detail)]
        for c in audit.checks
    ]
    return f"""<h1>{_e(name)}</h1>
<p class="lead">{audit.parameters:,} parameters, {audit.examples:,} examples; measured in {audit.seconds:.1f} s</p>
<p class="reading">{_e(audit.reading)}</p>
{_pictures(audit)}
<h2>Measures</h2>
<p>An interval is the error of the computation at the stated confidence. “Other data” is the error of the sample:
how far other examples, drawn at the same parameters, would move the number. * The work ended before the accuracy was
reached.</p>
{measured}
{f"<p>Edge of stability: {_e(audit.optimizer)}</p>" if audit.optimizer else ""}
{"<h2>Layers and modules</h2>" + _table(list(_BLOCK_HEAD), blocks) if blocks else ""}
{"<h2>Not measured</h2>" + _table(["measure", "why"], missing) if missing else ""}
<h2>Checks</h2>
{_table(["check", "verdict", "seen"], verdicts)}
"""


def _comparison(found: "Comparison") -> str:
    names = list(found.audits)
    rows = [
        [
            _e(order.label) + (" °" if order.invariant else ""), *(number(order.values[name]) for name in names),
            _e(order.order[0]), "yes" if order.separated else "no", "yes" if order.on_other_data else "no",
        ]
        for order in found.orders
    ]  # fmt: skip
    head = ["measure", *map(_e, names), "flattest", "intervals apart", "also on other data"]
    return (
        f'<h1>Which is flatter?</h1><p class="reading">{_e(found.reading)}</p>{_table(head, rows)}'
        "<p>° Rescaling neurons does not change it.</p>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    lines = [
        "<tr>"
        + "".join(f'<td class="n">{c}</td>' if 0 < k < 5 else f"<td>{c}</td>" for k, c in enumerate(row))
        + "</tr>"
        for row in rows
    ]
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


# Figures.


def panels(audit: Audit) -> list[dict[str, Any]]:
    """Panels of `steppe.figures.panels` for what the audit can show; the values of its rows if it is nothing else."""
    found = [density(audit), *(one["panels"][0] for one in (along(audit), robustness(audit)) if one is not None)]
    shown = [one for one in found if one is not None]
    if shown:
        return shown
    values = [row.estimate.value for row in audit.rows if row.estimate is not None]
    return [panel("row", np.arange(1.0, len(values) + 1), "value", {"": values}, kind="points")]


def density(audit: Audit) -> dict[str, Any] | None:
    """A panel of the spectrum with λ_max."""
    curve, top = audit.curves.get("density"), audit.estimates.get("sharpness")
    if curve is None or top is None:
        return None
    floor = 1e-6 * max(curve["density"])
    one = panel("eigenvalue of ∇²L", curve["grid"], "density", {"": [max(y, floor) for y in curve["density"]]})
    return one | {"places": [{"at": top.value, "label": "λ_max"}], "log": "y"}


def _pictures(audit: Audit) -> str:
    from steppe import figures

    drawn = []
    if (numbers := spectrum(audit)) is not None:
        caption = (
            f"Density of the eigenvalues of ∇²L from {audit.curves['density']['matvecs']} products, and the sharpness "
            "with its interval."
        )
        drawn.append((caption, figures.png(figures.spectrum(numbers)), "wide"))
    if (numbers := along(audit)) is not None:
        caption = "The loss along the negative gradient, and the parabola that the curvature predicts."
        drawn.append((caption, figures.png(figures.panels(numbers)), ""))
    if (numbers := robustness(audit)) is not None:
        caption = "The rise of the loss under changes of the weights, beside what the curvature predicts."
        drawn.append((caption, figures.png(figures.panels(numbers)), ""))
    return "".join(_figure(*one) for one in drawn)


def _figure(caption: str, picture: bytes, kind: str) -> str:
    data = base64.b64encode(picture).decode()
    image = f'<img alt="{_e(caption)}" src="data:image/png;base64,{data}">'
    return f'<figure class="{kind}">{image}<figcaption>{_e(caption)}</figcaption></figure>'


def spectrum(audit: Audit) -> dict[str, Any] | None:
    """The numbers of `steppe.figures.spectrum`."""
    density, top = audit.curves.get("density"), audit.estimates.get("sharpness")
    if density is None or top is None:
        return None
    return {
        "title": "Spectrum of the Hessian", "grid": density["grid"], "density": density["density"],
        "stderr": density["stderr"], "sharpness": top.value, "lower": top.lower, "upper": top.upper,
        "confidence": top.confidence, "lr": audit.curves.get("lr"),
    }  # fmt: skip


def along(audit: Audit) -> dict[str, Any] | None:
    """The numbers of `steppe.figures.panels` for the loss along −∇L."""
    curve: Mapping[str, Any] | None = audit.curves.get("along")
    if curve is None:
        return None
    seen = [(x, y) for x, y in zip(curve["steps"], curve["rise"], strict=True) if math.isfinite(y)]
    series = [
        {"x": [x for x, _ in seen], "y": [y for _, y in seen], "kind": "line", "colour": "blue", "label": "measured"},
        {"x": curve["steps"], "y": curve["predicted"], "kind": "dashed", "colour": "red", "label": "second order"},
    ]
    one = {
        "x": "learning rate η", "y": "L(w − η∇L) − L(w)", "series": series,
        "places": [{"at": curve["critical"], "label": "η*", "low": True}],
    }  # fmt: skip
    return {"title": "Along the negative gradient", "panels": [one]}


def robustness(audit: Audit) -> dict[str, Any] | None:
    """The numbers of `steppe.figures.panels` for measured against predicted rises."""
    known = [(n, rise, model) for n, rise, model in audit.curves.get("robustness", ()) if rise > 0 and model > 0]
    if not known:
        return None
    ends = [min(min(r, m) for _, r, m in known), max(max(r, m) for _, r, m in known)]
    series: list[dict[str, Any]] = [
        {"x": [model], "y": [rise], "kind": "points", "colour": colour, "label": name}
        for (name, rise, model), colour in zip(known, ("blue", "red", "green"), strict=False)
    ]
    series.append({"x": ends, "y": ends, "kind": "dotted", "colour": "ink", "label": "equal"})
    one = {"x": "rise predicted by the curvature", "y": "rise of the loss", "log": "xy", "series": series}
    return {"title": "Robustness", "panels": [one]}
