"""steppe audit: everything that steppe measures, on the user's own network."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli._shared import Flag, Output, called

if TYPE_CHECKING:
    from steppe.auditing import Audit as Found

_LINE_SECONDS = 15.0


@dataclass(frozen=True)
class Audit(Output):
    """Audit a network of yours: is it a minimum, how sharp, at the edge of stability, how much of it is mere scale.

    Examples: steppe audit --example · steppe audit mymodel:make --checkpoint last.pt --html audit.html
    · steppe audit mymodel:make --checkpoint sgd.pt sam.pt
    """

    target: tyro.conf.Positional[str | None] = None
    """MODULE:FACTORY, a function of no arguments that returns a steppe.Problem, a steppe.torch.Problem, or (model,
    data, loss) of PyTorch; an optimiser may be the last entry of a tuple."""
    example: Flag = False
    """Audit a small network that is trained on the spot."""
    checkpoint: tuple[Path, ...] = ()
    """Weights to audit, .pt or .safetensors; two or more are compared. Only weights are read: no code is executed."""
    lr: float | None = None
    """Learning rate of gradient descent, for its edge of stability."""
    momentum: float = 0.0
    """Momentum of gradient descent, for the edge."""
    seconds: float | None = None
    """No part begins after so long. Default: all parts."""
    html: Path | None = None
    """Write one self-contained page with figures to this file."""

    def __call__(self) -> int:
        from steppe import auditing
        from steppe.check import ArgumentError

        if self.example == (self.target is not None):
            raise ArgumentError("Name MODULE:FACTORY, or pass --example, not both.")
        if self.momentum and self.lr is None:
            raise ArgumentError("--momentum belongs to --lr. Give both.")
        model, data, loss, optimizer = parts(auditing.example() if self.example else called(self.target or ""))
        if self.lr is not None:
            from steppe.dynamics import GD, HeavyBall

            optimizer = HeavyBall(self.lr, self.momentum) if self.momentum else GD(self.lr)

        def one(model: Any, w: Any, title: str) -> "Found":
            with _Progress(title, silent=self.json) as heard:
                return auditing.audit(
                    model, data, loss, w, optimizer=optimizer, seconds=self.seconds, title=title, progress=heard
                )

        if not self.checkpoint:
            found: Any = one(model, None, "steppe's example" if self.example else str(self.target))
            audits = [found]
        else:
            named = {str(path): one(*auditing.at(model, path), str(path)) for path in self.checkpoint}
            audits = list(named.values())
            found = audits[0] if len(audits) == 1 else auditing.compare(named)
        if self.html is not None:
            found.to_html(self.html)
        if self.json:
            print(found.to_json())
        else:
            print("\n\n".join([*map(str, audits), *([str(found)] if len(audits) > 1 else [])]))
            if self.html is not None:
                print(f"\nwrote {self.html}")
        return 0 if all(audit.trusted for audit in audits) else 1


def parts(made: Any) -> tuple[Any, Any, Any, Any]:
    """(model, data, loss, optimizer) of what a factory returned; data and loss are None for a problem."""
    from steppe.check import ArgumentError

    if not isinstance(made, tuple):
        return made, None, None, None
    if len(made) == 2:
        return made[0], None, None, made[1]
    if len(made) in (3, 4):
        return made[0], made[1], made[2], made[3] if len(made) == 4 else None
    raise ArgumentError(
        f"FACTORY returned a tuple of {len(made)}. It must return a problem, or (model, data, loss); an optimiser may "
        "follow."
    )


class _Progress:
    """What is being measured: one changing line on a terminal, a line now and then elsewhere."""

    def __init__(self, title: str, *, silent: bool):
        self.title, self.silent, self.last = title, silent, time.monotonic()
        self.status: Any = None

    def __enter__(self) -> "_Progress":
        if not self.silent and sys.stderr.isatty():
            from rich.console import Console

            self.status = Console(stderr=True).status(self.title)
            self.status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, label: str) -> None:
        if self.status is not None:
            from rich.markup import escape

            self.status.update(escape(f"{self.title}: {label}"))
        elif not self.silent and time.monotonic() - self.last > _LINE_SECONDS:
            self.last = time.monotonic()
            print(f"{self.title}: {label}", file=sys.stderr, flush=True)
