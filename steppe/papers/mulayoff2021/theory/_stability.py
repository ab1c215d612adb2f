"""Which minima GD and SGD can settle at: the modes at kinks, Theorem 2, second moments, simulation."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.papers.mulayoff2021.theory._flattest import one_hidden
from steppe.training_set import Floats, Params, inputs

Masks = NDArray[np.bool_]


def theorem_2(lr: float, entry: float, crowd: int, n: int) -> float:
    """λ_max^upper ≤ ((α + √(α² + 4β))/2)² with α = 2√3 C √(p_max/n), β = 2/η (S74), at strongly stable minima.

    C is `entry`, p_max is `crowd`. Without kinks the bound is 2/η. Multiplied out it is
    2/η + 6C²p/n + 2C √(3p/n (3C²p/n + 2/η)); the paper prints half of the last two terms.

    >>> round(theorem_2(0.1, 5.0, 0, 10), 9)
    20.0
    """
    alpha, beta = _terms(lr, entry, crowd, n)
    return ((alpha + math.sqrt(alpha**2 + 4 * beta)) / 2) ** 2


def theorem_2_as_printed(lr: float, entry: float, crowd: int, n: int) -> float:
    """(S75) as printed: 2/η + 3C²p/n + C √(3p/n (3C²p/n + 2/η)). The root of (S72) is larger."""
    alpha, beta = _terms(lr, entry, crowd, n)
    share = alpha**2 / 4  # 3C²p/n
    return beta + share + math.sqrt(share * (share + beta))


def _terms(lr: float, entry: float, crowd: int, n: int) -> tuple[float, float]:
    entry = check.number("entry", entry, minimum=0.0)
    crowd, n = check.integer("crowd", crowd, minimum=0), check.integer("n", n, minimum=1)
    return 2 * math.sqrt(3 * crowd / n) * entry, 2 / check.number("lr", lr, above=0.0)


@dataclass(frozen=True)
class Range:
    """A number between two bounds; it is exact where they are equal."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Modes:
    """The smooth pieces of the loss that meet at a minimum of a one-hidden-layer net with one output.

    The loss has no second derivative where the kink of a neuron sits on a training point. A mode chooses for each kink
    (example, neuron) in `kinks` whether the neuron is active; `active` says it for all other pairs. At the minimum all
    2^kinks modes have the same loss and gradient 0 (S54 to S57).
    """

    net: Params
    x: Floats
    active: Masks
    kinks: NDArray[np.int64]

    @property
    def count(self) -> int:
        return 2 ** len(self.kinks)

    @property
    def crowd(self) -> int:
        """p_max: the most kinks on one training point."""
        return int(np.bincount(self.kinks[:, 0], minlength=1).max()) if len(self.kinks) else 0

    def pattern(self, choice: Any) -> Masks:
        """Which neurons are active on which examples, in the mode where `choice[k]` says it for kink k."""
        active = self.active.copy()
        active[self.kinks[:, 0], self.kinks[:, 1]] = choice
        return active

    def tangents(self, active: Masks) -> Floats:
        """Φᵀ (n, parameters): a row x′ⱼ w₂ ⊙ I, relu(hⱼ) ⊙ I, 1 for each example (S76)."""
        h = self.x @ self.net["W1"].T + self.net["b1"]
        slopes = active * self.net["W2"]
        extended = np.column_stack([self.x, np.ones(len(self.x))])
        inner = (slopes[:, :, None] * extended[:, None, :]).reshape(len(self.x), -1)
        return np.column_stack([inner, h * active, np.ones(len(self.x))])

    def sharpness(self, active: Masks) -> float:
        """λ_max(H_m) of the mode, H_m = Φ_m Φ_mᵀ/n (S59)."""
        rows = self.tangents(active)
        return float(np.linalg.eigvalsh(rows @ rows.T)[-1] / len(self.x))

    def __iter__(self) -> Iterator[Masks]:
        for number in range(self.count):
            yield self.pattern([(number >> k) & 1 for k in range(len(self.kinks))])

    def largest_entry(self) -> float:
        """C: the largest entry of ∇φ(xⱼ; θ*, m) over all modes m and examples j (Lemma 5)."""
        return float(np.abs(self.tangents(self.pattern(True))).max())


