"""What commands share: options, runs from the store or computed, machine-readable output, tables for a person."""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tyro

if TYPE_CHECKING:
    from steppe.store import Entry, Store

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


@dataclass(frozen=True)
class Computing(Stored):
    workers: int | None = None
    """Runs computed at the same time. Default: one for each core."""
    recompute: Flag = False
    """Compute runs again that are in the store, damaged ones too."""

    def entries(self, labelled: Sequence[tuple[str, Any]]) -> "list[Entry]":
        """The runs of (label, spec) pairs, in their order."""
        from steppe.check import integer
        from steppe.cli._board import Board
        from steppe.store import address
        from steppe.sweep import execute

        if self.workers is not None:
            integer("--workers", self.workers, minimum=1)
        # A run that several figures show is labelled by the first.
        labels = {address(spec): label for label, spec in reversed(labelled)}
        specs = [spec for _, spec in labelled]
        with Board(labels, silent=self.json) as board:
            return execute(specs, self.opened(), workers=self.workers, recompute=self.recompute, watch=board)


def called(target: str) -> Any:
    """What the function MODULE:FUNCTION returns; modules are looked for in the current folder too."""
    import inspect

    from steppe.check import ArgumentError
    from steppe.experiments._own import imported

    function = imported(target)
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise ArgumentError(f"cannot use {target!r}: {error}. Name a function of no arguments.") from error
    return function()


def counted(items: Iterable[T], total: int, what: str, *, silent: bool) -> Iterator[T]:
    """The items as they come, with a bar on a terminal that is gone at the end."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = silent or not console.is_terminal
    return iter(track(items, what, total, console=console, transient=True, disable=hidden))


class CannotWriteError(RuntimeError):
    """An output cannot be written. The message names it and the remedy."""


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Raise an error of the disk in the block as one that names the option and its path."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotWriteError(f"cannot write {path}: {reason}. Free some space, or change {option}.") from error


def check_writable(option: str, path: Path, *, folder: bool) -> None:
    """Refuse a place that cannot be written, before anything is computed for it. Nothing is left there."""
    with writing(option, path):
        if "\0" in str(path):
            raise OSError("its name contains a null character")
        if _exists(path):
            # A device, such as /dev/null, would be replaced by a file.
            if not (path.is_dir() if folder else path.is_file()):
                raise OSError("it is not a folder" if folder else "it is not a file")
            if not folder:
                path.open("ab").close()
        places = path.absolute().parents
        nearest = next(place for place in ((path, *places) if folder else places) if _exists(place))
        with tempfile.TemporaryFile(dir=nearest):
            pass


def _exists(path: Path) -> bool:
    """As path.exists(), but a name that is too long or a folder that cannot be entered is an error."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


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
        table.add_column(_printable(column), overflow="fold", no_wrap=k == 0)
    for row in rows:
        table.add_row(*map(_printable, row))
    console = Console(highlight=False, soft_wrap=False, markup=False)
    if not console.is_terminal:  # a pipe has no width of its own: do not fold what a program may read
        console.width = 200
    # Rich ends the program with code 1 where a reader has gone; what it lays out is printed as everything else is.
    with console.capture() as text:
        console.print(table)
    print(text.get(), end="")


def print_facts(facts: Mapping[str, str]) -> None:
    """Names and what they are, below each other, folded at the width of the terminal."""
    import shutil
    import textwrap

    room = max(20, shutil.get_terminal_size((80, 24)).columns - 14)
    for name, text in facts.items():
        for k, line in enumerate(textwrap.wrap(text, room) or [""]):
            print(f"{'' if k else name:12}  {line}".rstrip())


def _printable(text: str) -> str:
    """The text without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
