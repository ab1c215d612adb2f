"""The rows of a monitor: columns, a CSV file, TensorBoard, Weights & Biases, a figure."""

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from steppe import check

Row = dict[str, Any]


@final
class Table:
    """Rows in memory, and in a file that has every row as soon as it is added."""

    def __init__(self, file: str | Path | None = None) -> None:
        self.rows: list[Row] = []
        self._file = None if file is None else Path(file)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._file is not None:
            self._append(self._file, row)

    def columns(self) -> dict[str, list[Any]]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]} if self.rows else {}

    def replace(self, columns: Mapping[str, list[Any]]) -> None:
        """These rows instead; the file is written anew, because a killed run wrote rows after its last checkpoint."""
        self.rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            for row in self.rows:
                self._append(self._file, row)

    def _append(self, file: Path, row: Row) -> None:
        new = not file.exists() or file.stat().st_size == 0
        if not new:
            with file.open(newline="", encoding="utf-8") as stream:
                header = next(csv.reader(stream))
            if header != list(row):
                check.refuse("csv", f"a file with the columns {', '.join(row)}", header, "Pass the name of a new file.")
        with file.open("a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)

    def draw(self, convention: str) -> Any:
        """Curvature against the threshold, the ratio of the edge against 2, the loss."""
        from steppe.figures import panels

        columns = self.columns()
        if not columns:
            raise check.ArgumentError("there must be a row to draw; nothing was measured yet. Train for more steps.")

        def series(name: str, label: str, colour: str, kind: str = "points") -> dict[str, Any]:
            return {"x": columns["step"], "y": columns[name], "label": label, "colour": colour, "kind": kind}

        def some(name: str) -> bool:
            return any(math.isfinite(v) for v in columns[name])

        two = {"x": columns["step"], "y": [2.0] * len(self.rows), "label": "2", "colour": "ink", "kind": "dashed"}
        curvature, same = [], columns["preconditioned"] == columns["sharpness"]
        if some("preconditioned") and not same:
            curvature.append(series("preconditioned", "preconditioned sharpness", "orange"))
        if some("sharpness"):
            curvature.append(series("sharpness", "sharpness", "blue"))
        if some("threshold"):
            curvature.append(series("threshold", "unstable above", "ink", "dashed"))
        edge = [series("edge", "probe batch", "blue"), two]
        if some("batch_edge"):
            edge.insert(1, series("batch_edge", "batch at hand", "sky"))
        return panels(
            {
                "title": convention,
                "panels": [
                    {"x": "step", "y": "largest eigenvalue", "log": "y", "series": curvature},
                    {"x": "step", "y": "ΔᵀHΔ / (−gᵀΔ) of the step", "series": edge},
                    {"x": "step", "y": "loss of the probe batch", "log": "y", "series": [series("loss", "", "green")]},
                ],
            }
        )


def writer(to: Any) -> Callable[[Row], None]:
    """How a row is passed on: to a SummaryWriter of TensorBoard, a run of Weights & Biases, or a function."""
    scalar, log = getattr(to, "add_scalar", None), getattr(to, "log", None)
    if scalar is not None:

        def tensorboard(row: Row) -> None:
            for name, value in _numbers(row).items():
                scalar(f"steppe/{name}", value, row["step"])

        return tensorboard
    if log is not None:
        # The run has a step of its own, which must not go back: ours is an axis.
        if (define := getattr(to, "define_metric", None)) is not None:
            define("steppe/*", step_metric="steppe/step")
        return lambda row: log({f"steppe/{name}": v for name, v in (_numbers(row) | {"step": row["step"]}).items()})
    if callable(to):
        function: Callable[[Row], None] = to
        return function
    return check.refuse("to", "writers of TensorBoard, runs of Weights & Biases or functions", to, "Pass [writer].")


def _numbers(row: Row) -> dict[str, float]:
    """What was measured; a NaN would be a gap in every chart."""
    return {name: float(v) for name, v in row.items() if name != "step" and math.isfinite(float(v))}
