"""The flattest minimisers among very many neurons, found by convex programming: what theorems 3.1, 3.2 and A.1 are
about. Each check gives (number, whether it holds, detail)."""

from typing import Any

import numpy as np

from steppe.activations import Homogeneous
from steppe.data import complete
from steppe.flattening import _memorising as memorising
from steppe.flattening._interpolator import features, flattest_interpolator
from steppe.papers.wen2023 import cube as theory
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.papers.wen2023.theory.complexity import norm_constants, path_norm

_RELU = Homogeneous(1.0, 0.0, 1)
# Random directions that compete with the few that are known to be good.
_DIRECTIONS = 3_000
# A neuron with less than this share of the largest weight is one that the program leaves out, but for rounding.
_SHARE = 1e-6


def no_bias(x: Any, y: Any, known: Any, *, key: int = 0) -> dict[str, Any]:
    """The flattest 2-MLP-No-Bias that interpolates, of random neurons and those that are `known`: W1, W2."""
    d = x.shape[1]
    W1 = np.concatenate([known, np.random.default_rng(key).normal(size=(_DIRECTIONS, d))])
    W1 /= np.linalg.norm(W1, axis=1, keepdims=True)
    W1 = W1[(x @ W1.T > 0).any(axis=0)]
    made = features(W1, x, _RELU)
    a = flattest_interpolator(made.phi, y, made.q, made.p).a
    kept = np.abs(a) > _SHARE * np.abs(a).max()
    return {"W1": W1[kept], "W2": a[kept]}


def _split(d: int, n: int) -> tuple[Any, Any]:
    """n corners of the cube, and the others."""
    corners = theory.cube(d)
    chosen = np.random.default_rng(1).permutation(len(corners))
    return corners[chosen[:n]], corners[chosen[n:]]


def theorem_3_1() -> tuple[float, bool, str]:
    """The error of the flattest nets on all corners that they have not seen."""
    errors, sizes = [], ((4, 12), (5, 20), (6, 30), (8, 60))
    for d, n in sizes:
        x, unseen = _split(d, n)
        params = no_bias(x, x[:, 0] * x[:, 1], generalising.no_bias_xor(d, epsilon=1e-3)["W1"])
        errors.append(float(np.mean(unseen[:, 0] * unseen[:, 1] * theory.outputs(params, unseen) <= 0)))
    return max(errors), max(errors) == 0, f"(d, n) = {sizes}, {_DIRECTIONS:,} other neurons to choose from"


def theorem_a1() -> tuple[float, bool, str]:
    """Gaussian inputs, y = |x₁| − |x₂|: the test loss of the flattest nets, in units of d/n."""
    losses, sizes = [], ((4, 40), (6, 80), (8, 120))
    for d, n in sizes:
        x, fresh = np.split(np.random.default_rng(d).normal(size=(n + 10_000, d)), [n])
        params = no_bias(x, np.abs(x[:, 0]) - np.abs(x[:, 1]), np.concatenate([np.eye(d)[:2], -np.eye(d)[:2]]))
        off = theory.outputs(params, fresh) - (np.abs(fresh[:, 0]) - np.abs(fresh[:, 1]))
        losses.append(float(np.mean(off**2)) * n / d)
    return max(losses), max(losses) <= 1, f"(d, n) = {sizes}, {_DIRECTIONS:,} other neurons to choose from"


def lemma_a4() -> tuple[float, bool, str]:
    """The path norm of the flattest net against C C₂/C₁, C that of the net of appendix A.2.4."""
    ratios, sizes = [], ((4, 12), (6, 40), (8, 80))
    for d, n in sizes:
        x, _ = _split(d, n)
        known = generalising.no_bias_xor(d, epsilon=1e-3)
        constants = norm_constants(x)
        most = path_norm(known) * constants.upper / constants.lower
        ratios.append(path_norm(no_bias(x, x[:, 0] * x[:, 1], known["W1"])) / most)
    return max(ratios), max(ratios) <= 1, f"path norm over C C₂/C₁, (d, n) = {sizes}"


