"""The least flatness of interpolators: lower bounds, and descent on the inner weights."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.activations import Homogeneous
from steppe.flattening import Features, Interpolator, NoInterpolatorError, features, flattest_interpolator
from steppe.training_set import Floats, examples, inputs


def least_norm(phi: Any, y: Any) -> Floats:
    """a = Φᵀ(ΦΦᵀ)⁻¹y, the interpolator of least ‖a‖."""
    return np.linalg.lstsq(np.asarray(phi, dtype=float), np.asarray(y, dtype=float), rcond=None)[0]


def from_least_norm(features: Features, y: Any, *, a: Floats | None = None) -> float:
    """Lemma 5 with the exact weights q: a bound below the flatness of every interpolator with these inner weights.

    The dual of Eq. 3 at λ = t (ΦΦᵀ)⁻¹y is t‖a‖² minus the conjugate at ta, a of least norm; the best t gives
    ‖a‖² minₖ q_k/|a_k| for p = 1 and (‖a‖²/‖a/q^{1/p}‖_s)^p otherwise, 1/p + 1/s = 1.

    >>> f = Features(np.array([[1.0, 1.0]]), np.array([3.0, 3.0]), 1.0)
    >>> round(from_least_norm(f, [2.0]), 12)                        # a = (1, 1): attained
    6.0
    """
    a = least_norm(features.phi, y) if a is None else a
    used = a != 0
    if not used.any():
        return 0.0
    square, p = float(a @ a), features.p
    a, q = np.abs(a[used]), features.q[used]
    if p == 1:
        return square * float(np.min(q / a))
    s = p / (p - 1)
    return float((square / np.sum((a / q ** (1 / p)) ** s) ** (1 / s)) ** p)


def pointwise(x: Any, y: Any, m: int, activation: Homogeneous, *, bias: bool = False) -> float:
    """(2/n) (c + 1) c^{c/(c+1)} α^{2/(c+1)} m^{1−p} Σ (|yᵢ|‖xᵢ‖)^p, a bound below tr ∇²L of interpolators of width m.

    p = 2c/(c + 1), and α is the smallest of |α₊| and |α₋| that is not 0. A neuron that contributes z = aσ at xᵢ has
    σ² + (aσ′)²‖xᵢ‖² ≥ (c + 1) c^{c/(c+1)} α^{2/(c+1)} (|z|‖xᵢ‖)^p there, and the z add up to yᵢ. This is the rate of
    Theorem 1 without its assumptions; for ReLU it is the bound of wen2023. With `bias` ‖(xᵢ, 1)‖ replaces ‖xᵢ‖.

    >>> from steppe.activations import rectifier
    >>> pointwise([[3.0, 4.0]], [2.0], 7, rectifier)                # 4 · 5 · 2, for every width
    40.0
    """
    points, labels = examples(x, y)
    c, m = activation.degree, check.integer("m", m, minimum=1)
    p = 2 * c / (c + 1)
    sizes = [abs(s) for s in (activation.positive, activation.negative) if s != 0]
    if not sizes:
        return 0.0 if not labels.any() else np.inf
    lengths = np.sqrt(np.sum(points**2, axis=1) + (1.0 if bias else 0.0))
    scale = (c + 1) * c ** (c / (c + 1)) * min(sizes) ** (2 / (c + 1)) * m ** (1 - p)
    return float(2 * scale * np.mean((np.abs(labels) * lengths) ** p))


# A step that does not help is halved this often before the descent ends.
_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Descended:
    """Inner weights `W` of unit norm, their flattest `interpolator`, and its flatness after every step.

    `lr` is the last length of a step; it is 0 where no step helped any more.
    """

    W: Floats
    interpolator: Interpolator
    values: Floats
    lr: float


def descend(
    x: Any,
    y: Any,
    W: Any,
    activation: Homogeneous,
    *,
    steps: int = 100,
    lr: float = 0.3,
    rtol: float = 1e-6,
    keep: Callable[[Floats], Floats] = lambda W: W,
) -> Descended:
    """Towards the flattest of all interpolators, by alternating two moves.

    First a = argmin Σ q_k |a_k|^p over Φa = y, a convex program, then a step of every w_k on the unit sphere along the
    gradient of `usefulness`. With λ the multiplier of the program and s_k = λ·σ(Xw_k), the gradient of its value in w_k
    is −q_k |a_k|^p ∇(p log|s_k| − log q_k). The step leaves out the factor q_k |a_k|^p: so neurons with a_k = 0 move
    too, towards where they become useful. The step is halved until the value falls. The descent ends where that fails.
    After every step `keep` puts the inner weights back to where they must stay.

    >>> rng = np.random.default_rng(0)
    >>> x, W = rng.normal(size=(6, 2)), rng.normal(size=(20, 2))
    >>> done = descend(x, np.maximum(x[:, 0], 0), W, Homogeneous(1.0, 0.0, 1), steps=5)
    >>> bool((np.diff(done.values) < 0).all())
    True
    """
    points, labels = examples(x, y)
    weights = inputs(W, name="W")
    lr, rtol = check.number("lr", lr, above=0.0), check.number("rtol", rtol, above=0.0)
    weights = keep(_units(weights))
    best = _solved(points, labels, weights, activation, rtol)
    values = [best.flatness]
    for _ in range(check.integer("steps", steps, minimum=1)):
        direction = usefulness(points, weights, best.multiplier, activation)[1]
        for _ in range(_HALVINGS):
            moved = keep(_units(weights + lr * direction))
            with contextlib.suppress(NoInterpolatorError):  # the step was too long, as where the value rises
                found = _solved(points, labels, moved, activation, rtol)
                # Both values are known to rtol.
                if found.flatness < best.flatness * (1 - 2 * rtol):
                    break
            lr /= 2
        else:
            lr = 0.0
            break
        weights, best, lr = moved, found, 1.3 * lr
        values.append(best.flatness)
    return Descended(weights, best, np.array(values), lr)


def usefulness(x: Floats, W: Floats, multiplier: Floats, activation: Homogeneous) -> tuple[Floats, Floats]:
    """(log(|s_k|^p/q_k) for unit w_k, its gradient along the sphere, cut to length 1).

    For p = 1 another neuron makes the interpolator flatter exactly where the first number is positive.
    """
    c, h = activation.degree, x @ W.T
    phi, slope, bend = activation(h), activation.slope(h), _bend(activation, h)
    squares = np.sum(x**2, axis=1)
    # Dead neurons would have logarithms of 0. Their gradient is 0.
    tiny = np.finfo(float).tiny
    s, A = multiplier @ phi, np.maximum(np.sum(phi**2, axis=0), tiny)
    B = np.maximum(squares @ slope**2, tiny)
    toward = 2 * c / (c + 1) * (slope * multiplier[:, None]) / np.where(s == 0, np.inf, s)
    cost = 2 / (c + 1) * (phi * slope) / A + 2 * c / (c + 1) * (squares[:, None] * slope * bend) / B
    gradient = (toward - cost).T @ x
    gradient -= np.sum(gradient * W, axis=1, keepdims=True) * W
    gradient /= np.maximum(1.0, np.linalg.norm(gradient, axis=1, keepdims=True))
    q = features(W, x, activation).q
    value = 2 * c / (c + 1) * np.log(np.maximum(np.abs(s), tiny)) - np.log(np.maximum(q, tiny))
    return value, gradient


def _bend(activation: Homogeneous, h: Floats) -> Floats:
    """σ″, with σ″(0) = 0."""
    c = activation.degree
    side = np.where(h > 0, activation.positive, np.where(h < 0, activation.negative, 0.0))
    return c * (c - 1) * side * np.where(h == 0, 1.0, np.abs(h)) ** (c - 2)


def _solved(x: Floats, y: Floats, W: Floats, activation: Homogeneous, rtol: float) -> Interpolator:
    f = features(W, x, activation)
    return flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)


def _units(W: Floats) -> Floats:
    return W / np.linalg.norm(W, axis=1, keepdims=True)
