"""Where a run under way stands, so that a killed one goes on from there."""

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.store.errors import told
from steppe.store.files import Arrays, tensor_bytes

_DIGEST = 32  # bytes of sha256 in front of the arrays


class Checkpoint:
    """Named arrays on disk, replaced as a whole or not at all."""

    def __init__(self, path: Path, every_seconds: float):
        self.path, self.every = path, every_seconds
        self.saved_at = self.started = time.monotonic()
        self.seconds_before = 0.0

    def __repr__(self) -> str:
        return f"the checkpoint {self.path}"

    @property
    def seconds(self) -> float:
        """The time spent on the run so far, in this process and in those before it."""
        return self.seconds_before + time.monotonic() - self.started

    def due(self) -> bool:
        return time.monotonic() - self.saved_at >= self.every

    def load(self) -> dict[str, NDArray[Any]] | None:
        """The arrays saved last; None if there are none, or if they were damaged: then the run starts anew."""
        from safetensors.numpy import load

        with told(self.path.parent, "read"):
            blob = self.path.read_bytes() if self.path.exists() else b""
        if len(blob) <= _DIGEST or hashlib.sha256(blob[_DIGEST:]).digest() != blob[:_DIGEST]:
            return None
        arrays: dict[str, NDArray[Any]] = load(blob[_DIGEST:])
        self.seconds_before = float(arrays.pop("seconds")[0])
        return arrays

    def save(self, arrays: Arrays) -> None:
        body = tensor_bytes({**arrays, "seconds": np.array([self.seconds])})
        fresh = self.path.with_suffix(".new")
        with told(self.path.parent, "write"):
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