def lemma_a1() -> tuple[float, bool, str]:
    """min ‖γ ⊙ W₂‖₁ over Sim-BN nets of random neurons and the four of the proof, which must be those chosen."""
    d, rng = 6, np.random.default_rng(0)
    data = complete(d, key=0)
    known = generalising.sim_bn_xor(d, scale=1.0)
    W1 = np.concatenate([known["W1"], rng.normal(size=(_DIRECTIONS, d))])
    b1 = np.concatenate([known["b1"], rng.normal(size=_DIRECTIONS)])
    a = np.maximum(data.x @ W1.T + b1[None], 0)
    alive = (a > 0).any(axis=0)
    phi = a[:, alive] / np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
    found = flattest_interpolator(phi, data.y, np.ones(alive.sum()), 1.0)
    used = W1[alive][np.abs(found.a) > _SHARE * np.abs(found.a).max()]
    tails = float(np.linalg.norm(used[:, 2:], axis=1).max())
    least = bounds.sim_bn_complete(data.x, data.y) / 4
    holds = (
        abs(found.flatness / least - 1) < 1e-6 and len(used) == 4 and tails == 0
    )  # the program stops at a gap of 1e-8
    return (
        float(found.flatness),
        holds,
        f"{len(used)} neurons of {alive.sum():,} used, their ‖W₁[3:]‖ at most {tails:g}",
    )


def lemma_a2() -> tuple[float, bool, str]:
    """Only neurons with tails of length about t: as t falls, so do the excess κ of ‖γ ⊙ W₂‖₁ over 2 and the error."""
    d, rng = 6, np.random.default_rng(0)
    data, cube = complete(d, key=0), theory.cube(d)
    known = generalising.sim_bn_xor(d, scale=1.0, width=_DIRECTIONS)
    tails = np.pad(rng.normal(size=(_DIRECTIONS, d - 2)), ((0, 0), (2, 0)))
    excess, off = [], []
    for t in (1.0, 0.5, 0.01):
        W1 = known["W1"] + t * tails
        a = np.maximum(data.x @ W1.T + known["b1"][None], 0)
        alive = (a > 0).any(axis=0)
        spread = np.sqrt(np.mean(a[:, alive] ** 2, axis=0))
        found = flattest_interpolator(a[:, alive] / spread, data.y, np.ones(alive.sum()), 1.0)
        f = np.maximum(cube @ W1[alive].T + known["b1"][None, alive], 0) @ (found.a / spread)
        excess.append(found.flatness - 2)
        off.append(float(np.abs(f - cube[:, 0] * cube[:, 1]).max()))
    pairs = ", ".join(f"{e:.1g} and {k:.1g}" for e, k in zip(off, excess, strict=True))
    holds = off[0] > off[1] > off[2] and excess[0] > excess[1] > excess[2] and off[2] < theory.ROUNDING
    return off[2], holds, f"largest |f − x₁x₂| on the cube and κ: {pairs}"


def table_1(network: str) -> tuple[float, bool, str]:
    """The error of a flattest minimiser: of all that there are to choose from, or (✗) of the one that memorises."""
    if network == "no-bias":
        return theorem_3_1()
    if network == "sim-bn":
        least, holds, detail = lemma_a1()
        return 0.0 if holds else 1.0, holds, f"‖γ ⊙ W₂‖₁ = {least:.6f}; {detail}: f is x₁x₂ on the whole cube"
    excess, error = theory.worst_flattest(network)
    return error, error > 0.5 and excess < theory.ROUNDING, f"its trace {excess:.1e} above the least"


def figure_3() -> tuple[float, bool, str]:
    """The share of the circle on which the memorising net puts out 0, as its ε shrinks."""
    angle = 2 * np.pi * np.arange(7) / 7
    x, y = np.column_stack([np.cos(angle), np.sin(angle)]), np.where(np.arange(7) % 2 == 0, 1.0, -1.0)
    angle = 2 * np.pi * np.arange(100_000) / 100_000
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    shares, fits = [], True
    for fraction in (0.5, 1e-2, 1e-4):
        params = memorising.two_layer(x, y, fraction=fraction)
        shares.append(float(np.mean(theory.outputs(params, circle) == 0)))
        fits &= theory.measured(params, x, y)[1] < theory.ROUNDING**2
    growing = shares[0] < shares[1] < shares[2]
    return (
        shares[-1],
        fits and growing and shares[-1] > 0.98,
        f"shares {', '.join(f'{s:.4f}' for s in shares)} for 7 points",
    )
