"""What a computation returns: it prints on one screen, is a table of columns, and draws itself."""

import abc
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.estimate import Estimate

__all__ = ["Result", "Rows", "Table", "columns", "drawn", "panel", "picture"]

Table = dict[str, NDArray[Any]]

# One screen: a line for each field, and the first and last rows of the table.
_WIDTH, _FIELDS, _ROWS = 118, 10, 4
# Panels of a picture, and lines in it with a label each.
_PANELS, _LABELS = 8, 6
_COLOURS = ("blue", "orange", "green", "pink", "sky", "red")


def __dir__() -> list[str]:
    return list(__all__)


class Result(abc.ABC):
    """The base of all results. A result is frozen; its `repr` never prints whole arrays."""

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
        table = self.table()
        one_row = len(next(iter(table.values()), ())) < 2  # the fields, if there are any, have told it
        lines = [type(self).__name__, *lines, *([] if names and one_row else _rows(table))]
        return "\n".join(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)


class Rows(Result):
    """A result whose table is made of some of its fields, the `columns`, and of the row number, called `index`.

    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Squares(Rows, index="k", columns=("square",)):
    ...     square: NDArray[Any]
    >>> Squares(np.arange(1000) ** 2)
    Squares
      square  int64 of shape (1000,), from 0 to 998,001
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

    _index: ClassVar[str]
    _columns: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, *, index: str = "", columns: tuple[str, ...] = ()) -> None:
        if columns:
            cls._index, cls._columns = index, columns

    def table(self) -> Table:
        """One row for each entry."""
        found = columns({name: getattr(self, name) for name in self._columns})
        return {self._index: np.arange(len(next(iter(found.values())))), **found}

    def draw(self) -> Any:
        """Every column of numbers against the row."""
        return drawn(type(self).__name__, self.table(), kind="points")


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
    """The first and the last rows of a table."""
    length = len(next(iter(table.values()), ()))
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


def drawn(title: str, table: Table, *, kind: str = "line") -> Any:
    """Every column of numbers against the first one; `name.lower` and `name.upper` are drawn with `name`."""
    first, *rest = [name for name, column in table.items() if column.dtype.kind in "biuf"] or [""]
    groups: dict[str, dict[str, Any]] = {}
    for name in rest:
        end = next((end for end in ("lower", "upper") if name.endswith(f".{end}")), "")
        groups.setdefault(name.removesuffix(f".{end}"), {})[end] = table[name]
    return picture(title, [panel(first, table[first], name, lines, kind=kind) for name, lines in groups.items()])


def picture(title: str, panels: Sequence[Mapping[str, Any]]) -> Any:
    """The figure of these panels, of the first eight if there are more."""
    from steppe import figures

    if not panels:
        check.refuse("record", "of at least one quantity for a picture", "nothing", "Pass for example record=None.")
    return figures.panels({"title": title, "panels": panels[:_PANELS]})