def modes(params: Mapping[str, Any], x: Any, *, rtol: float = 1e-9) -> Modes:
    """The modes at a minimum. A kink is where |w₁·xⱼ + b₁| is at most `rtol` times the size of its terms.

    >>> m = modes({"W1": [[1.0]], "b1": [0.0], "W2": [2.0], "b2": 0.0}, [[0.0], [1.0]])
    >>> m.count, m.crowd, m.kinks.tolist()                          # the neuron opens at x = 0
    (2, 1, [[0, 0]])
    >>> [round(m.sharpness(active), 6) for active in m]
    [5.054886, 6.545085]
    """
    net, points = one_hidden(params), inputs(x)
    if net["W2"].ndim != 1:
        check.refuse("params", "a net with one output", net["W2"].shape, "Pass one output at a time.")
    rtol = check.number("rtol", rtol, minimum=0.0)
    h = points @ net["W1"].T + net["b1"]
    size = np.abs(points) @ np.abs(net["W1"]).T + np.abs(net["b1"])
    # A neuron with w₂ = 0, or with w₁ = 0 and b₁ = 0, has no kink that changes the function.
    bends = (net["W2"] != 0) & ((net["W1"] != 0).any(axis=1) | (net["b1"] != 0))
    kinked = (np.abs(h) <= rtol * size) & bends
    return Modes(net, points, h > 0, np.argwhere(kinked))


def upper_sharpness(found: Modes, *, cap: int = 4096) -> Range:
    """λ_max^upper = max over the modes m of λ_max(H_m): exact for up to `cap` modes, two bounds for more.

    The lower bound is λ_max of a mode m₀ that no single toggle improves. The upper bound follows from
    √λ(m) ≤ √λ(m₀) + ‖Φ_m − Φ_m₀‖/√n, the sharp form of Lemma 5.
    """
    if found.count <= check.integer("cap", cap, minimum=1):
        top = max(found.sharpness(active) for active in found)
        return Range(top, top)
    best = _toggling(found, 1.0)
    return Range(best, (np.sqrt(best) + np.sqrt(_toggled(found) / len(found.x))) ** 2)


def lower_sharpness(found: Modes, *, cap: int = 4096) -> Range:
    """min over the modes m of λ_max(H_m), in the same way; `upper` is λ_max of a mode."""
    if found.count <= check.integer("cap", cap, minimum=1):
        least = min(found.sharpness(active) for active in found)
        return Range(least, least)
    best = _toggling(found, -1.0)
    return Range(max(0.0, np.sqrt(best) - np.sqrt(_toggled(found) / len(found.x))) ** 2, best)


def _toggling(found: Modes, sign: float) -> float:
    """The largest (with sign −1: the least) sharpness that single toggles reach from the mode where all are active."""
    choice = np.ones(len(found.kinks), dtype=bool)
    best = sign * found.sharpness(found.pattern(choice))
    improved = True
    while improved:
        improved = False
        for k in range(len(choice)):
            choice[k] = not choice[k]
            trial = sign * found.sharpness(found.pattern(choice))
            if trial > best:
                best, improved = trial, True
            else:
                choice[k] = not choice[k]
    return sign * best


def _toggled(found: Modes) -> float:
    """A bound on ‖Φ_m − Φ_m̃‖²: the largest Σ w₂ᵢ² ‖x′ⱼ‖² over the kinks of one example.

    A neuron with kinks on two examples makes columns overlap; then the bound is the sum over all kinks.
    """
    examples, neurons = found.kinks.T
    parts = found.net["W2"][neurons] ** 2 * (1 + np.sum(found.x[examples] ** 2, axis=1))
    if len(np.unique(neurons)) < len(neurons):
        return float(parts.sum())
    return float(np.bincount(examples, weights=parts).max())


