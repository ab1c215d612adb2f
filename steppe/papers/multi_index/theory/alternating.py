"""The flattest of all interpolators: outer weights by the convex program, inner weights by ascent on the sphere."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.activations import Homogeneous
from steppe.examples import Floats, examples, inputs
from steppe.flattening._interpolator import Interpolator, NoInterpolatorError, features, flattest_interpolator

_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Descended:
    """Inner weights `W` of unit norm, their flattest `interpolator`, and its flatness after every step.

    `lr` is what the length of a step has become; 0 where no step helped any more.
    """

    W: Floats
    interpolator: Interpolator
    values: Floats
    lr: float


def descend(
    x: Any, y: Any, W: Any, activation: Homogeneous, *, steps: int = 100, lr: float = 0.3, rtol: float = 1e-6
) -> Descended:
    """Alternate: a = argmin Σ q_k |a_k|^p over Φa = y, then every w_k along `usefulness` on the unit sphere.

    With λ the multiplier of the program and s_k = λ·σ(Xw_k), the gradient of its value in w_k is
    −q_k |a_k|^p ∇(p log|s_k| − log q_k). The step leaves the factor out, so that a neuron that is not in use moves too,
    to where it will be; it is halved until the value falls, and the descent ends where that does not help.

    >>> rng = np.random.default_rng(0)
    >>> x, W = rng.normal(size=(6, 2)), rng.normal(size=(20, 2))
    >>> done = descend(x, np.maximum(x[:, 0], 0), W, Homogeneous(1.0, 0.0, 1), steps=5)
    >>> bool((np.diff(done.values) < 0).all())
    True
    """
    points, labels = examples(x, y)
    weights = inputs(W, name="W")
    lr, rtol = check.number("lr", lr, above=0.0), check.number("rtol", rtol, above=0.0)
    weights = _units(weights)
    best = _solved(points, labels, weights, activation, rtol)
    values = [best.flatness]
    for _ in range(check.integer("steps", steps, minimum=1)):
        direction = usefulness(points, weights, best.multiplier, activation)[1]
        for _ in range(_HALVINGS):
            moved = _units(weights + lr * direction)
            with contextlib.suppress(NoInterpolatorError):  # too far, as where the value rises
                found = _solved(points, labels, moved, activation, rtol)
                # The two values are known to rtol each.
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
    """log(|s_k|^p/q_k) for unit w_k and its gradient along the sphere, at most of length 1.

    For p = 1 a neuron could make the interpolator flatter exactly where this is positive.
    """
    c, h = activation.degree, x @ W.T
    phi, slope, bend = activation(h), activation.slope(h), _bend(activation, h)
    squares = np.sum(x**2, axis=1)
    # Dead neurons and silent ones have logarithms of 0; they are moved by nothing.
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
    """σ″, 0 at 0."""
    c = activation.degree
    side = np.where(h > 0, activation.positive, np.where(h < 0, activation.negative, 0.0))
    bend: Floats = c * (c - 1) * side * np.where(h == 0, 1.0, np.abs(h)) ** (c - 2)
    return bend


def _solved(x: Floats, y: Floats, W: Floats, activation: Homogeneous, rtol: float) -> Interpolator:
    f = features(W, x, activation)
    return flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)


def _units(W: Floats) -> Floats:
    return W / np.linalg.norm(W, axis=1, keepdims=True)
