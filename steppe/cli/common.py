"""What every command shares: options, machine-readable output, and one line for a person."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tyro

if TYPE_CHECKING:
    from steppe.store import Store

T = TypeVar("T")
# A switch without its negative twin: --json, not also --no-json.
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True)
class Output:
    json: Flag = False
    """Print machine-readable JSON and nothing else."""


@dataclass(frozen=True)
class Stored(Output):
    store: Path | None = None
    """Folder of the runs. Default: the variable STEPPE_STORE, else runs."""

    def opened(self) -> "Store":
        from steppe.store import Store

        return Store(self.store)


def counted(items: Iterable[T], total: int, what: str, *, silent: bool) -> Iterator[T]:
    """The items as they come, with a bar on a terminal that is gone at the end."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = silent or not console.is_terminal
    return iter(track(items, what, total, console=console, transient=True, disable=hidden))


def print_json(value: Any) -> None:
    """NaN and infinity, which JSON does not have, become null."""
    strict = json.loads(json.dumps(value, default=_plain), parse_constant=lambda name: None)
    json.dump(strict, sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    print()


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for k, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=k == 0)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:  # a pipe has no width of its own: do not fold what a program may read
        console.width = 200
    # Rich ends the program with code 1 where a reader has gone; what it lays out is printed as everything else is.
    with console.capture() as text:
        console.print(table)
    print(text.get(), end="")


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
