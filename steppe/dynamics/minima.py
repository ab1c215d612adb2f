"""Where gradient descent ends for many step sizes at once: one-dimensional inputs, one hidden ReLU layer, ½ mse."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from steppe import check, when
from steppe.dynamics.minima_kernel import advance
from steppe.dynamics.run import Checkpoint, Progress

Floats = NDArray[np.float64]
Outcome = Literal["exhausted", "reached", "diverged", "stalled"]
_OUTCOMES: tuple[str, ...] = get_args(Outcome)
# A call into compiled code lasts about a tenth of a second, so that a stop or a checkpoint need not wait.
_CALL = 200_000


@dataclass(frozen=True, eq=False)
class Minima:
    """One entry, or row, for each step size. `losses[t]` holds the losses after `moments[t]` steps, NaN behind the end.

    `warming` tells which runs ended while the step size was still growing.
    """

    W1: Floats
    b1: Floats
    W2: Floats
    b2: Floats
    loss: Floats
    steps: NDArray[np.int64]
    outcome: tuple[str, ...]
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

    η_t = η (t + 1)/warmup in the first `warmup` steps and η after them, times `factor` from the moment on at which the
    loss is first below `below`. The result does not depend on `threads`, nor on being stopped at a checkpoint.
    A run is `stalled` where its steps change nothing any more.

    >>> start = {"W1": [[1.0]], "b1": [1.0], "W2": [0.0], "b2": 0.0}       # one neuron: loss (w₂·1 + b₂ − 1)²/2
    >>> done = minima([0.0], [1.0], start, [0.25, 0.5])
    >>> done.outcome, bool((done.loss <= 1e-8).all())
    (('reached', 'reached'), True)

    The experiments of mulayoff2021, supplement section I.
    """
    x, y, w, output, lr = _checked(x, y, start, lr)
    state = _State(w, output, len(lr), _moments(check.integer("max_steps", max_steps, minimum=1)))
    options = (
        check.integer("warmup", warmup, minimum=0),
        check.number("below", below, minimum=0.0),
        check.number("factor", factor, above=0.0),
        check.number("loss", loss, minimum=0.0),
    )
    if checkpoint is not None and (saved := checkpoint.load()) is not None:
        state.restore(saved)
    began, before = time.perf_counter(), int(state.steps.sum())

    def work(task: tuple[int, int]) -> None:
        run, count = task
        state.advance(run, count, x, y, float(lr[run]), options)

    with ThreadPoolExecutor(check.integer("threads", threads, minimum=1)) as pool:
        while tasks := state.tasks(threads):
            list(pool.map(work, tasks))
            if checkpoint is not None and checkpoint.due():
                checkpoint.save(state.arrays())
            if progress is not None:
                speed = (state.steps.sum() - before) / (time.perf_counter() - began)
                progress(state.progress(float(speed)))
    return state.finished(options[0])


class _State:
    """All runs under way, and what must survive a kill: `arrays`."""

    def __init__(self, w: Floats, output: Floats, runs: int, moments: NDArray[np.int64]):
        self.w, self.output = np.repeat(w[None], runs, axis=0), np.repeat(output[None], runs, axis=0)
        self.steps, self.halt = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self.loss, self.losses = np.full(runs, np.inf), np.full((len(moments), runs), np.nan)
        self.moments = moments

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("w", "output", "steps", "halt", "loss", "losses")
        return {name: getattr(self, name) for name in names}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        for name, array in saved.items():
            setattr(self, name, np.array(array))

    def tasks(self, threads: int) -> list[tuple[int, int]]:
        """(run, steps) of the runs that are furthest behind: every run is brought to a moment before any passes it."""
        going = np.flatnonzero((self.halt == 0) & (self.steps < self.moments[-1]))
        behind = going[np.argsort(self.steps[going], kind="stable")][:threads]
        nexts = self.moments[np.searchsorted(self.moments, self.steps[behind], side="right")]
        return [(int(r), int(min(_CALL, m - self.steps[r]))) for r, m in zip(behind, nexts, strict=True)]

    def advance(self, run: int, count: int, x: Floats, y: Floats, lr: float, options: tuple[Any, ...]) -> None:
        first, warmup = int(self.steps[run]), options[0]
        before = (self.w[run].copy(), self.output[run].copy())
        done, halt, loss = advance(self.w[run], self.output[run], x, y, lr, *options, first, count)
        self.steps[run] += done
        still = np.array_equal(self.w[run], before[0]) and np.array_equal(self.output[run], before[1])
        if halt == 0 and still and first >= warmup:
            halt = 3
        self.halt[run], self.loss[run] = halt, loss
        if self.steps[run] in self.moments:
            self.losses[np.searchsorted(self.moments, self.steps[run]), run] = loss

    def progress(self, speed: float) -> Progress:
        ended = self.halt > 0
        slowest = int(self.steps[~ended].min()) if not ended.all() else int(self.steps.max())
        return Progress(slowest, float(slowest), float(self.moments[-1]), speed, {"ended": int(ended.sum())})

    def finished(self, warmup: int) -> Minima:
        last = int(np.searchsorted(self.moments, self.steps.max(), side="right"))
        return Minima(
            W1=self.w[:, 0],
            b1=self.w[:, 1],
            W2=self.w[:, 2],
            b2=self.output[:, 0],
            loss=self.loss,
            steps=self.steps,
            outcome=tuple(_OUTCOMES[h] for h in self.halt),
            warming=(self.halt == 1) & (self.steps < warmup),
            moments=self.moments[:last],
            losses=self.losses[:last],
        )


def _moments(max_steps: int) -> NDArray[np.int64]:
    """When the losses are recorded: 20 times a decade, and at the end."""
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
        check.refuse("start", rule, shapes, "Take steppe.problems.networks.OneHidden().init(1, m, rng).")
    for name, array in (("x", x), ("y", y), ("start", w)):
        check.finite(name, array)
    order = np.argsort(x, kind="stable")
    return x[order], y[order], w, output, lr
