"""What a run writes down: named numbers at chosen moments, as columns."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.estimate import Estimate
from steppe.problem import Problem

Record = Mapping[str, Callable[[Problem, Array], Any]]
Columns = dict[str, NDArray[Any]]
_RESERVED = ("step", "epoch", "time")

loss_at = eqx.filter_jit(lambda problem, w: problem.loss(w))
LOSS: Record = {"loss": loss_at}


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Columns:
    """The arrays of a checkpoint whose names begin with the prefix, by the rest of their names."""
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


class Recorder:
    """Collects rows. An estimate that is not exact also fills the columns `name.lower` and `name.upper`."""

    def __init__(self, record: Record):
        for name, function in record.items():
            if name in _RESERVED or not callable(function):
                remedy = f"Pass for example {{'trace': steppe.measures.trace}}; {_RESERVED} are always recorded."
                check.refuse(f"record[{name!r}]", "a function of (problem, w)", function, remedy)
        self._record = record
        self._rows: list[dict[str, Any]] = []

    @property
    def last(self) -> Mapping[str, Any]:
        return self._rows[-1] if self._rows else {}

    def __call__(self, problem: Problem, w: Array, step: int, epoch: float, time: float | None = None) -> None:
        """`time` is the time of a flow, or None."""
        row: dict[str, Any] = {"step": step, "epoch": epoch} | ({} if time is None else {"time": time})
        for name, function in self._record.items():
            row |= _cells(name, function(problem, w))
        self._rows.append(row)

    def columns(self) -> Columns:
        """In the order of `record`: a checkpoint does not keep the order of the names."""
        found = {name for row in self._rows for name in row}
        every = (*_RESERVED, *(name + end for name in self._record for end in ("", ".lower", ".upper")))
        names = [name for name in every if name in found]
        kind = {"step": np.int64}
        # An estimate may be exact at some moments only: there its bounds equal its value.
        return {
            name: np.asarray([row.get(name, row.get(name.rsplit(".", 1)[0])) for row in self._rows], kind.get(name))
            for name in names
        }

    def rewind(self, step: int) -> None:
        """Forget the rows from this step on."""
        self._rows = [row for row in self._rows if row["step"] < step]

    def restore(self, columns: Columns) -> None:
        names = list(columns)
        self._rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cells(name: str, result: Any) -> dict[str, Any]:
    if isinstance(result, Estimate):
        cells = {name: result.value}
        return cells if result.is_exact else cells | {f"{name}.lower": result.lower, f"{name}.upper": result.upper}
    array = np.asarray(result)
    return {name: array.item() if array.ndim == 0 else array}
