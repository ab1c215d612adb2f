"""1-SAM on wen2023's nets (d 30, m 500, n 100, float32).

The two-layer net runs against autodiff, PyTorch and the limit of the hardware. The other nets run against our own
generic path, which is one compiled loop over autodiff.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steppe import kernels, losses
from steppe.activations import softplus
from steppe.data import xor
from steppe.dynamics import GD, SAM, Dynamics, Projected
from steppe.dynamics._base import Generic
from steppe.kernels.path import Path, block
from steppe.kernels.simd import kernel
from steppe.networks import MLP, SimBN, SimLN, TwoLayer
from steppe.problem import Problem

from . import Ratio
from ._timing import best_times

D, M, N, LR, RHO = 30, 500, 100, 0.01, 0.05
OURS_STEPS, SCAN_STEPS, TORCH_STEPS, STREAMS, GENERIC_STEPS = 60_000, 5_000, 300, 60_000, 100


def measure() -> list[Ratio]:
    """Microseconds for a step of each. The limit is one read and one write of every weight."""
    network, data = TwoLayer(), xor(D, N, key=0)
    start = network.init(D, M, np.random.default_rng(0), np.float32)
    problem = Problem(network, start, data.x, data.y, losses.mse)
    order = block(0, N, 0)
    contenders: dict[str, tuple[Callable[[], object], int]] = {
        "ours": (_ours(problem, runs=1), OURS_STEPS),
        "two runs": (_ours(problem, runs=2), 2 * OURS_STEPS),
        "lax.scan": (_scan(problem, order), SCAN_STEPS),
        "limit": (_stream(problem), STREAMS),
    }
    if find_spec("torch") is not None:
        contenders["torch"] = (_torch(start, data.x, data.y, order), TORCH_STEPS)
    best = {name: 1e6 * seconds for name, seconds in best_times(contenders).items()}
    ours = best["ours"]

    def ratio(peer: str, theirs: float, target: str) -> Ratio:
        return Ratio("1-SAM step", peer, ours, theirs, "µs", theirs / ours, target)

    results = [
        ratio("lax.scan over autodiff", best["lax.scan"], "target ≥ 8"),
        ratio(
            "stream the weights once (limit)", best["limit"], f"{ours / best['limit']:.2f} × the limit, target ≤ 2.5"
        ),
        Ratio(
            "1-SAM step, two runs at once", "one run", best["two runs"], ours, "µs", ours / best["two runs"], "2 cores"
        ),
    ]
    if "torch" in best:
        results.insert(0, ratio("eager PyTorch, one thread", best["torch"], "target ≥ 200"))
    return results + _architectures()


def _architectures() -> list[Ratio]:
    """All other networks with a kernel, and their dynamics. The rates are small, so that all weights stay finite."""
    data, sam = xor(D, N, key=0), SAM(1e-3, RHO)
    logistic = losses.logistic(smoothing=0.2)
    projected = Projected(sam, {"W1", "b1"}, 10.0)
    kinds: dict[str, tuple[Any, losses.Loss, Dynamics, int]] = {
        "1-SAM step, softplus": (TwoLayer(activation=softplus), losses.mse, sam, 20_000),
        "1-SAM step, logistic loss": (TwoLayer(), logistic, sam, 20_000),
        "1-SAM step, Sim-LN": (SimLN(0.5), losses.mse, sam, 20_000),
        "1-SAM step, Sim-LN, W₁ projected": (SimLN(0.5), losses.mse, projected, 20_000),
        "1-SAM step, Sim-BN": (SimBN(data.x), losses.mse, sam, 500),
        "1-SAM step, depth 3": (MLP(3), losses.mse, sam, 1_000),
        "SGD step, depth 3": (MLP(3), losses.mse, GD(1e-3, batch_size=1), 1_000),
    }
    contenders: dict[str, tuple[Callable[[], object], int]] = {}
    for name, (network, loss, dynamics, steps) in kinds.items():
        params = network.init(D, M, np.random.default_rng(0), np.float32)
        problem = Problem(network, params, data.x, data.y, loss)
        fast = kernels.build(problem, dynamics.recipe(), 0)
        assert fast is not None
        contenders[name] = _steps(fast, problem, steps), steps
        contenders[f"{name}, generic"] = _steps(Generic(problem, dynamics, 0), problem, GENERIC_STEPS), GENERIC_STEPS
    best = {name: 1e6 * seconds for name, seconds in best_times(contenders, rounds=3).items()}
    return [
        Ratio(name, "generic path", best[name], theirs, "µs", theirs / best[name])
        for name in kinds
        for theirs in (best[f"{name}, generic"],)
    ]


def _steps(path: Path, problem: Problem, count: int) -> Callable[[], object]:
    state, order = path.start(problem.w0), block(0, N, 0)
    return lambda: path.advance(state, order, first=0, offset=0, count=count, target=0.0)


def _ours(problem: Problem, *, runs: int) -> Callable[[], object]:
    path = kernels.build(problem, SAM(LR, RHO).recipe(), 0)
    assert path is not None
    steps, pool = _steps(path, problem, OURS_STEPS), ThreadPoolExecutor(runs)
    return lambda: list(pool.map(lambda _: steps(), range(runs)))


def _scan(problem: Problem, order: Any) -> Callable[[], object]:
    """What a careful user of JAX writes: one scan over the steps, both gradients by autodiff."""

    def step(w: Any, i: Any) -> tuple[Any, None]:
        g = jax.grad(problem.example_loss)(w, i)
        norm = jnp.linalg.norm(g)
        g = jax.grad(problem.example_loss)(w + RHO * jnp.where(norm > 0, g / norm, 0.0), i)
        return w - LR * g, None

    steps = jax.jit(lambda w, order: jax.lax.scan(step, w, order)[0])
    indices = jnp.asarray(order.ravel()[:SCAN_STEPS])
    return lambda: steps(problem.w0, indices).block_until_ready()


@kernel
def _stream_weights(weights, factor, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        for k in range(weights.size):
            weights[k] *= factor


def _stream(problem: Problem) -> Callable[[], object]:
    weights = np.array(problem.w0)
    return lambda: _stream_weights(weights, np.float32(1), STREAMS)


def _torch(start: dict[str, Any], x: Any, y: Any, order: Any) -> Callable[[], object]:
    """The same steps as PyTorch users write them: a module, autograd, parameters moved in place."""
    import torch

    W1, b1, W2 = (torch.tensor(start[name], requires_grad=True) for name in ("W1", "b1", "W2"))
    X, Y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    params = (W1, b1, W2)

    def loss(i: int) -> Any:
        return (torch.relu(X[i] @ W1.T + b1) @ W2 - Y[i]) ** 2

    def steps() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for i in order.ravel()[:TORCH_STEPS].tolist():
            gradients = torch.autograd.grad(loss(i), params)
            norm = torch.sqrt(sum((g * g).sum() for g in gradients))
            moves = [RHO * g / norm for g in gradients]
            with torch.no_grad():
                for p, move in zip(params, moves, strict=True):
                    p.add_(move)
            ascended = torch.autograd.grad(loss(i), params)
            with torch.no_grad():
                for p, move, g in zip(params, moves, ascended, strict=True):
                    p.sub_(move)
                    p.sub_(LR * g)
        torch.set_num_threads(threads)

    return steps
