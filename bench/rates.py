"""What a sweep of learning rates costs beyond the gradients of its runs, on an FCN.

The data are the first 5,000 images of MNIST if its files are there, otherwise scikit-learn's digits; the subject of
each ratio names them. Counted are the products with ∇²L that follow the sharpness, as two gradients each, and all other
evaluations. Timed is the whole run with all its records: against the same steps without records, and against the sum of
its gradients and products, each at its own speed. Each measurement of the sharpness linearises ∇²L again, and this time
belongs to its products. A sweep measures the common start once; that time is measured alone and subtracted.
"""

import numpy as np

from steppe import curvature as operators
from steppe import data, losses, networks, until
from steppe.dynamics import GD, run
from steppe.networks import build
from steppe.problem import Problem
from steppe.rates import Descents, Followed, Limits
from steppe.rates._descent import PRODUCT

from . import Ratio
from ._timing import best_times

MNIST, DIGITS, WIDTH, STEPS, SHARE, LR = 5_000, 1_000, 200, 1_000, 0.3, 0.05


def measure() -> list[Ratio]:
    problem, images = _problem()
    limits = Limits((1e-9,), STEPS)
    direction = np.random.default_rng(0).standard_normal(problem.w0.size)

    def recorded() -> Descents:
        runs = Descents(problem, problem.w0, limits, share=SHARE, together=False, key=0)
        runs.run([LR])
        return runs

    def plain() -> object:
        return run(problem, GD(LR), stop=until.steps(STEPS), record={}, use_kernels=False).w.block_until_ready()

    def first() -> object:
        return Followed.fresh(problem).measure(problem, problem.w0)

    runs = recorded()
    (done,) = runs.run([LR])
    looks = int(np.isfinite(done.records["sharpness"]).sum())
    each = round(done.products / looks)

    def look() -> object:
        H = operators.hessian(problem, problem.w0)
        return [H(direction) for _ in range(each)]

    contenders = {"recorded": (recorded, STEPS), "plain": (plain, STEPS), "first": (first, 1), "look": (look, each)}
    seconds = {name: float(s) for name, s in best_times(contenders, rounds=3).items()}
    subject = f"gradient descent on {images}, {STEPS} steps, share {SHARE:g}"
    note = f"{looks} looks, {done.products} products; {runs.first.products} more at the common start, once for a sweep"
    ours, theirs = float(done.gradients + PRODUCT * done.products), float(done.steps)
    timed, bare = 1e3 * seconds["recorded"], 1e3 * seconds["plain"]
    # The run without the measurement at the start, and the sum of its parts.
    alone = timed - 1e3 * seconds["first"] / STEPS
    parts = (done.gradients * bare + 1e3 * done.products * seconds["look"]) / STEPS
    same, own = "the same steps, nothing recorded", "its own gradients and products"
    return [
        Ratio(subject, same, ours, theirs, "gradients", theirs / ours, note),
        Ratio(subject, same, alone, bare, "ms a step", bare / alone, f"{alone / bare - 1:+.0%}; target at most +30%"),
        Ratio(subject, own, alone, parts, "ms a step", parts / alone, f"{alone / parts - 1:+.1%}; target at most +5%"),
    ]


def _problem() -> tuple[Problem, str]:
    """The training problem, and the name of its data."""
    try:
        images = data.mnist(MNIST, test=1)
    except data.MissingDataError:
        images = data.digits(DIGITS, test=1)
    return build(networks.FCN((WIDTH, WIDTH)), images, losses.half_mse).train, images.name
