"""Rows computed one after the other, kept in the checkpoint: a killed run goes on with the next one."""

from collections.abc import Callable, Sequence
from typing import Any


def rows(names: Sequence[str], count: int, row: Callable[[int], dict[str, float]], checkpoint: Any) -> dict[str, Any]:
    """The columns `names` of row(0), …, row(count − 1)."""
    import numpy as np

    done = [] if checkpoint is None else list((checkpoint.load() or {}).get("rows", ()))
    for k in range(len(done), count):
        found = row(k)
        done.append(np.array([found[name] for name in names], dtype=float))
        if checkpoint is not None and checkpoint.due():
            checkpoint.save({"rows": np.array(done)})
    return dict(zip(names, np.array(done).T, strict=True))