def second_moment(K: Any, lr: float, *, batch_size: int) -> Floats:
    """The operator T that a step of SGD applies to U = E[u uᵀ], u = f − y near an interpolator, K = ΦᵀΦ.

    A matrix on symmetric n × n matrices, n(n + 1)/2 numbers each. Batches are drawn without replacement:
    T(U) = U − (η/n)(KU + UK) + (η/B)² K (E[s sᵀ] ⊙ U) K, E[sᵢsⱼ] = B(B − 1)/(n(n − 1)) and B/n on the diagonal.
    """
    K, lr, batch = _checked(K, lr, batch_size)
    n = len(K)
    rows, columns = np.triu_indices(n)
    T = np.empty((len(rows), len(rows)))
    for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
        U = np.zeros((n, n))
        U[i, j] = U[j, i] = 1.0
        T[:, k] = _apply(U, K, lr, batch)[rows, columns]
    return T


def growth(K: Any, lr: float, *, batch_size: int) -> float:
    """The spectral radius of T: the factor by which a step changes E‖u‖² in the long run.

    >>> round(growth(np.diag([4.0, 2.0]), 0.5, batch_size=2), 6)    # λ = 2, 1: (1 − 0.5)² and (1 − 1)², 0.25 ahead
    0.25
    >>> round(growth(np.diag([4.0, 2.0]), 0.5, batch_size=1), 6)    # ½ (1 − 2)² + ½
    1.0
    """
    return float(np.abs(np.linalg.eigvals(second_moment(K, lr, batch_size=batch_size))).max())


def largest_stable_lr(K: Any, *, batch_size: int, rtol: float = 1e-6) -> float:
    """The largest η up to which SGD is stable in mean square. For the full batch it is 2/λ_max(K/n)."""
    K, _, batch = _checked(K, 1.0, batch_size)
    low, high = 0.0, 2 * len(K) / float(np.linalg.eigvalsh(K)[-1])
    # E‖u‖² ≥ ‖E u‖²: no batch size is stable where the full batch is not.
    while high - low > rtol * high:
        middle = (low + high) / 2
        low, high = (middle, high) if growth(K, middle, batch_size=batch) <= 1 + 1e-12 else (low, middle)
    return high


def _apply(U: Floats, K: Floats, lr: float, batch: int) -> Floats:
    n = len(K)
    both = batch * (batch - 1) / (n * (n - 1)) if n > 1 else 0.0
    drawn = both * U
    np.fill_diagonal(drawn, batch / n * np.diagonal(U))
    mean = K @ U
    return U - lr / n * (mean + mean.T) + (lr / batch) ** 2 * (K @ drawn @ K)


def _checked(K: Any, lr: float, batch_size: int) -> tuple[Floats, float, int]:
    K = np.asarray(K, dtype=float)
    # The rounding of a product ΦᵀΦ.
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.allclose(K, K.T, rtol=1e-10, atol=1e-12 * np.abs(K).max()):
        check.refuse(
            "K", "a symmetric matrix, one row for each example", f"shape {K.shape}", "Pass J @ J.T, J the Jacobian."
        )
    check.finite("K", K)
    batch = check.integer("batch_size", batch_size, minimum=1)
    if batch > len(K):
        check.refuse("batch_size", f"at most the {len(K)} examples", batch_size, "Pass the number of examples or less.")
    return K, check.number("lr", lr, above=0.0), batch


def excursion(
    found: Modes,
    lr: float,
    *,
    batch_size: int | None = None,
    starts: int = 64,
    repeats: int = 32,
    steps: int = 200,
    key: int = 0,
) -> float:
    """Strong stability by simulation of the switching linear system around a minimum with kinks (S26): the largest mean
    distance from the minimum after the start, in units of the radius.

    Above 1 the minimum is not strongly stable. A value of at most 1 proves nothing: more `starts` and `steps` may find
    more.

    θ ← θ − (η/B) Σ_{j in batch} ∇φⱼ ∇φⱼᵀ(θ − θ*), where φ is that of the mode in which θ lies. The runs start on a
    sphere around θ*: first along the top eigenvectors of modes, then in random directions. The system is homogeneous,
    so the radius does not matter. With a batch size, distances are means over `repeats` of each start.
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
    return worst


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
    return stacked / np.linalg.norm(stacked, axis=1, keepdims=True)


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
