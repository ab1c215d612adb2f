"""Strong stability by simulation: the switching linear system around a minimum with kinks (mulayoff2021, S26)."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.stability.modes import Modes


@dataclass(frozen=True)
class Excursion:
    """`worst` = the largest mean distance from the minimum after the start, in units of the radius.

    Above 1 the minimum is not strongly stable. At most 1 nothing was found: `starts` and `steps` tell how hard it was
    looked for.
    """

    worst: float
    starts: int
    steps: int

    @property
    def stable(self) -> bool:
        # A thousand steps of rounding.
        return self.worst <= 1 + 1e-12 * self.steps


def excursion(
    found: Modes,
    lr: float,
    *,
    batch_size: int | None = None,
    starts: int = 64,
    repeats: int = 32,
    steps: int = 200,
    key: int = 0,
) -> Excursion:
    """Starts on the sphere around the minimum, the top eigenvectors of its first modes ahead, random ones after them.

    θ ← θ − (η/B) Σ_{j in batch} ∇φⱼ ∇φⱼᵀ(θ − θ*), where the mode of θ, in which φ is taken, changes on the way. With a
    batch size the mean over `repeats` of each start counts; the full batch needs one. The system is homogeneous, so
    the radius does not matter.
    """
    lr, rng = check.number("lr", lr, above=0.0), np.random.default_rng(key)
    n = len(found.x)
    batch = n if batch_size is None else min(check.integer("batch_size", batch_size, minimum=1), n)
    repeats = 1 if batch == n else check.integer("repeats", repeats, minimum=1)
    delta = np.repeat(_starts(found, check.integer("starts", starts, minimum=1), rng), repeats, axis=0)
    worst = 0.0
    for _ in range(check.integer("steps", steps, minimum=1)):
        delta = _step(found, delta, lr, batch, rng)
        distance = np.linalg.norm(delta, axis=1).reshape(-1, repeats).mean(axis=1)
        worst = max(worst, float(distance.max()))
        if not np.isfinite(worst) or worst > 1e6:
            break
    return Excursion(worst, starts, steps)


def _starts(found: Modes, count: int, rng: np.random.Generator) -> Floats:
    """Unit vectors: the top eigenvectors of modes, both signs, then random directions."""
    rows: list[Floats] = []
    for active in found:
        tangents = found.tangents(active)
        top = np.linalg.eigh(tangents @ tangents.T)[1][:, -1] @ tangents
        rows += [top, -top]
        if len(rows) >= count:
            break
    size = rows[0].size
    rows += list(rng.standard_normal((max(0, count - len(rows)), size)))
    stacked = np.stack(rows[:count])
    unit: Floats = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
    return unit


def _step(found: Modes, delta: Floats, lr: float, batch: int, rng: np.random.Generator) -> Floats:
    n, (m, d) = len(found.x), found.net["W1"].shape
    extended = np.column_stack([found.x, np.ones(n)])
    inner = delta[:, : m * (d + 1)].reshape(-1, m, d + 1)
    active = np.repeat(found.active[None], len(delta), axis=0)
    for j, i in found.kinks:
        # At the minimum the pre-activation is 0: the displacement alone decides its sign.
        active[:, j, i] = inner[:, i] @ extended[j] > 0
    h = np.where(active, found.x @ found.net["W1"].T + found.net["b1"], 0.0)
    slopes = active * found.net["W2"]
    outer, bias = delta[:, m * (d + 1) : -1], delta[:, -1:]
    u = np.einsum("rjm,rmd,jd->rj", slopes, inner, extended) + np.einsum("rjm,rm->rj", h, outer) + bias
    if batch < n:
        chosen = np.argsort(np.argsort(rng.random(u.shape), axis=1), axis=1) < batch
        u = np.where(chosen, u, 0.0)
    u = lr / batch * u
    moved = np.einsum("rj,rjm,jd->rmd", u, slopes, extended).reshape(len(delta), -1)
    return delta - np.column_stack([moved, np.einsum("rj,rjm->rm", u, h), u.sum(axis=1)])
