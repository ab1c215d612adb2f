"""What a sweep came to: a table with a row a run, and a picture of any column against any axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe import check
from steppe._result import Result, Table
from steppe.sweep._axes import Point

if TYPE_CHECKING:
    from steppe.store import Entry

_MOST_LINES = 6
_COLOURS = ("blue", "orange", "green", "pink", "sky", "red")


@dataclass(frozen=True, repr=False)
class Swept(Result):
    """The finished runs of a sweep, at their points; None where a run failed, and then `failures` says why."""

    points: tuple[Point, ...]
    ids: tuple[str, ...]
    entries: "tuple[Entry | None, ...]"
    failures: Mapping[str, str]

    def table(self) -> Table:
        """One row a run: its name, its point, its outcome, and every number of its result. A missing number is NaN."""
        rows = [_numbers(entry) for entry in self.entries]
        axes = {name: _column([point[name] for point in self.points]) for name in self.points[0]}
        outcomes = ["failed" if e is None else str(e.result.get("outcome", "finished")) for e in self.entries]
        names = dict.fromkeys(name for row in rows for name in row if name not in axes)
        numbers = {name: np.array([row.get(name, np.nan) for row in rows], dtype=float) for name in names}
        return {"run": np.array(self.ids), **axes, "outcome": np.array(outcomes), **numbers}

    def draw(self, y: str | None = None, x: str | None = None) -> Any:
        """A column against an axis. Lines are medians over the seeds, one line for each point of the other axes; bands
        reach from the least to the largest value of a seed."""
        from steppe import figures

        return figures.panels(self.numbers(y, x))

    def numbers(self, y: str | None = None, x: str | None = None) -> dict[str, Any]:
        """What `draw` draws, as plain JSON."""
        table = self.table()
        x = x or next((name for name in self.points[0] if name != "seed" and table[name].dtype.kind in "iuf"), "seed")
        plotted = [n for n, c in table.items() if c.dtype.kind == "f" and n not in self.points[0] and n != "step"]
        y = y or next((name for name in ("loss", *plotted) if name in plotted), None)
        for argument, name in (("x", x), ("y", y)):
            if name not in table or table[name].dtype.kind not in "iuf":
                known = [n for n, c in table.items() if c.dtype.kind in "iuf"]
                raise check.ArgumentError(f"{argument}: no column of numbers is called {name!r}. {_known(name, known)}")
        assert y is not None
        others = [name for name in self.points[0] if name not in (x, "seed", y)]
        groups: dict[str, list[int]] = {}
        for k, point in enumerate(self.points):
            if self.entries[k] is not None:
                groups.setdefault(", ".join(f"{name} {_text(point[name])}" for name in others), []).append(k)
        few = len(groups) <= _MOST_LINES
        series = [_line(table[x][at], table[y][at]) for at in map(np.array, groups.values())]
        styles = [
            {"kind": "joined" if few else "thin", "colour": _COLOURS[k % len(_COLOURS) if few else 0]}
            | ({"label": label} if few and label else {})
            for k, label in enumerate(groups)
        ]
        if (x, y) == ("lr", "sharpness"):
            rates = np.unique(table["lr"])
            limit = {"x": rates.tolist(), "y": (2 / rates).tolist(), "label": "2/η"}
            series, styles = [*series, limit], [*styles, {"kind": "dashed", "colour": "ink"}]
        seeds = len({point.get("seed") for point in self.points})
        every = np.concatenate([np.array(one["y"], float) for one in series])
        panel: dict[str, Any] = {
            "x": _AXIS.get(x, x), "y": y.replace("_", " "), "log": "x" * _decades(table[x]) + "y" * _decades(every),
            "series": [one | style for one, style in zip(series, styles, strict=True)],
        }  # fmt: skip
        if seeds > 1 and x != "seed":
            panel["title"] = f"median of {seeds} seeds; band: least to largest"
        return {"title": f"{y.replace('_', ' ')} against {x}", "panels": [panel]}


_AXIS = {"lr": "learning rate η", "rho": "perturbation radius ρ", "seed": "seed"}


def _known(name: Any, known: Sequence[str]) -> str:
    return check.suggest(str(name), known) if known else "No run has a number yet."


def _numbers(entry: "Entry | None") -> dict[str, float]:
    """Every number of a result, those of `final` by their own names."""
    if entry is None:
        return {}
    result = dict(entry.result)
    final = result.pop("final", {})
    found = result | (final if isinstance(final, dict) else {})
    return {name: v for name, v in found.items() if isinstance(v, int | float) and not isinstance(v, bool)}


def _column(values: Sequence[Any]) -> Any:
    """An array of numbers or truth values, or of texts."""
    if all(isinstance(v, int | float) for v in values) or all(isinstance(v, bool) for v in values):
        return np.array(values)
    return np.array([_text(v) for v in values])


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(x: Any, y: Any) -> dict[str, Any]:
    """The median of the finite values at each x, and from where to where they reach."""
    places = np.unique(x)
    found = [y[(x == place) & np.isfinite(y)] for place in places]
    kept = [(float(p), values) for p, values in zip(places, found, strict=True) if len(values)]
    line: dict[str, Any] = {"x": [p for p, _ in kept], "y": [float(np.median(values)) for _, values in kept]}
    if any(len(values) > 1 for _, values in kept):
        line |= {"low": [float(v.min()) for _, v in kept], "high": [float(v.max()) for _, v in kept]}
    return line


def _decades(values: Any) -> bool:
    known = values[np.isfinite(values)].astype(float)
    return bool(known.size and known.min() > 0 and known.max() >= 30 * known.min())
