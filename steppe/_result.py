"""What a computation returns: it prints on one screen, is a table of columns, and draws itself."""

import abc
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.estimate import Estimate

__all__ = ["Result", "Table", "columns", "panel", "picture"]

Table = dict[str, NDArray[Any]]

# One screen: a line for each field, and the first and last rows of the table.
_WIDTH, _FIELDS, _ROWS = 118, 10, 4
# Panels of a picture, and lines in it with a label each.
_PANELS, _LABELS = 8, 6
_COLOURS = ("blue", "orange", "green", "pink", "sky", "red")


def __dir__() -> list[str]:
    return list(__all__)


class Result(abc.ABC):
    """The base of all results. A result is frozen; its `repr` never prints whole arrays.

    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Squares(Result):
    ...     n: int
    ...     def table(self): return {"k": np.arange(self.n), "square": np.arange(self.n) ** 2}
    ...     def draw(self): return picture("squares", [panel("k", [1, 2], "k²", {"": [1, 4]})])
    >>> Squares(1000)
    Squares
      n  1,000
      table of 1,000 rows
        k   square
        0        0
        1        1
        2        4
        3        9
      ...      ...
      996  992,016
      997  994,009
      998  996,004
      999  998,001
    """

    @abc.abstractmethod
    def table(self) -> Table:
        """Columns of equal length by name: `pandas.DataFrame(result.table())`, or the same with polars."""

    @abc.abstractmethod
    def draw(self) -> Any:
        """A figure of matplotlib; `figure.savefig(path)` keeps it."""

    def __repr__(self) -> str:
        names = [field.name for field in dataclasses.fields(self)] if dataclasses.is_dataclass(self) else list[str]()
        width = max(map(len, names), default=0)
        lines = [f"  {name:<{width}}  {_shown(getattr(self, name))}" for name in names[:_FIELDS]]
        lines = [type(self).__name__, *lines, *_rows(self.table())]
        return "\n".join(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)


def columns(found: Mapping[str, Any]) -> Table:
    """Arrays of equal length as a table; a column with several numbers a row becomes several columns, name.0, name.1 …

    >>> {name: column.tolist() for name, column in columns({"a": [1, 2], "b": [[3, 4], [5, 6]]}).items()}
    {'a': [1, 2], 'b.0': [3, 5], 'b.1': [4, 6]}
    """
    table: Table = {}
    for name, values in found.items():
        column = np.asarray(values)
        if column.ndim == 1:
            table[name] = column
        else:
            table |= {f"{name}.{k}": part for k, part in enumerate(column.reshape(len(column), -1).T)}
    return table


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Number):
        return str(value)
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:.6g}"


def _shown(value: Any) -> str:
    """A value on one line."""
    if value is None or isinstance(value, str | Number | np.bool_):
        return _number(value)
    if isinstance(value, Estimate):
        return f"{value.value:.6g} in [{value.lower:.6g}, {value.upper:.6g}] at confidence {value.confidence:g}"
    if isinstance(value, Mapping):
        return f"columns {', '.join(value)}" if value else "none"
    if isinstance(value, tuple | list):
        if len(value) <= _LABELS and all(isinstance(one, str | Number) for one in value):
            return ", ".join(map(_number, value)) or "none"
        kinds = Counter(one if isinstance(one, str) else type(one).__name__ for one in value).most_common(_LABELS)
        return ", ".join(f"{count:,} × {kind}".replace("ndarray", "array") for kind, count in kinds) or "none"
    return _array(np.asarray(value))


def _array(array: NDArray[Any]) -> str:
    if array.ndim == 0 or array.dtype == object:
        return str(array)
    if array.dtype.kind in "US":
        return _shown(array.ravel().tolist())
    if array.ndim == 1 and array.size <= _LABELS:
        return "[" + ", ".join(map(_number, array)) + "]"
    what = f"{array.dtype} of shape {array.shape}"
    known = array[np.isfinite(array)]
    if array.dtype == bool:
        return f"{what}, {array.sum():,} true"
    if not known.size:
        return what
    span = f"{what}, from {_number(known.min())} to {_number(known.max())}"
    return span if known.size == array.size else f"{span}, {array.size - known.size:,} not finite"


def _rows(table: Table) -> list[str]:
    """The first and the last rows of a table; none if it has one row, which the fields have told already."""
    length = len(next(iter(table.values()), ()))
    if length < 2:
        return []
    cut = length > 2 * _ROWS + 1
    shown = [*range(_ROWS), *range(length - _ROWS, length)] if cut else range(length)
    text = [[name, *(_number(column[k]) for k in shown)] for name, column in table.items()]
    if cut:
        for cells in text:
            cells.insert(_ROWS + 1, "...")
    widths = [max(map(len, cells)) for cells in text]
    most = int(np.searchsorted(np.cumsum([2 + width for width in widths]), _WIDTH, side="right"))
    lines = [
        "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=False))
        for row in zip(*text[:most], strict=True)
    ]
    left = f", {len(text) - most} more columns" if len(text) > most else ""
    return [f"  table of {length:,} rows{left}", *lines]


def panel(x_label: str, x: Any, y_label: str, lines: Mapping[str, Any], *, kind: str = "line") -> dict[str, Any]:
    """A panel of `steppe.figures.panels`: each line is drawn against x, with its key as label if there are few.

    An axis is logarithmic if all its numbers are positive and span two decades or more.
    """
    x, few = np.asarray(x, dtype=float), len(lines) <= _LABELS
    series = [
        {
            "x": x, "y": np.asarray(y, dtype=float), "kind": kind if few or kind != "line" else "thin",
            "colour": _COLOURS[k % len(_COLOURS) if few else 0], "label": label if few and label else None,
        }
        for k, (label, y) in enumerate(lines.items())
    ]  # fmt: skip
    every = [one["y"] for one in series]
    log = "x" * _decades([x]) + "y" * _decades(every)
    return {"x": x_label, "y": y_label, "series": series, "log": log}


def _decades(arrays: Iterable[NDArray[Any]]) -> bool:
    values = np.concatenate([a[np.isfinite(a)].ravel() for a in arrays] or [np.empty(0)])
    return bool(values.size and values.min() > 0 and values.max() >= 100 * values.min())


def picture(title: str, panels: Sequence[Mapping[str, Any]]) -> Any:
    """The figure of these panels, of the first eight if there are more."""
    from steppe import figures

    return figures.panels({"title": title, "panels": panels[:_PANELS]})
