"""Whether a flow keeps its word: the error at the end over rtol, and the interval of s_GF, on networks drawn by a seed.

    JAX_ENABLE_X64=1 python -m bench._word 13000 13060          # one line of JSON a network

The truth is a flow at α = 1/150, or at a far smaller rtol with tanh.

FCNs with PyTorch's initialisation on MNIST pooled to 14 × 14 and on digits, half_mse, float64; the number of the seed
decides shape, weights, images and the time, 10 or 30.
"""

import json
import sys

import numpy as np

import steppe
from steppe import activations, data, losses, networks, until
from steppe.dynamics import AB2, RK4, Flow, Run

# Activation, widths, images, data.
SHAPES = [
    ("relu", (12, 12), 60, "mnist"), ("tanh", (16, 16), 80, "digits"), ("relu", (16,), 80, "digits"),
    ("relu", (10, 10, 10), 50, "digits"), ("tanh", (24, 24), 120, "mnist"), ("relu", (32, 32), 200, "digits"),
]  # fmt: skip
RTOLS, GOALS = (1e-2, 3e-3), (0.2, 0.05)


def drawn(seed: int) -> tuple[steppe.Problem, str, float]:
    """Network number `seed`, its activation, and the time of its flow."""
    activation, widths, n, source = SHAPES[seed % len(SHAPES)]
    rng = np.random.default_rng(seed)
    images = data.mnist(1_000, test=1) if source == "mnist" else data.digits(1_000, test=1)
    x, first = np.asarray(images.x, float), int(rng.integers(0, 1_000 - n))
    x = x.reshape(-1, 14, 2, 14, 2).mean((2, 4)) if source == "mnist" else x
    x, y = x.reshape(len(x), -1)[first : first + n], np.eye(10)[images.y[first : first + n]]
    net = networks.FCN(widths, getattr(activations, activation))
    params = net.init(x.shape[1:], 10, rng, np.float64)
    return steppe.Problem(net, params, x, y, losses.half_mse), activation, float(rng.choice([10.0, 30.0]))


def judged(seed: int) -> dict[str, object]:
    problem, activation, time = drawn(seed)
    kinked, stop = activation == "relu", until.time(time)

    def go(flow: Flow) -> Run:
        return steppe.run(problem, flow, stop=stop)

    truth, check = (go(Flow(method=AB2(1 / k)) if kinked else Flow(1e-3 / k)) for k in (150, 75))
    way = np.linalg.norm(truth.w - problem.w0)

    def off(run: Run) -> float:
        return float(np.linalg.norm(run.w - truth.w) / way)

    classical = go(Flow(method=RK4()))
    row: dict[str, object] = {"seed": seed, "activation": activation, "time": time, "truth_within": off(check)}
    row["RK4"] = {"error": off(classical), "gradients": classical.gradients}
    for rtol in RTOLS:
        for verify in (None, False):
            found = go(Flow(rtol, verify=verify))
            word = {"error_over_rtol": off(found) / rtol, "stated": found.error, "gradients": found.gradients}
            row[f"{rtol:g}" + (" once" if verify is False else "")] = word
    fine = Flow(method=AB2(1 / 64)) if kinked else Flow(1e-5)
    end = until.time(200.0)
    ours, true = (steppe.critical_rate(problem, losses=GOALS, stop=end, flow=flow) for flow in (None, fine))
    row["s_GF"] = [
        {"goal": c.loss, "lower": c.s_gf.lower, "upper": c.s_gf.upper, "truth": t.largest_sharpness}
        for c, t in zip(ours, true, strict=False)
    ]
    return row


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(judged(seed)), flush=True)
