"""Runs for a command: on the board, from the store or computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steppe.cli.common import Flag, Stored

if TYPE_CHECKING:
    from steppe.store import Entry


@dataclass(frozen=True)
class Computing(Stored):
    workers: int | None = None
    """Runs computed at the same time. Default: one for each core."""
    recompute: Flag = False
    """Compute runs again that are in the store, damaged ones too."""

    def entries(self, labelled: Sequence[tuple[str, Any]]) -> "list[Entry]":
        """The runs of (label, spec) pairs, in their order."""
        from steppe.check import integer
        from steppe.cli.board import Board
        from steppe.store import address
        from steppe.sweep._engine import execute

        if self.workers is not None:
            integer("--workers", self.workers, minimum=1)
        # A run that several figures show goes by the name of the first.
        labels = {address(spec): label for label, spec in reversed(labelled)}
        with Board(labels, silent=self.json) as board:
            return execute(
                [spec for _, spec in labelled],
                self.opened(),
                workers=self.workers,
                recompute=self.recompute,
                watch=board,
            )
