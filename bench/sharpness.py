"""λ_max at the edge of stability: our tracker and our cold start against what others use, in products and seconds.

Full-batch gradient descent trains an FCN 784-200-200-10 (tanh, half_mse, float32) on 5,000 digits of MNIST, or on
generated shapes where its files are missing, until its sharpness oscillates around 2/lr. There each method measures it
every few steps, to a relative error of 1e-3. The subject of each ratio names the data.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse.linalg import LinearOperator, eigsh

from steppe import curvature as operators
from steppe import data, losses, measures
from steppe.estimate import Accuracy, Estimate
from steppe.problem import Problem

from . import Ratio, _torch_peers
from ._torch_peers import Work

SIZES, N, LR, RTOL = (784, 200, 200, 10), 5_000, 0.05, 1e-3
# On MNIST the sharpness passes 2/lr = 40 at step 210 and falls back for the first time at step 305.
WARM_UP, EVERY, POINTS, PEER_POINTS = 290, 2, 60, 12


@dataclass
class Tally:
    """Products and seconds of one method at each point, and its largest relative error."""

    products: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    error: float = 0.0

    def add(self, work: Work, truth: float) -> None:
        started = time.perf_counter()
        value, products = work()
        self.seconds.append(time.perf_counter() - started)
        self.products.append(products)
        self.error = max(self.error, abs(value - truth) / truth)


def measure() -> list[Ratio]:
    """The mean cost of a measurement. Training, compiling and the true value at every point are not counted."""
    problem, images = _problem()
    tracker, ours, cold = measures.Tracker(accuracy=Accuracy(RTOL)), Tally(), Tally()
    peers: dict[str, Tally] = {}
    for k, w in enumerate(_trajectory(problem)):
        truth = measures.sharpness(problem, w, accuracy=Accuracy(0.1 * RTOL), key=k).value
        if k == 0:  # the first call of a tracker is a cold start
            tracker(problem, w)
            continue
        ours.add(lambda w=w: _numbers(tracker(problem, w)), truth)  # type: ignore[misc]
        if k % (POINTS // PEER_POINTS) == 0:
            cold.add(lambda w=w: _numbers(measures.sharpness(problem, w, accuracy=Accuracy(RTOL))), truth)  # type: ignore[misc]
            for name, work in _peers(problem, w, truth).items():
                peers.setdefault(name, Tally()).add(work, truth)
    return [
        *_ratios(
            f"λ_max along a trajectory, {images}", ours, peers, f"at most {max(ours.products)} products; target ≥ 5"
        ),
        *_ratios(f"λ_max from a cold start, {images}", cold, peers, "ours with an interval at 0.99; target ≥ 1"),
    ]


def _numbers(estimate: Estimate) -> tuple[float, int]:
    return estimate.value, estimate.matvecs


def _ratios(subject: str, ours: Tally, peers: dict[str, Tally], note: str) -> list[Ratio]:
    results = []
    for name, peer in peers.items():
        for unit, mine, theirs in (("products", ours.products, peer.products), ("s", ours.seconds, peer.seconds)):
            a, b = float(np.mean(mine)), float(np.mean(theirs))
            errors = f"errors {ours.error:.0e}, {peer.error:.0e}"
            results.append(Ratio(subject, name, a, b, unit, b / a, f"{errors}; {note}"))
    return results


def _peers(problem: Problem, w: Array, truth: float) -> dict[str, Work]:
    """The first three use our products, so that only the algorithms differ. The libraries use their own products."""
    H = operators.hessian
    peers: dict[str, Work] = {
        "eigsh as in Cohen et al. 2021": lambda: _eigsh(H(problem, w), tol=0.0),
        "eigsh, tol 1e-3": lambda: _eigsh(H(problem, w), tol=RTOL),
        "power iteration": lambda: _power(H(problem, w), truth),
    }
    if find_spec("curvlinops") is not None:
        peers["curvlinops, eigsh, tol 1e-3"] = lambda: _eigsh(_curvlinops(problem, w), tol=RTOL)
    return peers | _torch_peers.peers(problem, w)


def _eigsh(matvec: Callable[[Any], Any], *, tol: float) -> tuple[float, int]:
    """ARPACK with its default basis. tol = 0 is its default too and means the precision of floats."""
    products, p = 0, sum((a + 1) * b for a, b in pairwise(SIZES))

    def counted(v: Any) -> Any:
        nonlocal products
        products += 1
        return matvec(v.ravel())

    operator = LinearOperator((p, p), matvec=counted, dtype=np.float32)
    (value,) = eigsh(operator, 1, which="LA", tol=tol, return_eigenvectors=False)
    return float(value), products


def _power(H: operators.Operator, truth: float) -> tuple[float, int]:
    """It stops when the value is within RTOL of the truth, which is better for it than any rule of a user."""
    v = np.random.default_rng(0).standard_normal(H.size)
    value, products = 0.0, 0
    while abs(value - truth) > RTOL * truth and products < 300:
        v /= np.linalg.norm(v)
        Av = H(v)
        value, v, products = float(v @ Av), Av.astype(float), products + 1
    return value, products


def _curvlinops(problem: Problem, w: Array) -> Callable[[Any], Any]:
    import torch
    from curvlinops import HessianLinearOperator  # type: ignore[import-untyped]

    # curvlinops accepts only losses that it knows: the factor of half_mse is applied here.
    model, _, batch = _torch_peers.model(problem, w)
    loss, parameters = torch.nn.MSELoss(), list(model.parameters())
    operator = HessianLinearOperator(model, loss, parameters, [batch], check_deterministic=False)
    return lambda v: 0.5 * SIZES[-1] * (operator @ torch.tensor(v, dtype=torch.float32)).numpy()


def _trajectory(problem: Problem) -> list[Array]:
    step = jax.jit(lambda w: w - LR * jax.grad(problem.loss)(w))
    w, points = problem.w0, []
    for k in range(WARM_UP + EVERY * POINTS + 1):
        if k >= WARM_UP and (k - WARM_UP) % EVERY == 0:
            points.append(w)
        w = step(w)
    return points


def _problem() -> tuple[Problem, str]:
    """The training problem, and the name of its data."""
    rng = np.random.default_rng(0)

    def uniform(fan_in: int, *shape: int) -> Any:
        return rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(fan_in**0.5)

    layers = [(uniform(a, a, b), uniform(a, b)) for a, b in pairwise(SIZES)]
    x, classes, name = _digits(rng)
    x = (x - x.mean()) / x.std()
    y = np.eye(10, dtype=np.float32)[classes]
    return Problem(_fcn, layers, x.astype(np.float32), y, losses.half_mse), name


def _fcn(layers: Any, x: Array) -> Array:
    for W, b in layers[:-1]:
        x = jnp.tanh(x @ W + b[None])
    W, b = layers[-1]
    return x @ W + b[None]


def _digits(rng: np.random.Generator) -> tuple[Any, Any, str]:
    """(x, classes, name): the first 5,000 digits of MNIST if its files are there; otherwise ten smooth shapes, shifted
    and with noise."""
    try:
        mnist = data.mnist(N, test=1)
        return mnist.x.reshape(N, -1), mnist.y, mnist.name
    except data.MissingDataError:
        pass
    i, j = np.mgrid[:28, :28] / 28
    waves = [np.cos(2 * np.pi * (a * i + b * j)) for a in range(4) for b in range(4)]
    shapes = np.tensordot(rng.standard_normal((10, 16)), waves, axes=1)
    classes = rng.integers(0, 10, N)
    moved = [np.roll(shapes[c], rng.integers(-2, 3, 2), axis=(0, 1)) for c in classes]
    x = (np.stack(moved) + rng.standard_normal((N, 28, 28))).reshape(N, 784)
    return x, classes, f"generated-shapes-{N}"
