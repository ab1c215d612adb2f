"""Where gradient descent ends for many step sizes at once: one-dimensional inputs, one hidden ReLU layer, ½ mse."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check, when
from steppe._result import Rows
from steppe.dynamics._many import carry
from steppe.dynamics._run import Checkpoint, Progress
from steppe.kernels.one_hidden import advance
from steppe.outcome import Halt, Outcome

Floats = NDArray[np.float64]
# Steps of a call into compiled code, about a tenth of a second: no checkpoint waits longer.
_CALL = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class Minima(Rows, index="run", columns=("outcome", "steps", "loss", "warming")):
    """One entry, or row, for each step size. `losses[t]` holds the losses after `moments[t]` steps, NaN for ended runs.

    `warming` tells which runs ended while the step size was still growing.
    """

    W1: Floats
    b1: Floats
    W2: Floats
    b2: Floats
    loss: Floats
    steps: NDArray[np.int64]
    outcome: tuple[Outcome, ...]
    warming: NDArray[np.bool_]
    moments: NDArray[np.int64]
    losses: Floats

    def params(self, run: int) -> dict[str, Floats]:
        """The parameters of one run, for a `Problem` with the network `OneHidden`."""
        return {"W1": self.W1[run, :, None], "b1": self.b1[run], "W2": self.W2[run], "b2": self.b2[run]}


def minima(
    x: Any,
    y: Any,
    start: Mapping[str, Any],
    lr: Any,
    *,
    loss: float = 1e-8,
    max_steps: int = 10_000_000,
    warmup: int = 0,
    below: float = 0.0,
    factor: float = 1.0,
    threads: int = 1,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Minima:
    """w ← w − η_t ∇L(w) from one start for every step size η of `lr`, until L ≤ `loss`; L = (1/2n) Σ (f(xⱼ) − yⱼ)².

    η_t = η (t + 1)/warmup in the first `warmup` steps and η after them. Once the loss is below `below`, η_t is `factor`
    times as large. The result does not depend on `threads`, nor on interruptions. A run is `stalled` when its steps no
    longer change anything.

    >>> start = {"W1": [[1.0]], "b1": [1.0], "W2": [0.0], "b2": 0.0}       # one neuron: loss (w₂·1 + b₂ − 1)²/2
    >>> done = minima([0.0], [1.0], start, [0.25, 0.5])
    >>> done.outcome, bool((done.loss <= 1e-8).all())
    (('reached', 'reached'), True)

    The experiments of mulayoff2021, supplement section I.
    """
    x, y, w, output, lr = _checked(x, y, start, lr)
    moments = _moments(check.integer("max_steps", max_steps, minimum=1))
    options = (
        check.integer("warmup", warmup, minimum=0),
        check.number("below", below, minimum=0.0),
        check.number("factor", factor, above=0.0),
        check.number("loss", loss, minimum=0.0),
    )
    threads = check.integer("threads", threads, minimum=1)
    with ThreadPoolExecutor(threads) as pool:
        batch = _Compiled(x, y, w, output, lr, moments, options, pool, threads)
        if checkpoint is not None and (saved := checkpoint.load()) is not None:
            batch.restore(saved)
        carry(batch, checkpoint=checkpoint, progress=progress)
    return batch.finished()


class _Compiled:
    """A `Batch` whose threads each carry out one run at a time, by the kernel."""

    def __init__(
        self, x: Floats, y: Floats, w: Floats, output: Floats, lr: Floats, moments: NDArray[np.int64],
        options: tuple[Any, ...], pool: ThreadPoolExecutor, threads: int,
    ):  # fmt: skip
        self.x, self.y, self.lr, self.moments, self.options = x, y, lr, moments, options
        self.pool, self.threads, self.warmup = pool, threads, options[0]
        self.w, self.output = np.repeat(w[None], len(lr), axis=0), np.repeat(output[None], len(lr), axis=0)
        self.steps, self.halt = np.zeros(len(lr), np.int64), np.zeros(len(lr), np.int64)
        self.loss, self.losses = np.full(len(lr), np.inf), np.full((len(moments), len(lr)), np.nan)

    def under_way(self) -> bool:
        return len(self._going()) > 0

    def advance(self) -> int:
        """The runs that are furthest behind: each run reaches a moment before any run passes it."""
        going, before = self._going(), int(self.steps.sum())
        behind = going[np.argsort(self.steps[going], kind="stable")][: self.threads]
        list(self.pool.map(self._advance, behind.tolist()))
        return int(self.steps.sum()) - before

    def _going(self) -> NDArray[np.intp]:
        return np.flatnonzero((self.halt == Halt.NOT) & (self.steps < self.moments[-1]))

    def _advance(self, run: int) -> None:
        """One call of the kernel, up to the next moment at most."""
        first, w, output = int(self.steps[run]), self.w[run], self.output[run]
        moment = int(self.moments[np.searchsorted(self.moments, first, side="right")])
        before = (w.copy(), output.copy())
        done, halt, loss = advance(
            w, output, self.x, self.y, float(self.lr[run]), *self.options, first, min(_CALL, moment - first)
        )
        self.steps[run] += done
        still = np.array_equal(w, before[0]) and np.array_equal(output, before[1])
        if halt == Halt.NOT and still and first >= self.warmup:
            halt = Halt.STALLED
        self.halt[run], self.loss[run] = halt, loss
        if self.steps[run] in self.moments:
            self.losses[np.searchsorted(self.moments, self.steps[run]), run] = loss

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("w", "output", "steps", "halt", "loss", "losses")}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        for name, array in saved.items():
            setattr(self, name, np.array(array))

    def progress(self, steps_per_second: float) -> Progress:
        ended = self.halt != Halt.NOT
        slowest = int(self.steps[~ended].min()) if not ended.all() else int(self.steps.max())
        latest = {"ended": int(ended.sum())}
        return Progress(slowest, float(slowest), float(self.moments[-1]), steps_per_second, latest)

    def finished(self) -> Minima:
        last = int(np.searchsorted(self.moments, self.steps.max(), side="right"))
        return Minima(
            W1=self.w[:, 0],
            b1=self.w[:, 1],
            W2=self.w[:, 2],
            b2=self.output[:, 0],
            loss=self.loss,
            steps=self.steps,
            outcome=tuple(Halt(int(h)).outcome for h in self.halt),
            warming=(self.halt == Halt.REACHED) & (self.steps < self.warmup),
            moments=self.moments[:last],
            losses=self.losses[:last],
        )


def _moments(max_steps: int) -> NDArray[np.int64]:
    """When the losses are recorded: at 20 moments per decade, and at the end."""
    moments, logarithmic = [], when.logarithmic(per_decade=20)
    step = 0
    while step < max_steps:
        step = min(int(logarithmic.after(step)), max_steps)
        moments.append(step)
    return np.array(moments)


def _checked(x: Any, y: Any, start: Mapping[str, Any], lr: Any) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Inputs sorted, parameters as rows w₁, b₁, w₂ and the pair (b₂, 1)."""
    x, y, lr = (np.asarray(a, dtype=float) for a in (x, y, lr))
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1 or len(x) == 0:
        remedy = "Take steppe.run with dynamics.GD for inputs of more dimensions."
        check.refuse("x", "one number an example", f"shape {x.shape}", remedy)
    if y.shape != x.shape:
        check.refuse("y", f"of shape {x.shape}, one target an example", y.shape, "Reshape y.")
    if lr.ndim != 1 or len(lr) == 0 or not (np.isfinite(lr) & (lr > 0)).all():
        check.refuse("lr", "a list of step sizes > 0", lr.tolist(), "Pass for example numpy.geomspace(1e-3, 1, 20).")
    try:
        w = np.stack([np.asarray(start[name], dtype=float).reshape(-1) for name in ("W1", "b1", "W2")])
        output = np.array([float(np.asarray(start["b2"])), 1.0])
    except (KeyError, ValueError, TypeError):
        shapes = {name: np.shape(a) for name, a in start.items()}
        rule = "parameters W1 (m, 1), b1 (m,), W2 (m,) and b2 of OneHidden"
        check.refuse("start", rule, shapes, "Take steppe.networks.OneHidden().init(1, m, rng).")
    for name, array in (("x", x), ("y", y), ("start", w)):
        check.finite(name, array)
    order = np.argsort(x, kind="stable")
    return x[order], y[order], w, output, lr
