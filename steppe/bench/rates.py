"""What a sweep of learning rates costs beyond the gradients of its runs, on an FCN on digits.

Counted: the products with ∇²L that follow the sharpness, two gradients each, and what else is evaluated. Timed: the
whole run with everything recorded against the same steps with nothing recorded.
"""

import numpy as np

from steppe import losses, until
from steppe.bench import Ratio
from steppe.bench.timing import best_times
from steppe.dynamics import GD, run
from steppe.problems import data, networks
from steppe.problems.build import build
from steppe.rates.descents import Descents, Limits
from steppe.rates.moments import PRODUCT

EXAMPLES, WIDTH, STEPS, SHARE = 1000, 100, 300, 0.3


def measure() -> list[Ratio]:
    problem, _ = build(networks.FCN((WIDTH, WIDTH)), data.digits(EXAMPLES), losses.half_mse)
    lr = 0.05
    limits = Limits((1e-9,), STEPS)

    def recorded() -> Descents:
        runs = Descents(problem, problem.w0, limits, share=SHARE, together=False, key=0)
        runs.run([lr])
        return runs

    def plain() -> object:
        return run(problem, GD(lr), stop=until.steps(STEPS), record={}, use_kernels=False).w.block_until_ready()

    (done,) = recorded().run([lr])
    cost = done.gradients + PRODUCT * done.products
    seconds = best_times({"recorded": (recorded, STEPS), "plain": (plain, STEPS)}, rounds=3)
    looks = len(done.records["step"])
    subject = f"gradient descent, {STEPS} steps, share {SHARE:g}"
    first = Descents(problem, problem.w0, limits, share=SHARE, together=False, key=0).first.products
    note = f"{looks} looks, {done.products} products; {first} more at the common start, once a sweep"
    peer = "the same steps, nothing recorded"
    ours, theirs = float(cost), float(done.steps)
    timed, bare = (float(np.float64(seconds[name]) * 1e3) for name in ("recorded", "plain"))
    return [
        Ratio(subject, peer, ours, theirs, "gradients", theirs / ours, note),
        Ratio(subject, peer, timed, bare, "ms a step", bare / timed, "with the measurement at the start"),
    ]
