"""Losses, each with its normalisation in its name: L(w) = (1/n) Σᵢ ℓ(f(xᵢ), yᵢ).

A factor of two between conventions ruins every comparison of sharpness, so a `Problem` names its loss:

| loss | ℓ(f, y) | used by |
| --- | --- | --- |
| `mse` | mean over outputs of (f − y)² | wen2023, multi-index |
| `half_mse` | ½ ‖f − y‖² | conflicting-biases, mulayoff2021 (Cohen et al. 2021) |
| `cross_entropy` | −log softmax(f)[y], y a class number | conflicting-biases |
| `logistic(smoothing=p)` | (1 − p) log(1 + e^{−yf}) + p log(1 + e^{yf}), y = ±1 | wen2023, appendix A |
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe._guard import guard

__all__ = ["Loss", "cross_entropy", "half_mse", "logistic", "mse"]


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True)
class Loss:
    """One example's loss ℓ(f, y); a problem's loss is its mean over the examples.

    >>> float(mse(jnp.array([1.0, 3.0]), jnp.array([0.0, 0.0])))    # (1 + 9) / 2
    5.0
    >>> float(half_mse(jnp.array([1.0, 3.0]), jnp.array([0.0, 0.0])))
    2.5
    """

    name: str
    example: Callable[[Array, Array], Array] = field(repr=False)
    check_targets: Callable[[tuple[int, ...], np.ndarray], None] = field(repr=False)
    smoothing: float = 0.0

    @guard
    def __call__(self, predictions: Array, targets: Array) -> Array:
        return jnp.mean(jax.vmap(self.example)(predictions, targets))


def _same_shape(predictions: tuple[int, ...], y: np.ndarray) -> None:
    # (n, 1) against (n,) would broadcast to (n, n) and train on wrong targets silently.
    if predictions != y.shape:
        check.refuse(
            "y",
            f"of the shape that predict returns, {predictions}",
            y.shape,
            "Reshape y, or squeeze the last axis of predict's output.",
        )


def _signs(predictions: tuple[int, ...], y: np.ndarray) -> None:
    _same_shape(predictions, y)
    if not np.isin(y, (-1, 1)).all():
        check.refuse("y", "-1 or +1 for the logistic loss", np.unique(y)[:5].tolist(), "Map the two classes to ±1.")


def _classes(predictions: tuple[int, ...], y: np.ndarray) -> None:
    if len(predictions) < 2 or predictions[:-1] != y.shape:
        check.refuse(
            "y",
            f"one class number for each row of predict's output {predictions}",
            y.shape,
            "predict must return (examples, ..., classes) and y the class numbers (examples, ...).",
        )
    if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= predictions[-1]:
        seen = f"{y.dtype} from {y.min()} to {y.max()}"
        check.refuse("y", f"integers from 0 to {predictions[-1] - 1}", seen, "Pass class numbers, not one-hot rows.")


def _log_likelihood(f: Array, y: Array) -> Array:
    picked: Array = jnp.take_along_axis(jax.nn.log_softmax(f), y[..., None], axis=-1)
    return picked


mse = Loss("mse", lambda f, y: jnp.mean((f - y) ** 2), _same_shape)
half_mse = Loss("half_mse", lambda f, y: 0.5 * jnp.sum((f - y) ** 2), _same_shape)
cross_entropy = Loss("cross_entropy", lambda f, y: -jnp.mean(_log_likelihood(f, y)), _classes)


def logistic(*, smoothing: float = 0.0) -> Loss:
    """Logistic loss with label smoothing p, minimised at f = y ln((1 − p)/p) (wen2023, definition A.2, corrected).

    >>> float(logistic()(jnp.array([0.0]), jnp.array([1.0])))       # ln 2
    0.6931...
    """
    p = check.number("smoothing", smoothing, minimum=0.0)
    if p >= 0.5:
        check.refuse("smoothing", "below 0.5", smoothing, "At 0.5 the two labels mean the same.")
    return _logistic(p)


@cache  # one object for each p, so that equal problems share compiled code
def _logistic(p: float) -> Loss:
    def example(f: Array, y: Array) -> Array:
        return jnp.mean((1 - p) * jax.nn.softplus(-y * f) + p * jax.nn.softplus(y * f))

    return Loss("logistic", example, _signs, p)


def ours(loss: Loss) -> bool:
    """Whether it is a loss of this module, whose derivatives and distribution are known. The name is no proof: a user's
    loss can have the same one.

    >>> ours(mse), ours(logistic()), ours(Loss("mse", lambda f, y: jnp.sum((f - y) ** 4), _same_shape))
    (True, True, False)
    """
    return loss in (mse, half_mse, cross_entropy) or loss == _logistic(loss.smoothing)


def named(name: str) -> Loss:
    """The loss of a name, for command lines and files; the smoothing of logistic follows a colon."""
    fixed = {loss.name: loss for loss in (mse, half_mse, cross_entropy)}
    head, _, tail = name.partition(":")
    if head == "logistic":
        try:
            smoothing = float(tail or 0.0)
        except ValueError:
            check.refuse("loss", "logistic or logistic:SMOOTHING", name, "For example logistic:0.2.")
        return logistic(smoothing=smoothing)
    if head not in fixed or tail:
        raise check.ArgumentError(f"unknown loss {name!r}. " + check.suggest(name, [*fixed, "logistic:0.2"]))
    return fixed[head]
