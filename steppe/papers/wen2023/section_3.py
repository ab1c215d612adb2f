"""Section 3 of wen2023: the flattest nets without bias, and with simplified BatchNorm, generalise.

Runs cannot show what holds for every flattest minimiser. For given neurons the flattest net solves a convex program.
Here the program chooses among thousands of random neurons and the few that are known to be good.
"""

from typing import Any

import numpy as np

import steppe
from steppe.experiments import Finding
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.papers.wen2023.theory.complexity import norm_constants, path_norm, squared_norms

# Random directions that compete with the few known ones.
_DIRECTIONS = 3_000
# The program gives a neuron that it leaves out less than this share of the largest weight, by rounding.
_SHARE = 1e-6

# Without bias.


@PAPER.claim(
    "lemma3.1-norms", "Lemmas 3.1, A.5 and A.11",
    "Without bias, the trace of an interpolator is within constants of ‖W₁‖² + d‖W₂‖².",
    "C₁ ≤ ratio ≤ C₂ for the data's own constants",
)  # fmt: skip
def lemma_3_1() -> Finding:
    data = steppe.data.xor(10, 200, key=0)
    constants = norm_constants(data.x)
    ratios = []
    for epsilon in (0.1, 0.5, 0.9):
        for scale in (0.5, 1.0, 3.0):
            params = generalising.no_bias_xor(10, epsilon=epsilon, scale=scale)
            ratios.append(explicit.measured(params, data.x, data.y)[0] / squared_norms(params))
    inside = constants.lower <= min(ratios) and max(ratios) <= constants.upper
    detail = f"to {max(ratios):.3g}; constants {constants.lower:.3g} and {constants.upper:.3g}"
    return Finding(min(ratios), inside, detail)


def flattest_no_bias(x: Any, y: Any, known: Any, *, key: int = 0) -> dict[str, Any]:
    """W1 and W2 of the flattest 2-MLP-No-Bias that interpolates, made of random neurons and the `known` ones."""
    from steppe.activations import Homogeneous

    d = x.shape[1]
    W1 = np.concatenate([known, np.random.default_rng(key).normal(size=(_DIRECTIONS, d))])
    W1 /= np.linalg.norm(W1, axis=1, keepdims=True)
    W1 = W1[(x @ W1.T > 0).any(axis=0)]
    made = steppe.flattening.features(W1, x, Homogeneous(1.0, 0.0, 1))
    a = steppe.flattening.flattest_interpolator(made.phi, y, made.q, made.p).a
    kept = np.abs(a) > _SHARE * np.abs(a).max()
    return {"W1": W1[kept], "W2": a[kept]}


def _split_cube(d: int, n: int) -> tuple[Any, Any]:
    """n corners of the cube, and the others."""
    corners = explicit.cube(d)
    chosen = np.random.default_rng(1).permutation(len(corners))
    return corners[chosen[:n]], corners[chosen[n:]]


@PAPER.claim(
    "thm3.1-flattest", "Theorem 3.1",
    "The flattest 2-MLP-No-Bias that can choose among thousands of neurons generalises.", "error 0 on unseen corners",
)  # fmt: skip
def theorem_3_1() -> Finding:
    """The error of the flattest nets on all corners outside their training set."""
    errors, sizes = [], ((4, 12), (5, 20), (6, 30), (8, 60))
    for d, n in sizes:
        x, unseen = _split_cube(d, n)
        params = flattest_no_bias(x, x[:, 0] * x[:, 1], generalising.no_bias_xor(d, epsilon=1e-3)["W1"])
        errors.append(float(np.mean(unseen[:, 0] * unseen[:, 1] * explicit.outputs(params, unseen) <= 0)))
    detail = f"(d, n) = {sizes}, {_DIRECTIONS:,} other neurons to choose from"
    return Finding(max(errors), max(errors) == 0, detail)


@PAPER.claim(
    "thmA.1-flattest", "Theorem A.1",
    "The flattest 2-MLP-No-Bias generalises for other distributions too: Gaussian inputs, y = |x₁| − |x₂|.",
    "test loss ≤ d/n",
)  # fmt: skip
def theorem_a1() -> Finding:
    """The test loss of the flattest nets, in units of d/n."""
    losses, sizes = [], ((4, 40), (6, 80), (8, 120))
    for d, n in sizes:
        x, fresh = np.split(np.random.default_rng(d).normal(size=(n + 10_000, d)), [n])
        known = np.concatenate([np.eye(d)[:2], -np.eye(d)[:2]])
        params = flattest_no_bias(x, np.abs(x[:, 0]) - np.abs(x[:, 1]), known)
        off = explicit.outputs(params, fresh) - (np.abs(fresh[:, 0]) - np.abs(fresh[:, 1]))
        losses.append(float(np.mean(off**2)) * n / d)
    detail = f"(d, n) = {sizes}, {_DIRECTIONS:,} other neurons to choose from"
    return Finding(max(losses), max(losses) <= 1, detail)


