"""The rows of table 1 with their results, as a table in Markdown, from the JSON files of the rows' figures."""

import json
from pathlib import Path
from typing import Any

from steppe.papers.conflicting_biases.table_1 import Row, rows

_HEAD = ("row", "scale", "network, data", "seeds", "η_c", "corner/η_c", "printed", "ours", "agree", "gradients")


def markdown(folder: Path) -> str:
    """One line for each row and scale that has a result in `folder`, and one for each row without.

    Several seeds are separated by commas, in their order; the interval is that of the first seed. The corner is that of
    the sharpness of the ends with squared loss, of its smoothed maximum with cross-entropy. `gradients` is the cost of
    all seeds, products with ∇²L counted twice.
    """
    lines = [line for row in rows().values() for line in _lines(row, folder)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (_HEAD, ["---"] * len(_HEAD), *lines)) + "\n"


def _lines(row: Row, folder: Path) -> list[list[str]]:
    found = []
    for scale in ("laptop", "paper"):
        path = folder / f"row-{row.name}-{scale}.json"
        results = json.loads(path.read_text(encoding="utf-8")).get("rows") if path.exists() else None
        if results:
            found.append([row.name, scale, *_cells(row, results)])
    if found or not row.figures:
        return found
    return [[row.name, "not run", *[""] * (len(_HEAD) - 2)]]


def _cells(row: Row, results: list[dict[str, Any]]) -> list[str]:
    network = ", ".join(results[0]["setting"].split(", ")[:2])
    corners = [_corner(row, one, interval=k == 0) for k, one in enumerate(results)]
    marks = [one.get("u_shape", "") for one in results]
    agree = ["yes" if ("✓" in mark) == ("✓" in row.mark) else "no" for mark in marks if mark and row.mark != "-"]
    return [
        network, ", ".join(str(one["seed"]) for one in results),
        ", ".join(f"{one['critical_rate']:.3g}" for one in results), ", ".join(corners), row.mark, ", ".join(marks),
        ", ".join(agree), f"{sum(one['gradients'] for one in results):,}" if "gradients" in results[0] else "",
    ]  # fmt: skip


def _corner(row: Row, one: dict[str, Any], *, interval: bool) -> str:
    fit = one.get("sharpness" if row.setting.loss == "half_mse" else "smoothed_sharpness")
    if fit is None:
        return "too few rates"
    if fit["interval"] is None:
        return "none"
    lower, upper = fit["interval"]
    return f"{fit['leaves_over_critical']:.2f}" + (f" [{lower:.2f}, {upper:.2f}]" if interval else "")
