"""Checkpoints: what a killed run had computed."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.store._files import Arrays, StoreError, disk_errors, tensor_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGEST = 32  # bytes of the sha256 in front


class Checkpoint:
    """Named arrays on disk, from which a killed run continues. A save replaces all of them or none.

    `owner` says whose they are: the address of the run, and the version of steppe. A checkpoint of another owner is
    not loaded; `ignored` then says why.
    """

    def __init__(self, path: Path, every_seconds: float, owner: Mapping[str, str] | None = None):
        if not (owner is None or isinstance(owner, Mapping)):
            raise StoreError(f"owner must be a dictionary or None; got {owner!r}. Pass for example {{'run': address}}.")
        self.path, self.every, self.owner = path, every_seconds, dict(owner or {})
        self.saved_at = self.started = time.monotonic()
        self.seconds_before = 0.0
        self.ignored = ""

    def __repr__(self) -> str:
        return f"the checkpoint {self.path}"

    @property
    def seconds(self) -> float:
        """Seconds spent on the run so far, in this process and in earlier ones."""
        return self.seconds_before + time.monotonic() - self.started

    def due(self) -> bool:
        """Whether the last save is long enough ago for another one."""
        return time.monotonic() - self.saved_at >= self.every

    def load(self) -> "dict[str, NDArray[Any]] | None":
        """The arrays of the last save. None if there are none, or they are damaged or another's: begin anew."""
        from safetensors.numpy import load

        with disk_errors(self.path.parent, "read"):
            if not self.path.is_file():
                return None
            blob = self.path.read_bytes()
        digest, body = blob[:_DIGEST], blob[_DIGEST:]
        if not body or hashlib.sha256(body).digest() != digest:
            self.ignored = "its checkpoint is damaged; the run begins anew"
        elif (owner := _notes(body)) != self.owner:
            whose = ", ".join(f"{name} {value}" for name, value in sorted(owner.items())) or "an older format"
            self.ignored = f"its checkpoint is of {whose}; the run begins anew"
        else:
            arrays: dict[str, NDArray[Any]] = load(body)
            self.seconds_before = float(arrays.pop("seconds")[0])
            return arrays
        return None

    def save(self, arrays: Arrays) -> None:
        import numpy as np

        body = tensor_bytes({**arrays, "seconds": np.array([self.seconds])}, self.owner)
        fresh = self.path.with_suffix(".new")
        with disk_errors(self.path.parent, "write"):
            try:
                with fresh.open("wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(self.path)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        self.saved_at = time.monotonic()

    def clear(self) -> None:
        for path in (self.path, self.path.with_suffix(".new")):
            path.unlink(missing_ok=True)


def _notes(body: bytes) -> dict[str, str]:
    """The notes in the header of a safetensors file: 8 bytes for its length, then JSON."""
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    notes: dict[str, str] = header.get("__metadata__", {})
    return notes
