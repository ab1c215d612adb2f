"""The command line: parse, call, show. Holds no formula."""

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from steppe.cli._audit import Audit
from steppe.cli._bench import Bench
from steppe.cli._critical import Critical
from steppe.cli._data import Data
from steppe.cli._list import Explain, List
from steppe.cli._reproduce import Reproduce
from steppe.cli._runs import Runs
from steppe.cli._serve import Serve
from steppe.cli._sweep import Sweep
from steppe.cli._verify import Report, Verify

DESCRIPTION = """A laboratory for sharpness, stability and generalisation of neural networks.

Start with: steppe list · steppe reproduce wen2023/fig4b · steppe verify · steppe audit --example
Exit codes: 0 fine, 1 a claim or run failed, 2 wrong use."""


@dataclass(frozen=True)
class Completion:
    """Print a completion script for a shell.

    Example: steppe completion bash > ~/.local/share/bash-completion/completions/steppe
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "tcsh"]] = "bash"
    """Which shell."""

    def __call__(self) -> int:
        tyro.cli(Command, prog="steppe", args=["--tyro-print-completion", self.shell])
        return 0


Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Verify, tyro.conf.subcommand("verify")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Serve, tyro.conf.subcommand("serve")]
    | Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[Critical, tyro.conf.subcommand("critical")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Runs, tyro.conf.subcommand("runs")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Completion, tyro.conf.subcommand("completion")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the `steppe` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # letters that the terminal does not have are escaped
            stream.reconfigure(errors="backslashreplace")
    with _stopped_by_sigterm():
        sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code; what a user can mend is one line on stderr, not a traceback."""
    try:
        try:
            return _called(arguments)
        finally:
            _flush()
    except KeyboardInterrupt:
        return _told(130, "stopped.")
    except OSError as error:
        gone = isinstance(error, BrokenPipeError)  # `| head` has read enough
        return (
            0 if gone else _told(1, (error.strerror or str(error)) + (f": {error.filename}" if error.filename else ""))
        )
    except Exception as error:
        known = _explained(error)  # imported only now, so that `steppe list` starts at once
        if known is None:
            raise
        return _told(*known)


def _called(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from steppe import __version__

        print(f"steppe {__version__}")
        return 0
    try:
        command: Any = tyro.cli(Command, prog="steppe", description=DESCRIPTION, args=arguments or ["--help"])
    except SystemExit as ended:  # it has printed the help, or what is wrong
        return int(ended.code or 0)
    code: int = command()
    return code


def _flush() -> None:
    """Print what is printed. If that fails, what is left goes nowhere: Python would try again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _told(code: int, message: str) -> int:
    print(f"steppe: {' '.join(message.split())}", file=sys.stderr)
    return code


def _explained(error: Exception) -> tuple[int, str] | None:
    from steppe.check import ArgumentError
    from steppe.cli._shared import CannotWriteError
    from steppe.store import StoreError
    from steppe.sweep import Interrupted, WorkerDiedError

    if isinstance(error, Interrupted):
        return 130, "stopped. What was under way is checkpointed: the same command goes on from there."
    if isinstance(error, ArgumentError):
        return 2, str(error)
    if isinstance(error, StoreError | CannotWriteError | WorkerDiedError):
        return 1, str(error)
    if "steppe.data" not in sys.modules:  # importing it brings JAX
        return None
    from steppe.data import DataError

    return (1, str(error)) if isinstance(error, DataError) else None


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM stops a command as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def __dir__() -> list[str]:
    return ["Command", "main"]
