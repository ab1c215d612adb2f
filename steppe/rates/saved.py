"""The flow of a sweep as arrays, and its checkpoint: what the legs came to, and the one under way."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.dynamics.run import Checkpoint, Outcome
from steppe.estimate import Estimate
from steppe.problems import Problem
from steppe.rates.flowed import Critical
from steppe.rates.followed import Followed

_NUMBERS = ("loss", "time", "sharpness", "initial_sharpness", "largest_sharpness")
_OUTCOMES: tuple[Outcome, ...] = ("reached", "exhausted", "diverged", "stalled")


def critical_arrays(critical: tuple[Critical, ...]) -> dict[str, NDArray[Any]]:
    if not critical:
        return {}
    return {
        "flow.numbers": np.array([[getattr(c, name) for name in _NUMBERS] for c in critical]),
        "flow.counts": np.array([[c.gradients, _OUTCOMES.index(c.outcome)] for c in critical]),
        "flow.w": np.stack([np.asarray(c.w) for c in critical]),
    }


def restored_critical(arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> tuple[Critical, ...]:
    """Those saved; none if there are none."""
    if f"{prefix}flow.w" not in arrays:
        return ()
    rows = zip(*(arrays[f"{prefix}flow.{name}"] for name in ("numbers", "counts", "w")), strict=True)
    return tuple(
        Critical(
            **dict(zip(_NUMBERS, numbers.tolist(), strict=True)), gradients=int(counts[0]),
            outcome=_OUTCOMES[int(counts[1])], w=jnp.asarray(w),
        )
        for numbers, counts, w in rows
    )  # fmt: skip


class Follow:
    """λ_max as something to record: it remembers its tracker."""

    def __init__(self, followed: Followed):
        self.followed = followed

    def __call__(self, problem: Problem, w: Array) -> Estimate:
        estimate, self.followed = self.followed.measure(problem, w)
        return estimate


class Legs:
    """The checkpoint of a flow in legs, `done` being those that ended; to `steppe.run` that of the leg under way."""

    def __init__(self, inner: Checkpoint, follow: Follow):
        self.inner, self.follow = inner, follow
        saved = inner.load() or {}
        self.done = restored_critical(saved)
        vectors, scalars = _part(saved, "leg/"), _part(saved, "scalar/")
        self.leg = vectors | {name: a.reshape(()) for name, a in scalars.items()} or None
        if self.leg is not None:
            follow.followed = follow.followed.restored(_part(saved, "followed/"))

    def load(self) -> dict[str, NDArray[Any]] | None:
        """Of the leg that was under way; the ones after it start anew."""
        leg, self.leg = self.leg, None
        return leg

    def due(self) -> bool:
        return self.inner.due()

    def save(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        # A file of arrays may give a number back as an array of one entry: it is marked as one.
        kinds = {name: "leg" if np.ndim(a) else "scalar" for name, a in arrays.items()}
        whole = critical_arrays(self.done) | {f"{kinds[name]}/{name}": a for name, a in arrays.items()}
        self.inner.save(whole | {f"followed/{name}": a for name, a in self.follow.followed.arrays().items()})


class ReadOnce:
    """A checkpoint whose contents are read once: what it is asked for later is what it held at the start."""

    def __init__(self, inner: Checkpoint):
        self.inner, self.saved = inner, inner.load()

    def load(self) -> dict[str, NDArray[Any]] | None:
        return None if self.saved is None else dict(self.saved)

    def due(self) -> bool:
        return self.inner.due()

    def save(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.inner.save(arrays)


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
