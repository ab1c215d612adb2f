"""steppe completion: a script that teaches a shell our commands."""

from dataclasses import dataclass
from typing import Literal

import tyro


@dataclass(frozen=True)
class Completion:
    """Print a completion script for a shell.

    Example: steppe completion bash > ~/.local/share/bash-completion/completions/steppe
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "tcsh"]] = "bash"
    """Which shell."""

    def __call__(self) -> int:
        from steppe.cli import Command

        tyro.cli(Command, prog="steppe", args=["--tyro-print-completion", self.shell])
        return 0
