"""The flattest rescaling: ours against the published way, 10,000 epochs of a first-order method on the log-scales."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steppe import losses
from steppe.flattening import (
    OUTSIDE,
    Flattened,
    Flattest,
    Rescaling,
    balance,
    exponents,
    flatten,
    flattest,
)
from steppe.flattening import _jacobian as curvature
from steppe.flattening._network import network
from steppe.problem import Problem

from . import Ratio
from ._timing import best_time

# Widths of the layers, and examples. The net for λ_max is small: each of its steps solves an eigenvalue problem.
TRACE, SHARPNESS = ((784, 100, 100, 10), 200), ((10, 16, 16, 2), 20)
EPOCHS = 10_000
# Widths of the stages of ResNet-18; images of CIFAR-10's size, and draws of random signs.
RESNET, IMAGES, DRAWS = (64, 128, 256, 512), 8, 8
# The best rates of the published code for each method. It divides the objective by its first value.
SGD_RATE, ADAM_RATE = 1.0, 0.1


class Ours:
    """Our way to (value, lower). It is timed before and after the peer, because the machine may be busy at one time."""

    def __init__(self, work: Callable[[], tuple[float, float]]):
        self.work, self._before = work, best_time(work)

    def best(self) -> float:
        return min(self._before, best_time(self.work))


def measure() -> list[Ratio]:
    """Seconds to the least trace and to the least λ_max of random ReLU networks of three layers.

    Ibayashi, Hamaguchi and Imaizumi 2021 ("minimum sharpness") use SGD for the trace. They have one scale for each
    layer; here both methods have one for each neuron. Both start from the squared gradients, or from the Jacobian,
    which our code computes. Ours ends with a proof, theirs after EPOCHS steps. The note says how far their value is
    above ours.
    """
    return [*_trace(), *_sharpness(), *_torch()]


def _trace() -> list[Ratio]:
    problem, A, src, dst = _network(*TRACE)
    weights = curvature.diagonal(problem, problem.w0)
    c = jnp.asarray(weights)

    def total(t: Any) -> Any:
        t = jnp.append(t, 0.0)  # OUTSIDE = −1 has no scale
        return jnp.sum(c * jnp.exp(2 * (t[src] - t[dst])))

    rows = []
    for name, method, rate in (("SGD", _sgd, SGD_RATE), ("Adam", _adam, ADAM_RATE)):
        peer = f"{EPOCHS:,} epochs of {name}"
        ours, whole = Ours(lambda: _balanced(A, weights)), Ours(lambda: _bounds(flatten(problem, problem.w0)))
        value, seconds = _descended(total, A.shape[1], method, rate)
        gradients = best_time(lambda: curvature.diagonal(problem, problem.w0))
        rows.append(_ratio("least trace", peer, ours, value, seconds, goal=", target ≥ 100"))
        rows.append(_ratio("least trace, from the network on", peer, whole, value, seconds + gradients))
    return rows


def _sharpness() -> list[Ratio]:
    problem, A, src, dst = _network(*SHARPNESS)
    root = curvature.root(problem, problem.w0)
    J = jnp.asarray(root)

    def largest(t: Any) -> Any:
        t = jnp.append(t, 0.0)
        return jnp.linalg.eigvalsh((J * jnp.exp(2 * (t[src] - t[dst]))[None]) @ J.T)[-1]

    ours = Ours(lambda: _bounds(flattest(Rescaling(root, A))))
    value, seconds = _descended(largest, A.shape[1], _adam, ADAM_RATE)
    return [_ratio("least λ_max", f"{EPOCHS:,} epochs of Adam", ours, value, seconds)]


def _torch() -> list[Ratio]:
    """A ResNet-18 of PyTorch: what flattening costs besides its gradients, against the gradients of `DRAWS` draws."""
    import torch

    import steppe.torch

    torch.manual_seed(0)
    model = resnet(RESNET).eval()
    x, y = torch.randn(IMAGES, 3, 32, 32), torch.arange(IMAGES) % 10
    problem = steppe.torch.Problem(model, (x, y), torch.nn.CrossEntropyLoss())
    net, rng = network(problem), np.random.default_rng(0)
    started = time.perf_counter()
    for _ in range(DRAWS):
        net.draw(rng)
    gradients = time.perf_counter() - started
    started = time.perf_counter()
    best = flatten(problem, draws=DRAWS)
    beyond = max(time.perf_counter() - started - gradients, 1e-3)
    note = f"{problem.w0.size:,} parameters, trace from {best.before:.3g} to {best.value:.3g} ± {best.error:.1g}"
    peer = f"the gradients of {DRAWS} draws on {IMAGES} images"
    return [Ratio("ResNet flattened, beyond gradients", peer, beyond, gradients, "s", gradients / beyond, note)]


def resnet(widths: tuple[int, ...]) -> Any:
    """A residual network of PyTorch with two basic blocks for each width."""
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, width: int, stride: int):
            super().__init__()
            self.first, self.norm1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.second, self.norm2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            short = [nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)]
            self.short = nn.Sequential(*short) if before != width else nn.Identity()

        def forward(self, x: Any) -> Any:
            h = self.norm2(self.second(functional.relu(self.norm1(self.first(x)))))
            return functional.relu(h + self.short(x))

    pairs = [(widths[0], widths[0]), *pairwise(widths)]
    blocks = [Block(a, b, 1 if a == b else 2) if k == 0 else Block(b, b, 1) for a, b in pairs for k in (0, 1)]
    stem = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


def _ratio(subject: str, peer: str, ours: Ours, value: float, seconds: float, *, goal: str = "") -> Ratio:
    least, lower = ours.work()
    note = f"value {least:.6g}, gap {1 - lower / least:.0e}, theirs higher by {value / least - 1:.0e}{goal}"
    best = ours.best()
    return Ratio(subject, peer, best, seconds, "s", seconds / best, note)


def _balanced(A: Any, weights: Any) -> tuple[float, float]:
    best = balance(A, weights)
    return best.value, best.lower


def _bounds(best: Flattened | Flattest) -> tuple[float, float]:
    return best.value, best.lower


def _descended(f: Callable[[Any], Any], units: int, method: Callable[..., Any], rate: float) -> tuple[float, float]:
    """f after EPOCHS steps from t = 0, and their seconds without compiling."""
    start = jnp.zeros(units)
    first = float(f(start))
    slope = jax.grad(lambda t: f(t) / first)
    run = jax.jit(lambda t: jax.lax.fori_loop(0, EPOCHS, method(slope, rate), (t, jnp.zeros(units), jnp.zeros(units))))
    compiled = run.lower(start).compile()
    started = time.perf_counter()
    t = compiled(start)[0].block_until_ready()
    return float(f(t)), time.perf_counter() - started


def _sgd(slope: Callable[[Any], Any], rate: float) -> Callable[[Any, Any], Any]:
    """Each step uses all examples, because the objective is their sum."""

    def step(k: Any, state: Any) -> Any:
        t, m, v = state
        return t - rate * slope(t), m, v

    return step


def _adam(slope: Callable[[Any], Any], rate: float) -> Callable[[Any, Any], Any]:
    """Kingma and Ba 2015, with a rate that falls to zero: with a fixed rate it would not converge."""

    def step(k: Any, state: Any) -> Any:
        t, m, v = state
        g = slope(t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        lr = rate * (1 - k / EPOCHS)
        return t - lr * m / (1 - 0.9 ** (k + 1)) / (jnp.sqrt(v / (1 - 0.999 ** (k + 1))) + 1e-8), m, v

    return step


def _network(widths: tuple[int, ...], n: int) -> tuple[Problem, Any, Any, Any]:
    """A problem, the exponents of its parameters, and for each parameter the neurons at its two ends."""
    rng, dtype = np.random.default_rng(0), jnp.zeros(()).dtype
    pairs = list(pairwise(widths))
    params = [(rng.normal(size=(m, d)) * np.sqrt(2 / d)).astype(dtype) for d, m in pairs]
    x = rng.normal(size=(n, widths[0])).astype(dtype)
    problem = Problem(_predict, params, x, np.asarray(_predict(params, x)), losses.half_mse)
    numbers = np.split(np.arange(sum(widths[1:-1])), np.cumsum(widths[1:-1])[:-1])
    sides = [np.full(widths[0], OUTSIDE), *numbers, np.full(widths[-1], OUTSIDE)]
    src = np.concatenate([np.tile(a, len(b)) for a, b in pairwise(sides)])
    dst = np.concatenate([np.repeat(b, len(a)) for a, b in pairwise(sides)])
    return problem, exponents(src, dst, sum(widths[1:-1])), src, dst


def _predict(params: Any, x: Any) -> Any:
    for W in params[:-1]:
        x = jax.nn.relu(x @ W.T)
    return x @ params[-1].T
