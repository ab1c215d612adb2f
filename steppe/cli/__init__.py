"""The command line: parse, call, show. Holds no formula."""

import os
import sys
from collections.abc import Sequence
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
from steppe.cli._verify import Report, Verify

DESCRIPTION = """A laboratory for sharpness, stability and generalisation of neural networks.

Start with: steppe list · steppe reproduce wen2023/fig4b · steppe verify
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
    | Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[Critical, tyro.conf.subcommand("critical")]
    | Annotated[Runs, tyro.conf.subcommand("runs")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Completion, tyro.conf.subcommand("completion")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the `steppe` command."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments in (["--version"], ["-V"]):
        from steppe import __version__

        print(f"steppe {__version__}")
        return
    command: Any = tyro.cli(Command, prog="steppe", description=DESCRIPTION, args=arguments or ["--help"])
    sys.exit(_call(command))


def _call(command: Any) -> int:
    """Run a command; what a user can mend is one sentence on stderr, not a traceback."""
    try:
        code: int = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head` has read enough; what is left to write goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        known = _explained(error)  # imported only now, so that `steppe list` starts at once
        if known is None:
            raise
        code, message = known
        print(f"steppe: {message}", file=sys.stderr)
        return code


def _explained(error: Exception) -> tuple[int, str] | None:
    from steppe.check import ArgumentError
    from steppe.store import StoreError
    from steppe.sweep import Interrupted

    if isinstance(error, Interrupted):
        return 130, "stopped. What was under way is checkpointed: the same command goes on from there."
    if isinstance(error, ArgumentError | StoreError):
        return 2 if isinstance(error, ArgumentError) else 1, str(error)
    from steppe.data import DataError  # last: it brings JAX

    return (1, str(error)) if isinstance(error, DataError) else None
