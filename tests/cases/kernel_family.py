"""Problems and dynamics that kernels know, and how to carry them a few steps. As a program, it saves float32 runs."""

import sys
from functools import cache, partial
from pathlib import Path

import numba
import numpy as np

import steppe
from steppe import kernels, losses
from steppe.activations import leaky_relu, softplus
from steppe.dynamics import GD, SAM, LabelNoise, Projected
from steppe.kernels.path import block
from steppe.kernels.simd import OPTIONS
from steppe.networks import MLP, SimBN, SimLN, TwoLayer
from steppe.outcome import Halt

LOGISTIC = losses.logistic(smoothing=0.2)
LOSSES = {"mse": losses.mse, "half-mse": losses.half_mse, "logistic": losses.logistic(), "smoothed": LOGISTIC}


@cache
def problem(network, *, d=5, n=10, width=9, loss=losses.mse, dtype=np.float64, signs=False, key=0):
    """Random inputs, ±1 if `signs`; `network` is built from them, since some networks carry them."""
    rng = np.random.default_rng(key)
    x, y = rng.choice([-1.0, 1.0], (n, d)) if signs else rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    net = network(x)
    params = net.init(d, width, rng, dtype)
    params |= {name: rng.uniform(0.2, 0.6, width).astype(dtype) for name in ("gamma",) if name in params}
    return steppe.Problem(net, params, x, y, loss)


# Each architecture with each activation, with and without bias; sizes below, at and above those of a block or a vector.
FAMILY = {
    "two-layer": partial(problem, lambda x: TwoLayer(), d=12, width=70),
    "two-layer-leaky": partial(problem, lambda x: TwoLayer(bias=False, activation=leaky_relu(0.2)), width=64),
    "two-layer-softplus": partial(problem, lambda x: TwoLayer(activation=softplus), n=23, width=70),
    "mlp-2": partial(problem, lambda x: MLP(2), d=31, width=1),
    "sim-ln": partial(problem, lambda x: SimLN(0.5), width=130),
    "sim-ln-leaky": partial(problem, lambda x: SimLN(0.1, activation=leaky_relu(0.2)), d=1, n=11),
    "sim-ln-softplus": partial(problem, lambda x: SimLN(2.0, bias=False, activation=softplus), width=5),
    "three-layer": partial(problem, lambda x: MLP(3), d=12, width=70),
    "three-layer-leaky": partial(problem, lambda x: MLP(3, bias=False, activation=leaky_relu(-0.3)), d=1),
    "three-layer-softplus": partial(problem, lambda x: MLP(3, activation=softplus), n=23, width=17),
    "sim-bn": partial(problem, SimBN, d=17, width=33),
    "sim-bn-leaky": partial(problem, lambda x: SimBN(x, bias=False, activation=leaky_relu(0.1))),
    "sim-bn-softplus": partial(problem, lambda x: SimBN(x, activation=softplus), n=70),
    # Key 2: where all weights are equal, neurons fire on the first example, or a weight that is not finite is unseen.
    "sim-bn-signs": partial(problem, SimBN, d=17, n=57, width=33, signs=True, key=2),
    "sim-bn-signs-leaky": partial(problem, lambda x: SimBN(x, bias=False, activation=leaky_relu(0.1)), d=6, signs=True),
}
DYNAMICS = {
    "1-sam": SAM(0.01, 0.1),
    "1-sgd": GD(0.01, batch_size=1, weight_decay=0.1),
    "m-sam": SAM(0.01, 0.1, 5, weight_decay=0.05),
    "sgd-ragged": GD(0.01, batch_size=3),
    "gd": GD(0.01, weight_decay=0.1),
    "sam": SAM(0.01, 0.1, None),
}
FIRST = {"W1", "b1"}
NOISY = {
    "noisy-1-sam": LabelNoise(SAM(0.01, 0.1), 0.1),
    "noisy-ragged": LabelNoise(GD(0.01, batch_size=3), 0.1),
    "noisy-gd": LabelNoise(GD(0.01), 0.1),
    "both": Projected(LabelNoise(GD(0.01, batch_size=1), 0.1), FIRST, 3.0),
    "both-inside-out": LabelNoise(Projected(SAM(0.01, 0.1, 4), FIRST, 3.0), 0.1),
}
PROJECTED = {
    "projected-1-sam": Projected(SAM(0.01, 0.1, weight_decay=0.05), FIRST, 3.0),
    "projected-ragged": Projected(GD(0.01, batch_size=3), FIRST, 3.0),
}
KEY = 3


def orders_of(p, dynamics):
    n = len(p)
    return None if (dynamics.batch_size or n) >= n else block(0, n, 0)


def carry(path, p, dynamics, state, steps, *, done=0, cut=None, target=-np.inf):
    """From step `done` to step `steps` in calls of at most `cut`: the state, the steps done and why it halted."""
    orders, halt = orders_of(p, dynamics), Halt.NOT
    while done < steps and halt == Halt.NOT:
        count = min(cut or steps, steps - done)
        state, did, halt = path.advance(state, orders, first=done, offset=done, count=count, target=target)
        done += did
    return state, done, halt


def advance(path, p, dynamics, steps, *, cut=None, w=None, target=-np.inf):
    """The same, from vector to vector."""
    state, done, halt = carry(path, p, dynamics, path.start(p.w0 if w is None else w), steps, cut=cut, target=target)
    return np.asarray(path.position(state)), done, halt


def build(p, dynamics):
    return kernels.build(p, dynamics.recipe(), KEY)


def callable_part(part):
    """A part of a kernel with the way in from Python, which parts are compiled without."""
    return numba.njit(part.py_func, **OPTIONS)


# In float32, every architecture and every kind of step; each costs seconds of compilation in a process of its own. Not
# there: two layers, whose kernels other tests compile too, and Sim-BN of other inputs than signs, which differs in
# products that have a test in float32.
FRESH_RUNS = [("three-layer-softplus", "m-sam"), ("three-layer", "projected-1-sam"), ("sim-bn-signs", "1-sam")]
SHARED_RUNS = [("two-layer", "1-sam"), ("sim-ln", "projected-1-sam")]
HALF, WHOLE = 40, 100


def single_run(name, move):
    return FAMILY[name](dtype=np.float32), (DYNAMICS | PROJECTED)[move]


def save_runs(folder: Path, begun: Path | None) -> None:
    """States after HALF and WHOLE steps, by name; with `begun`, the second half starts from the states saved there."""
    halves = {} if begun is None else np.load(begun / "half.npz")
    saved = {"half": {}, "whole": {}, "position": {}}
    for name, move in FRESH_RUNS:
        p, dynamics = single_run(name, move)
        path, run = build(p, dynamics), f"{name} {move}"
        half = carry(path, p, dynamics, path.start(p.w0), HALF)[0]
        whole = carry(path, p, dynamics, halves[run] if begun else half, WHOLE, done=HALF)[0]
        position = np.asarray(path.position(whole))
        for part, array in zip(saved, (half, whole, position), strict=True):
            saved[part][run] = array
    for part, arrays in saved.items():
        np.savez(folder / f"{part}.npz", **arrays)


if __name__ == "__main__":
    save_runs(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
