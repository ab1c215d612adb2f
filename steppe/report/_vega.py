"""A panel as a Vega-Lite specification: zoom, hover, and series that a click on the legend hides."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steppe.figures._style import COLOURS

Spec = dict[str, Any]
# A picture of 310 points across shows no more than this of a curve.
MOST = 600
_MARKS: Mapping[str, Mapping[str, Any]] = {
    "line": {"type": "line", "strokeWidth": 1.8},
    "thin": {"type": "line", "strokeWidth": 0.9},
    "dashed": {"type": "line", "strokeWidth": 1.3, "strokeDash": [6, 3]},
    "dotted": {"type": "line", "strokeWidth": 1.3, "strokeDash": [1.5, 2.5]},
    "points": {"type": "point", "filled": True, "size": 22},
    "crosses": {"type": "point", "shape": "cross", "filled": True, "size": 36},
    "circles": {"type": "point", "filled": False, "size": 44},
    "squares": {"type": "point", "shape": "square", "filled": False, "size": 36},
    "joined": {"type": "line", "strokeWidth": 1, "point": {"size": 22}},
}
_ONCE: Spec = {"data": {"values": [{}]}}  # a line is drawn once, not for each number
_INVISIBLE = {"type": "point", "size": 60, "opacity": 0}  # what the mouse finds of a line


def rows(panel: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The plotted numbers of a panel, a row each: series, x, y, and low and high of bands and error bars.

    >>> rows({"series": [{"x": [1, 2], "y": [3.0, None], "label": "loss", "kind": "line", "colour": "blue"}]})
    [{'series': 'loss', 'id': 0, 'kind': 'line', 'x': 1, 'y': 3}]
    """
    found = []
    for k, one in enumerate(panel["series"]):
        label = plain(one.get("label") or f"series {k + 1}")
        shared = {"series": label, "id": k, "kind": one["kind"]}
        columns = {name: _listed(one[name]) for name in ("x", "y", "low", "high", "note") if name in one} | _bars(one)
        for values in _thinned(list(zip(*columns.values(), strict=True))):
            row = {name: _short(value) for name, value in zip(columns, values, strict=True)}
            if None not in row.values():
                found.append(shared | row)
    return found


def _bars(one: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Ends of the error bars; `error` is one number, one for each point, or two rows: below and above."""
    if "error" not in one:
        return {}
    error = np.broadcast_to(np.asarray(one["error"], dtype=float), (2, len(one["y"])))
    y = np.asarray(one["y"], dtype=float)
    return {"low": list(y - error[0]), "high": list(y + error[1])}


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _thinned(values: list[Any]) -> list[Any]:
    """At most `MOST` of them, evenly, the first and the last among them."""
    if len(values) <= MOST:
        return values
    step = (len(values) - 1) / (MOST - 1)
    return [values[round(k * step)] for k in range(MOST)]


def _short(value: Any) -> Any:
    """A number with six digits; None for what is not finite."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return (
        (int(number) if number.is_integer() and abs(number) < 1e15 else float(f"{number:.6g}"))
        if math.isfinite(number)
        else None
    )


