"""What long work shows: a live board with one line a run on a terminal, plain lines elsewhere, or nothing."""

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from steppe.cli._shared import duration

_LINE_SECONDS = 15.0
_NAMES = ("epoch", "loss", "trace", "sharpness", "test accuracy", "steps/s", "left")
# Shown in this order; the others are only counted.
_SHOWN = ("failed", "running", "waiting", "queued")


class Board:
    """Shows progress: `execute(specs, store, watch=board)`. Runs without a label are shown while they run."""

    def __init__(self, labels: Mapping[str, str], *, silent: bool):
        self.labels, self.silent = labels, silent
        self.states: dict[str, str] = dict.fromkeys(labels, "queued")
        self.news: dict[str, Any] = {}
        self.paces: dict[str, Pace] = {}
        self.printed: dict[str, float] = {}
        self.lock = threading.Lock()
        self.live: Any = None
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        if not self.silent and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            # Transient: rows of runs that are over, or were stopped, would say what is no longer true.
            console = Console(stderr=True, highlight=False, markup=False)
            self.live = Live(console=console, refresh_per_second=8, get_renderable=self._table, transient=True)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
        if any(state == "done" for state in self.states.values()):
            self._print(self.summary())

    def __call__(self, id: str, state: str, news: Any) -> None:
        with self.lock:
            self.states[id] = state
            if isinstance(news, str):
                self._print(f"{self._label(id)}: {news if state == 'running' else f'{state} · {news}'}")
            elif news is not None:
                self.news[id] = news
                self.paces.setdefault(id, Pace()).add(time.monotonic(), news.epoch / news.epochs)
            if state != "stored" and self.live is None and not isinstance(news, str):
                self._line(id, state)

    def summary(self) -> str:
        """How many of the runs that were asked for are in which state."""
        counts = Counter(self.states[id] for id in self.labels)
        known = [f"{counts[s]} {s}" for s in ("stored", "done", "failed", "running", "waiting", "queued") if counts[s]]
        return f"{len(self.labels)} runs: {', '.join(known)} · {duration(time.monotonic() - self.started)}"

    def _line(self, id: str, state: str) -> None:
        now, known = time.monotonic(), id in self.news
        if state == "running" and known and now - self.printed.get(id, -math.inf) < _LINE_SECONDS:
            return
        self.printed[id] = now
        cells = [f"{name} {value}" for name, value in zip(_NAMES, self._values(id), strict=True) if value]
        over = sum(self.states[label] in ("stored", "done") for label in self.labels)
        share = f"[{over}/{len(self.labels)}] " if state == "done" and len(self.labels) > 1 else ""
        self._print(f"{share}{self._label(id)}: " + " · ".join([state, *cells]))

    def _print(self, line: str) -> None:
        """Above the live board, if there is one. Nobody reading is no reason to stop computing."""
        if self.silent:
            return
        with suppress(OSError):
            if self.live is not None:
                self.live.console.print(line)
            else:
                print(line, file=sys.stderr, flush=True)

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
        for column in ("run", "state", *_NAMES):
            table.add_column(column, justify="left" if column in ("run", "state") else "right")
        with self.lock:
            table.title = self.summary()
            shown = [id for state in _SHOWN for id, of in self.states.items() if of == state]
            room = max(3, (self.live.console.height if self.live is not None else 24) - 4)
            for id in shown[:room]:
                table.add_row(self._label(id), self.states[id], *self._values(id))
            if len(shown) > room:
                table.add_row(f"… and {len(shown) - room} more", "")
        return table

    def _label(self, id: str) -> str:
        """A run of a sweep goes by its rate."""
        lr = getattr(self.news.get(id), "latest", {}).get("lr")
        return self.labels.get(id, id[:8] if lr is None else f"η = {lr:.4g}")

    def _values(self, id: str) -> list[str]:
        """What `_NAMES` says; empty where not known."""
        news = self.news.get(id)
        if news is None:
            return [""] * len(_NAMES)
        latest = news.latest
        loss = latest.get("train_loss", latest.get("loss"))
        running = self.states[id] == "running"
        left = self.paces[id].left() if running else None
        return [
            f"{news.epoch:,.0f}" + (f"/{news.epochs:,.0f}" if math.isfinite(news.epochs) else ""),
            "" if loss is None else f"{loss:.2e}",
            f"{latest['trace']:.2f}" if "trace" in latest else "",
            f"{latest['sharpness']:.4g}" if "sharpness" in latest else "",
            f"{latest['test_accuracy']:.4f}" if "test_accuracy" in latest else "",
            (f"{news.steps_per_second:,.0f}" if news.steps_per_second >= 10 else f"{news.steps_per_second:.2g}")
            if running
            else "",
            "" if left is None else duration(left),
        ]


class Pace:
    """The time left of a run, from the moments of its reports.

    It is not known before the rates of the first and of the second half of the time agree: compiling, and stages with
    other costs, make the first rates wrong by a hundred times.

    >>> pace = Pace()
    >>> for second in range(11): pace.add(second, second / 100)
    >>> round(pace.left())
    90
    """

    def __init__(self) -> None:
        self.reports: list[tuple[float, float]] = []

    def add(self, moment: float, share: float) -> None:
        """After `share` of the run."""
        self.reports.append((moment, share))
        if len(self.reports) > 200:  # the recent half decides
            del self.reports[:100]

    def left(self) -> float | None:
        (begin, first), (end, last) = self.reports[0], self.reports[-1]
        middle, half = min(self.reports, key=lambda report: abs(report[0] - (begin + end) / 2))
        if not begin < middle < end or end - begin < 3.0 or last <= 0:
            return None
        rates = (half - first) / (middle - begin), (last - half) / (end - middle)
        if min(rates) <= 0 or max(rates) > 2 * min(rates):
            return None
        return (1 - last) / rates[1]