@PAPER.claim("lemmaA.4", "Lemma A.4", "The flattest 2-MLP-No-Bias has Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C C₂/C₁.", "ratio ≤ 1")
def lemma_a4() -> Finding:
    """C is the path norm of the net of appendix A.2.4."""
    ratios, sizes = [], ((4, 12), (6, 40), (8, 80))
    for d, n in sizes:
        x, _ = _split_cube(d, n)
        known = generalising.no_bias_xor(d, epsilon=1e-3)
        constants = norm_constants(x)
        most = path_norm(known) * constants.upper / constants.lower
        ratios.append(path_norm(flattest_no_bias(x, x[:, 0] * x[:, 1], known["W1"])) / most)
    return Finding(max(ratios), max(ratios) <= 1, f"path norm over C C₂/C₁, (d, n) = {sizes}")


# With simplified batch normalisation.


@PAPER.claim(
    "thm3.2-sim-bn", "Theorem 3.2, Lemmas A.1 to A.3",
    "With simplified BatchNorm and a complete training set, nets without error approach the least trace, 8.",
    "trace → 8, no error on the whole cube",
)  # fmt: skip
def theorem_3_2() -> Finding:
    data = steppe.data.complete(8, key=0)
    params = generalising.sim_bn_xor(8, scale=1e4)
    trace, loss = explicit.measured(params, data.x, data.y)
    error = explicit.error(params, 8, train=data.x)
    least = bounds.sim_bn_complete(data.x, data.y)
    # tr = 8 + 2V/s², V the spread of at most d: at most 2d/s² above the infimum.
    near = 0 <= trace - least < 2 * 8 / 1e8 + 1e-9
    return Finding(trace, loss < 1e-20 and error == 0 and near, f"infimum {least:g}")


@PAPER.claim(
    "lemmaA.1", "Lemma A.1",
    "On a complete training set the least ‖γ ⊙ W₂‖₁ is 2, and its neurons see the first two coordinates only.",
    "2, four neurons, ‖W₁[3:]‖ = 0",
)  # fmt: skip
def lemma_a1() -> Finding:
    """min ‖γ ⊙ W₂‖₁ over Sim-BN nets of random neurons and the four of the proof: the program must choose the four."""
    d, rng = 6, np.random.default_rng(0)
    data = steppe.data.complete(d, key=0)
    known = generalising.sim_bn_xor(d, scale=1.0)
    W1 = np.concatenate([known["W1"], rng.normal(size=(_DIRECTIONS, d))])
    b1 = np.concatenate([known["b1"], rng.normal(size=_DIRECTIONS)])
    a = np.maximum(data.x @ W1.T + b1[None], 0)
    alive = (a > 0).any(axis=0)
    phi = a[:, alive] / np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
    found = steppe.flattening.flattest_interpolator(phi, data.y, np.ones(alive.sum()), 1.0)
    used = W1[alive][np.abs(found.a) > _SHARE * np.abs(found.a).max()]
    tails = float(np.linalg.norm(used[:, 2:], axis=1).max())
    least = bounds.sim_bn_complete(data.x, data.y) / 4
    # The program stops at a gap of 1e-8.
    holds = abs(found.flatness / least - 1) < 1e-6 and len(used) == 4 and tails == 0
    detail = f"{len(used)} neurons of {alive.sum():,} used, their ‖W₁[3:]‖ at most {tails:g}"
    return Finding(found.flatness, holds, detail)


@PAPER.claim(
    "lemmaA.2", "Lemma A.2", "Nets with ‖γ ⊙ W₂‖₁ near its least value are near x₁x₂ on the whole cube.",
    "the error falls to 0 with the excess",
)  # fmt: skip
def lemma_a2() -> Finding:
    """Only neurons with tails of length about t: as t falls, so do the excess κ of ‖γ ⊙ W₂‖₁ over 2 and the error."""
    d, rng = 6, np.random.default_rng(0)
    data, cube = steppe.data.complete(d, key=0), explicit.cube(d)
    known = generalising.sim_bn_xor(d, scale=1.0, width=_DIRECTIONS)
    tails = np.pad(rng.normal(size=(_DIRECTIONS, d - 2)), ((0, 0), (2, 0)))
    excess, off = [], []
    for t in (1.0, 0.5, 0.01):
        W1 = known["W1"] + t * tails
        a = np.maximum(data.x @ W1.T + known["b1"][None], 0)
        alive = (a > 0).any(axis=0)
        spread = np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
        found = steppe.flattening.flattest_interpolator(a[:, alive] / spread, data.y, np.ones(alive.sum()), 1.0)
        f = np.maximum(cube @ W1[alive].T + known["b1"][None, alive], 0) @ (found.a / spread)
        excess.append(found.flatness - 2)
        off.append(float(np.abs(f - cube[:, 0] * cube[:, 1]).max()))
    pairs = ", ".join(f"{e:.1g} and {k:.1g}" for e, k in zip(off, excess, strict=True))
    holds = off[0] > off[1] > off[2] and excess[0] > excess[1] > excess[2] and off[2] < explicit.ROUNDING
    return Finding(off[2], holds, f"largest |f − x₁x₂| on the cube and κ: {pairs}")
