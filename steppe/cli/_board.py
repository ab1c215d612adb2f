"""What long work shows: a live board with one line a run on a terminal, plain lines elsewhere, or nothing."""

import math
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from steppe.cli._shared import duration

_LINE_SECONDS = 15.0
_NAMES = ("epoch", "loss", "trace", "sharpness", "test accuracy", "steps/s", "left")


class Board:
    """Shows progress: `execute(specs, store, watch=board)`. Runs without a label are shown while they run."""

    def __init__(self, labels: Mapping[str, str], *, silent: bool):
        self.labels, self.silent = labels, silent
        self.rows: dict[str, tuple[str, Any]] = {}
        self.printed: dict[str, float] = {}
        self.lock = threading.Lock()
        self.live: Any = None

    def __enter__(self) -> Self:
        if not self.silent and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), refresh_per_second=8, get_renderable=self._table)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, id: str, state: str, news: Any) -> None:
        with self.lock:
            if news is None and state == "running":
                news = self.rows.get(id, ("", None))[1]
            self.rows[id] = (state, news if news is not None else self.rows.get(id, ("", None))[1])
            if not self.silent and self.live is None:
                self._line(id, state)

    def _line(self, id: str, state: str) -> None:
        now, news = time.monotonic(), self.rows[id][1]
        if state == "running" and news is not None and now - self.printed.get(id, -math.inf) < _LINE_SECONDS:
            return
        self.printed[id] = now
        cells = " · ".join(cell for cell in _cells(news) if cell)
        print(
            f"{self._label(id)}: {state}" + (f" · {cells}" if cells else ""),
            file=sys.stderr,
            flush=True,
        )

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("run", "state", *_NAMES):
            table.add_column(column, justify="left" if column in ("run", "state") else "right")
        with self.lock:
            under_way = [id for id, (state, _) in self.rows.items() if id not in self.labels and state != "done"]
            for id in [*self.labels, *under_way]:
                state, news = self.rows.get(id, ("queued", None))
                values = ["" if state != "running" and k >= len(_NAMES) - 2 else c for k, c in enumerate(_values(news))]
                table.add_row(self._label(id), state, *values)
        return table

    def _label(self, id: str) -> str:
        """A run of a sweep goes by its rate."""
        news = self.rows.get(id, ("", None))[1]
        lr = getattr(news, "latest", {}).get("lr")
        return self.labels.get(id, id[:8] if lr is None else f"η = {lr:.4g}")


def _values(news: Any) -> list[str]:
    """What `_NAMES` says; empty where not known."""
    if news is None or isinstance(news, str):
        return [news or "", *[""] * (len(_NAMES) - 1)]
    latest = news.latest
    loss = latest.get("train_loss", latest.get("loss"))
    left = (news.epochs - news.epoch) / max(news.epoch, 1e-9) * news.step / max(news.steps_per_second, 1e-9)
    return [
        f"{news.epoch:,.0f}" + (f"/{news.epochs:,.0f}" if math.isfinite(news.epochs) else ""),
        "" if loss is None else f"{loss:.2e}",
        f"{latest['trace']:.2f}" if "trace" in latest else "",
        f"{latest['sharpness']:.4g}" if "sharpness" in latest else "",
        f"{latest['test_accuracy']:.4f}" if "test_accuracy" in latest else "",
        f"{news.steps_per_second:,.0f}" if news.steps_per_second >= 10 else f"{news.steps_per_second:.2g}",
        duration(left) if math.isfinite(left) else "",
    ]


def _cells(news: Any) -> list[str]:
    if isinstance(news, str):
        return [news]
    return [f"{name} {value}" for name, value in zip(_NAMES, _values(news), strict=True) if value]
