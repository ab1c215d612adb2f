"""Products with ∇²L of every network at every size that the package offers, as users compile them.

`make products` runs all of them; tests/networks/test_products.py the one that was once wrong by 24%. In float32 each
product must be symmetric and linear (`steppe.curvature` checks that itself when it makes an operator), equal to the
product in float64, and that equal to a difference of gradients, for each treatment of batch statistics.
"""

import sys
from collections.abc import Iterator
from itertools import chain

import jax
import numpy as np

from steppe import activations, data, losses, networks
from steppe.curvature import Frozen, FullBatch, PerChunk, hessian
from steppe.networks import build
from steppe.networks._normalised import OwnStatistics
from steppe.problem import Problem

N, CHUNK = 24, 8  # three chunks; a rest would be compiled apart
TREATMENTS = (FullBatch(), PerChunk(CHUNK), Frozen())
# Float32 leaves half of its digits, 3e-4, and a neuron near its kink can be on the other side: a hundredth is a fault.
SINGLE = 1e-2
# A central difference over 1e-10 ‖w‖ in float64 is good to some 1e-5. Over 1e-6 ‖w‖ a ResNet-20 of 24 images crosses
# kinks, and each adds its jump over the step: the difference was 400 times the product.
DIFFERENCE = 1e-3


def images(side: int, channels: int) -> data.Dataset:
    """Strokes on an empty background, whose ties are what max pooling was wrong about."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N + 2, side, side, channels)) * (rng.random((N + 2, side, side, channels)) < 0.2)
    y = rng.integers(0, 10, N + 2)
    return data.Dataset("strokes", x[:N], y[:N], x[N:], y[N:], classes=10)


def architectures() -> Iterator[tuple[str, networks.Architecture, data.Dataset, losses.Loss]]:
    """The sizes of the papers."""
    mnist, cifar = images(28, 1), images(32, 3)
    for widths in ((200, 200), (400, 400), (600, 600), (2000, 2000), (200,) * 4, (200,) * 6, (400,) * 4, (600,) * 6):
        for activation in (activations.relu, activations.tanh):
            name = f"FCN {widths[0]} x {len(widths)} {activation.name}"
            yield name, networks.FCN(widths, activation=activation), mnist, losses.half_mse
    for norm in (False, True):
        for filters in ((16, 16), (32, 32), (64, 64)):
            yield f"CNN {filters} {norm}", networks.CNN(filters, batch_norm=norm), mnist, losses.cross_entropy
    yield "CNN cifar", networks.CNN(batch_norm=True), cifar, losses.cross_entropy
    yield "ResNet-20", networks.ResNet(), cifar, losses.cross_entropy
    yield "ViT mnist", networks.ViT(patch=7, dim=64, layers=4), mnist, losses.cross_entropy
    yield "ViT cifar", networks.ViT(patch=4, dim=128, layers=6), cifar, losses.cross_entropy
    yield "Transformer", networks.Transformer(), data.reversal(N, test=2), losses.cross_entropy


def own() -> Iterator[tuple[str, Problem]]:
    """The networks with formulas of their own, at the sizes of wen2023 and mulayoff2021."""
    rng = np.random.default_rng(1)
    x, y = rng.choice([-1.0, 1.0], size=(N, 30)), rng.choice([-1.0, 1.0], N)
    made = {"TwoLayer": networks.TwoLayer(), "MLP 3": networks.MLP(3), "SimLN": networks.SimLN(1.0),
            "SimBN": networks.SimBN(x), "LayerNorm": networks.LayerNorm(),
            "BatchNorm": networks.BatchNorm(x)}  # fmt: skip
    for name, network in made.items():
        for width in (100, 500):
            params = network.init(30, width, rng, np.float32)
            yield f"{name} {width}", Problem(network, params, x, y, losses.mse)


def in_double(problem: Problem) -> Problem:
    def wide(tree):
        return jax.tree.map(lambda a: np.asarray(a, np.float64 if a.dtype == np.float32 else a.dtype), tree)

    params, x = wide(problem.unravel(problem.w0)), wide(problem.x)
    return Problem(problem.predict, params, x, np.asarray(problem.y), problem.loss_function)


def difference(problem: Problem, treatment, v: np.ndarray) -> np.ndarray:
    """(∇L(w + hv) − ∇L(w − hv))/2h in float64, chunk by chunk if the statistics are."""
    treated = treatment.problem(problem, problem.w0)
    pieces = treatment.pieces(treated, problem.w0, len(problem))
    gradient = jax.jit(lambda w: pieces.mean(treated, lambda piece: jax.grad(piece.loss)(w)))
    h = 1e-10 * np.linalg.norm(problem.w0) / np.linalg.norm(v)
    return np.asarray(gradient(problem.w0 + h * v) - gradient(problem.w0 - h * v)) / (2 * h)


def errors(problem: Problem, treatment) -> tuple[float, float]:
    """The relative errors of a product in float32 against float64, and of that against a difference of gradients."""
    v = np.random.default_rng(2).standard_normal(problem.w0.size).astype(np.float32)
    single = np.asarray(hessian(problem, statistics=treatment)(v), float)
    with jax.enable_x64(True):
        wide = in_double(problem)
        double = hessian(wide, statistics=treatment)(v.astype(float))
        size = np.linalg.norm(double)
        apart = np.linalg.norm(single - double) / size
        # With statistics held at w, the gradient elsewhere has others.
        if isinstance(treatment, Frozen):
            return float(apart), 0.0
        return float(apart), float(np.linalg.norm(difference(wide, treatment, v.astype(float)) - double) / size)


def main(pattern: str, *, treatments=TREATMENTS) -> int:
    large = ((name, lambda built=built: build(*built).train) for name, *built in architectures())
    bad = 0
    for name, make in chain(large, ((name, lambda p=p: p) for name, p in own())):
        if pattern not in name:
            continue
        problem = make()
        for treatment in treatments:
            # A network that carries its training inputs has no statistics of chunks of others to compare.
            if isinstance(problem.predict, OwnStatistics) and not isinstance(treatment, FullBatch):
                continue
            single, apart = errors(problem, treatment)
            wrong = single > SINGLE or apart > DIFFERENCE
            bad += wrong
            print(f"{'WRONG' if wrong else 'right'}  {name}, {treatment}: {single:.1e} {apart:.1e}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])) > 0)