def spec(panel: Mapping[str, Any]) -> Spec:
    """The panel for Vega-Lite 6, with its numbers inside."""
    found = rows(panel)
    x, y = (_axis(panel, name, found) for name in ("x", "y"))
    colour = _colours(panel)
    seen = {"condition": {"param": "shown", "value": 1}, "value": 0.04}
    note = [{"field": "note", "title": "at"}] if any("note" in row for row in found) else []
    tooltip = [
        {"field": "series"},
        {"field": "x", "title": panel["x"], "format": ".5g"},
        {"field": "y", "title": panel["y"], "format": ".5g"},
        *note,
    ]
    layers: list[Spec] = []
    for kind in dict.fromkeys(row["kind"] for row in found):
        only = [{"filter": {"field": "kind", "equal": kind}}]
        shared = {"x": x, "color": colour, "detail": {"field": "id"}}
        if kind == "band":
            span = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
            opacity = {"condition": {"param": "shown", "value": 0.22}, "value": 0.02}
            layers.append(
                {"transform": only, "mark": {"type": "area"}, "encoding": shared | span | {"opacity": opacity}}
            )
            continue
        marks = {"x": x, "y": y, "color": colour, "detail": {"field": "id"}, "opacity": seen}
        layers.append({"transform": only, "mark": dict(_MARKS[kind]), "encoding": marks | {"tooltip": tooltip}})
        if _MARKS[kind]["type"] == "line" and kind != "joined":
            hovered = {"x": x, "y": y, "tooltip": tooltip}
            layers.append({"transform": only, "mark": dict(_INVISIBLE), "encoding": hovered})
        if any(row["kind"] == kind and "low" in row for row in found):
            bars = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour, "opacity": seen}
            layers.append({"transform": only, "mark": {"type": "rule"}, "encoding": bars})
    layers += [*_spans(panel), *_rules(panel.get("places", ()), "x"), *_rules(panel.get("levels", ()), "y")]
    if not layers:
        layers = [{"mark": "point", "encoding": {"x": x, "y": y}}]
    layers[0]["params"] = [
        {"name": "zoom", "select": "interval", "bind": "scales"},
        {"name": "shown", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"},
    ]
    title = {"title": {"text": plain(panel["title"]), "anchor": "start", "limit": 360}} if panel.get("title") else {}
    return {"width": 310, "height": 220, "data": {"name": "numbers", "values": found}, "layer": layers} | title


def _axis(panel: Mapping[str, Any], name: str, found: Sequence[Mapping[str, Any]]) -> Spec:
    values = [row[key] for row in found for key in ((name,) if name == "x" else ("y", "low", "high")) if key in row]
    scale: Spec = {"zero": False}
    if name == "y" and panel.get("symlog"):
        scale = {"type": "symlog"}
    elif name in panel.get("log", "") and any(value > 0 for value in values):
        scale = {"type": "log", "nice": False}
    limits = panel.get("limits", {}).get(name)
    if limits is None and name == "y" and "top" in panel:
        limits = [0, panel["top"]]
    if limits is not None:
        scale |= {"domain": list(limits), "nice": False}
    axis = {"title": plain(panel[name]), "titleLimit": 300, "tickCount": 6, "labelOverlap": True}
    if scale.get("type") == "log":
        axis |= _decades([value for value in values if value > 0])
    encoding: Spec = {"field": name, "type": "quantitative", "scale": scale, "axis": axis}
    return encoding


def _decades(values: Sequence[float]) -> Spec:
    """Ticks at powers of ten, where there are some."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    if high - low < 3:
        return {}
    step = -(-(high - low) // 6)
    return {"values": [10.0**k for k in range(low, high + 1, step)], "format": "~g" if low > -4 and high < 6 else ".0e"}


_SYMBOLS = {"eta": "η", "lambda": "λ", "rho": "ρ", "nu": "ν", "ell": "ℓ", "alpha": "α", "theta": "θ", "leq": "≤"}


def plain(text: str) -> str:
    r"""A label without TeX.

    >>> plain(r"critical rate $\eta_c$")
    'critical rate η_c'
    """
    for match in re.findall(r"\$[^$]*\$", text):
        text = text.replace(match, re.sub(r"\\([a-z]+)", lambda m: _SYMBOLS.get(m[1], m[1]), match[1:-1]))
    return text


def _colours(panel: Mapping[str, Any]) -> Spec:
    """One colour a label. Only what has a label of its own is in the legend."""
    named: dict[str, str] = {}
    for k, one in enumerate(panel["series"]):
        named.setdefault(plain(one.get("label") or f"series {k + 1}"), COLOURS[one["colour"]])
    listed = list(dict.fromkeys(plain(one["label"]) for one in panel["series"] if one.get("label")))
    legend: Spec | None = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 320, "values": listed}
    scale = {"domain": list(named), "range": list(named.values())}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend if listed else None}


def _rules(lines: Sequence[Mapping[str, Any]], name: str) -> list[Spec]:
    """Vertical lines at places, horizontal ones at levels, each with its label."""
    found: list[Spec] = []
    for line in lines:
        at = {name: {"datum": _short(line["at"]), "type": "quantitative"}}
        colour = COLOURS[line.get("colour", "ink")]
        found.append(_ONCE | {"mark": {"type": "rule", "strokeDash": [3, 3], "color": colour}, "encoding": at})
        text = {
            "type": "text",
            "text": plain(line.get("label", "")),
            "fontSize": 10,
            "align": "left",
            "dx": 3,
            "color": colour,
        }
        where = {"y": {"value": 4}, "x": at["x"]} if name == "x" else {"x": {"value": 2}, "y": at["y"]}
        found.append(_ONCE | {"mark": text | {"dy": 4 if name == "x" else -5}, "encoding": where})
    return found


def _spans(panel: Mapping[str, Any]) -> list[Spec]:
    return [
        _ONCE
        | {
            "mark": {"type": "rect", "color": COLOURS[span.get("colour", "faint")], "opacity": 0.22},
            "encoding": {"x": {"datum": span["from"], "type": "quantitative"}, "x2": {"datum": span["to"]}},
        }
        for span in panel.get("spans", ())
    ]
