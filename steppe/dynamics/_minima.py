"""Where gradient descent ends for many step sizes at once: one-dimensional inputs, one hidden ReLU layer, ½ mse."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from steppe import check, when
from steppe.dynamics._run import Checkpoint, Progress

# Gradient descent on f(x) = Σᵢ w₂ᵢ relu(w₁ᵢx + b₁ᵢ) + b₂ in one dimension at a cost of O(k + n) a step, not O(kn).

# No fastmath: sums are rounded in the order written, the same in a fresh compile and from numba's cache.
kernel = numba.njit(nogil=True, cache=True, error_model="numpy")


@kernel
def active_set(a, b, x):  # type: ignore[no-untyped-def]
    """The number of the set {j : a xⱼ + b > 0}, x sorted."""
    n = len(x)
    if a * x[n - 1] + b > 0.0:
        p = n - 1
        while p > 0 and a * x[p - 1] + b > 0.0:
            p -= 1
        return p
    p = 0
    while p < n and a * x[p] + b > 0.0:
        p += 1
    return n + p


@kernel
def advance(w, output, x, y, lr, warmup, below, factor, target, first, count):  # type: ignore[no-untyped-def]
    """`count` steps of one run in place, from step `first`. Returns (steps done, halt, loss after them).

    w: rows w₁, b₁, w₂. output: b₂, and the factor that multiplies the step size, set to `factor` once the loss is
    below `below`. Halts: 0 not, 1 the loss is at most `target`, 2 it is not finite.
    """
    k, n = w.shape[1], len(x)
    w1, b1, w2 = w[0], w[1], w[2]
    # The two points that tell whether a neuron is still in its set, and whether they must be active.
    one, other = np.zeros(2 * n), np.zeros(2 * n)
    one_on, other_on = np.zeros(2 * n, np.bool_), np.zeros(2 * n, np.bool_)
    for p in range(2 * n):
        q = p % n
        one[p], other[p] = (x[0], x[n - 1]) if q == 0 else (x[q], x[q - 1])
        one_on[p], other_on[p] = p < n, p == 0 or p > n
    slopes, offsets, sums, moments = np.zeros(2 * n), np.zeros(2 * n), np.zeros(2 * n), np.zeros(2 * n)
    sets, r, loss = np.zeros(k, np.int64), np.zeros(n), np.inf
    for i in range(k):
        p = active_set(w1[i], b1[i], x)
        sets[i] = p
        slopes[p] += w1[i] * w2[i]
        offsets[p] += b1[i] * w2[i]
    for t in range(first, first + count + 1):
        _residuals(slopes, offsets, output[0], x, y, r)
        loss = 0.0
        for j in range(n):
            loss += r[j] * r[j]
        loss /= 2 * n
        if not np.isfinite(loss):
            return t - first, 2, loss
        if loss <= target:
            return t - first, 1, loss
        if t == first + count:
            break
        if loss < below:
            output[1] = factor
        rate = lr * output[1] / n
        if t < warmup:
            rate *= (t + 1) / warmup
        _back(r, x, rate, sums, moments)
        output[0] -= sums[0]
        slopes[:] = 0.0
        offsets[:] = 0.0
        for i in range(k):
            p, a, b, c = sets[i], w1[i], b1[i], w2[i]
            s, m = sums[p], moments[p]
            new = c - (a * m + b * s)
            a -= c * m
            b -= c * s
            w1[i], b1[i], w2[i] = a, b, new
            if ((a * one[p] + b > 0.0) != one_on[p]) | ((a * other[p] + b > 0.0) != other_on[p]):
                p = active_set(a, b, x)
                sets[i] = p
            slopes[p] += a * new
            offsets[p] += b * new
    return count, 0, loss


@kernel
def _residuals(slopes, offsets, bias, x, y, r):  # type: ignore[no-untyped-def]
    """r = f(x) − y from the sums of every set."""
    n = len(x)
    slope, offset = 0.0, bias
    for j in range(n):
        slope += slopes[j]
        offset += offsets[j]
        r[j] = slope * x[j] + offset - y[j]
    slope, offset = 0.0, 0.0
    for j in range(n - 2, -1, -1):
        slope += slopes[n + j + 1]
        offset += offsets[n + j + 1]
        r[j] += slope * x[j] + offset


@kernel
def _back(r, x, rate, sums, moments):  # type: ignore[no-untyped-def]
    """rate · Σ rⱼ and rate · Σ rⱼxⱼ over every set; those of the empty one stay 0."""
    n = len(x)
    s, m = 0.0, 0.0
    for j in range(n - 1, -1, -1):
        r[j] *= rate
        s += r[j]
        m += r[j] * x[j]
        sums[j], moments[j] = s, m
    s, m = 0.0, 0.0
    for j in range(n - 1):
        s += r[j]
        m += r[j] * x[j]
        sums[n + j + 1], moments[n + j + 1] = s, m


# Where gradient descent ends for many step sizes at once: one-dimensional inputs, one hidden ReLU layer, ½ mse.

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
        check.refuse("start", rule, shapes, "Take steppe.networks.OneHidden().init(1, m, rng).")
    for name, array in (("x", x), ("y", y), ("start", w)):
        check.finite(name, array)
    order = np.argsort(x, kind="stable")
    return x[order], y[order], w, output, lr
