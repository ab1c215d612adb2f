"""The rise of the loss under perturbation: adaptive sharpness, on average and at worst; random directions."""

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.special import stdtrit

from steppe import check
from steppe._random import Key, generator
from steppe.curvature import AnyProblem, Statistics, backend
from steppe.curvature._backend import Increase
from steppe.curvature._increase import REST
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._probes import looks
from steppe.measures._policy import check_policy, measured

# The default accuracy of a sampled increase, with its evaluations of the loss.
SAMPLED = Accuracy(0.1, max_matvecs=10_000)
# The fewest pairs of draws for which the interval is known to hold.
_FEWEST = 64
# The share of the requested width that rounding may take in float32.
_SHARE = 0.1


def adaptive_sharpness(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    radius: float = 0.1,
    accuracy: Accuracy = SAMPLED,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """E L(w + |w| ⊙ ε) − L(w), ε ~ N(0, ρ² I): the mean increase of the loss under steps relative to each parameter.

    ρ is `radius`. Rescaling a neuron (incoming weights times s, outgoing weights divided by s) does not change it.
    `matvecs` counts evaluations of the loss, and `accuracy` limits them.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.array([2.0]), jnp.ones((1, 1)), jnp.array([2.0]),
    ...                    steppe.losses.half_mse)
    >>> e = adaptive_sharpness(p, radius=0.5)                       # L = ½(w − 2)² at w = 2: ½ (2 · 0.5)²
    >>> e.lower <= 0.5 <= e.upper
    True

    Andriushchenko et al. 2023, after Kwon, Kim, Park and Choi 2021 (element-wise, ℓ₂).
    """
    check_policy(problem, accuracy=accuracy, statistics=statistics, memory=memory, key=key)
    radius = check.number("radius", radius, above=0.0)
    with np.errstate(over="ignore"):  # the loss there is refused
        scale = radius * np.abs(backend(problem).prepared(problem, w))
    return _expected_increase(problem, w, scale, accuracy=accuracy, statistics=statistics, memory=memory, key=key)


def worst_adaptive_sharpness(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    radius: float = 0.1,
    steps: int = 50,
    restarts: int = 4,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """max L(w + |w| ⊙ ε) − L(w) over ‖ε‖₂ ≤ ρ = `radius`, which rescaling a neuron does not change either.

    Projected ascents of at most `steps` steps start along the gradient and from `restarts` random points. The largest
    increase they find is attained, hence `lower`; nothing proves that there is no higher point, hence `upper` is
    infinite. `converged` says whether every ascent came to rest; `matvecs` counts gradients.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.array([2.0]), jnp.ones((1, 1)), jnp.array([2.0]),
    ...                    steppe.losses.half_mse)
    >>> round(worst_adaptive_sharpness(p, radius=0.5).value, 6)     # L = ½(w − 2)² at w = 2: ½ (2 · 0.5)²
    0.5

    Kwon, Kim, Park and Choi 2021 (element-wise, ℓ₂).
    """
    check_policy(problem, statistics=statistics, memory=memory, key=key)
    radius = check.number("radius", radius, above=0.0)
    steps = check.integer("steps", steps, minimum=1)
    restarts = check.integer("restarts", restarts, minimum=0)
    scale, seed = np.abs(backend(problem).prepared(problem, w)), int(generator(key).integers(2**63))
    increase = backend(problem).increase(problem, w, scale, statistics=statistics, memory=memory, seed=seed)
    best, error, gradients, at_rest = increase.ascend(radius, steps=steps, restarts=restarts)
    if error > REST * best and not increase.is_double:
        with increase.in_double() as wide:
            if wide is not None:
                best, error, more, at_rest = wide.ascend(radius, steps=steps, restarts=restarts)
                gradients += more
    # The step 0 attains 0.
    lower = max(best - error, 0.0)
    estimate = Estimate(best, lower, math.inf, 1.0, gradients, converged=at_rest and error <= REST * best)
    return measured(estimate, problem, statistics)


def random_direction_sharpness(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    sigma: float = 0.01,
    accuracy: Accuracy = SAMPLED,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """E L(w + σ g) − L(w), g standard normal in all parameters: (σ²/2) tr ∇²L(w) to leading order in σ.

    `matvecs` counts evaluations of the loss, and `accuracy` limits them.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.ones(2), jnp.eye(2), jnp.zeros(2), steppe.losses.half_mse)
    >>> e = random_direction_sharpness(p, sigma=1.0)                # tr ∇²L = 1, and L is quadratic
    >>> e.lower <= 0.5 <= e.upper
    True

    wen2023, section 2, after Foret et al. 2021 and Orvieto et al. 2022.
    """
    check_policy(problem, accuracy=accuracy, statistics=statistics, memory=memory, key=key)
    sigma = check.number("sigma", sigma, above=0.0)
    scale = np.full(problem.w0.shape, sigma, problem.w0.dtype)
    return _expected_increase(problem, w, scale, accuracy=accuracy, statistics=statistics, memory=memory, key=key)


def _expected_increase(
    problem: AnyProblem,
    w: Array | None,
    scale: NDArray[Any],
    *,
    accuracy: Accuracy,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    """E L(w + scale ⊙ g) − L(w), g standard normal.

    Draws come in pairs ±g, which cancels the gradient: ½[L(w + s g) + L(w − s g)] − L(w). The interval includes the
    rounding of that difference; if a few draws show too much of it, the others are computed in float64.
    """
    remedy = f"The interval takes {_FEWEST} pairs."
    most = check.integer("accuracy.max_matvecs", accuracy.max_matvecs, minimum=2 * _FEWEST, remedy=remedy)
    seed = int(generator(key).integers(2**63))
    increase = backend(problem).increase(problem, w, scale, statistics=statistics, memory=memory, seed=seed)
    if increase.is_double:
        return measured(_sampled(increase, accuracy), problem, statistics)
    # The trial has its own draws, so that the sample is independent of the decision. It costs 16 pairs.
    trial = increase.pairs(most)
    too_much = 2.0 * increase.rounding(most) > _SHARE * accuracy.rtol * abs(trial.mean())
    with increase.in_double() if too_much else nullcontext() as wide:
        found = _sampled(wide or increase, accuracy)
    return measured(replace(found, matvecs=found.matvecs + 2 * len(trial)), problem, statistics)


def _sampled(increase: Increase, accuracy: Accuracy) -> Estimate:
    sample, error, rtol = np.empty(0), 0.0, accuracy.rtol
    for count, share in looks(_FEWEST, accuracy.max_matvecs // 2, accuracy.delta, keep=0.8):
        while len(sample) < count:
            pairs = increase.pairs(len(sample))
            error = error if len(sample) else increase.rounding()
            sample = np.concatenate([sample, pairs])
        value, lower, upper = interval(sample, share)
        # More draws cannot bring the bounds closer than the rounding.
        if upper - lower <= max(rtol * abs(value) - 2.0 * error, error):
            break
    lower, upper = lower - error, upper + error
    converged = upper - lower <= rtol * abs(value)
    return Estimate(value, lower, upper, 1.0 - accuracy.delta, 2 * len(sample) + 1, converged=converged)


def interval(sample: NDArray[np.float64], delta: float) -> tuple[float, float, float]:
    """(mean, lower, upper): Student's interval, corrected for skewness.

    The increase of the loss under a Gaussian step is to leading order a weighted sum of χ² variables, as skewed as one
    χ²₁ if one direction dominates. For 64 such draws Student's interval at 0.99 holds with probability 0.979; this one,
    Hall's cubic transformation of the t statistic, with 0.990.

    >>> [round(v, 3) for v in interval(np.array([-1.0, 1.0] * 50), 0.01)]
    [0.0, -0.264, 0.264]

    Hall 1992, On the removal of skewness by transformation.
    """
    n, mean, deviation = len(sample), float(sample.mean()), float(sample.std(ddof=1))
    if deviation == 0.0:
        return mean, mean, mean
    skewness = float((((sample - mean) / deviation) ** 3).mean())
    a, error, t = skewness / (6.0 * n**0.5), deviation / n**0.5, -float(stdtrit(n - 1, 0.5 * delta))
    return mean, mean - _inverse(t, a) * error, mean - _inverse(-t, a) * error


def _inverse(u: float, a: float) -> float:
    """The t whose transform t + 2at² + (4/3)a²t³ + a is u."""
    return u if abs(a) < 1e-8 else (float(np.cbrt(1.0 + 6.0 * a * (u - a))) - 1.0) / (2.0 * a)
