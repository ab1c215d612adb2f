"""Steps and remarks of wen2023 that are wrong as printed, beside those of `misprint_checks`: each check gives (number,
whether it holds, detail)."""

import math

import jax
import numpy as np

from steppe import losses
from steppe.data import complete, xor
from steppe.papers.wen2023 import cube as theory
from steppe.papers.wen2023.claims.theorem_checks import signs
from steppe.papers.wen2023.table2 import PAPER
from steppe.papers.wen2023.theory import generalising
from steppe.papers.wen2023.theory.complexity import linear
from steppe.problem import Problem


def eq5_index(printed: bool) -> tuple[float, bool, str]:
    """W₂[2i + j] leaves out the first of the neurons 2i + j + 1, and gives each the weight of the next."""
    data, params = xor(30, 64, key=0), generalising.xor(30)
    if printed:
        params["W2"] = np.append(params["W2"][1:], 0.0)
    _, loss = theory.measured(params, data.x, data.y)
    return loss, loss < theory.ROUNDING, "train loss, d = 30, r as corrected"


def width(printed: bool) -> tuple[float, bool, str]:
    """A net of width 1, as wide as its one example, puts out one sign: it errs on half of the cube at least."""
    if not printed:
        error = theory.error(generalising.xor(4), 4)
        return error, error == 0, "width 4"
    rng = np.random.default_rng(0)
    nets = [{"W1": rng.normal(size=(1, 4)), "b1": rng.normal(size=1), "W2": rng.normal(size=1)} for _ in range(200)]
    error = min(theory.error(params, 4) for params in nets)
    return error, error == 0, "the least of 200 random nets of width 1"


def silent_neuron(printed: bool) -> tuple[float, bool, str]:
    """A fifth neuron with γ = W₂ = 0 that looks at x₃: the largest ‖W₁ⱼ[3:]‖/‖W₁ⱼ‖ of a net at the infimum."""
    d = 6
    data, params = complete(d, key=0), generalising.sim_bn_xor(d, scale=1e4)
    params["W1"] = np.concatenate([params["W1"], np.eye(1, d, 2)])
    params |= {name: np.append(params[name], 0.0) for name in ("b1", "gamma", "W2")}
    trace, loss = theory.measured(params, data.x, data.y)
    counted = params["W1"] if printed else params["W1"][params["gamma"] * params["W2"] != 0]
    share = float((np.linalg.norm(counted[:, 2:], axis=1) / np.linalg.norm(counted, axis=1)).max())
    return share, share == 0 and loss < 1e-20, f"trace {trace:.7f}, infimum 8"


def largest_norm(printed: bool) -> tuple[float, bool, str]:
    """The exponent of d in max ‖xᵢ‖², 1,000 Gaussians, between d = 100 and 10,000."""
    rng = np.random.default_rng(0)
    few, many = (float((rng.normal(size=(1_000, d)) ** 2).sum(axis=1).max()) for d in (100, 10_000))
    exponent = math.log(many / few) / math.log(100)
    # Logarithms of d and n are worth less than 0.1 here.
    return exponent, abs(exponent - (0.5 if printed else 1.0)) < 0.15, "1,000 Gaussian vectors of R¹⁰⁰ and of R¹⁰⁰⁰⁰"


def linear_step(printed: bool) -> tuple[float, bool, str]:
    """E‖Σ σᵢxᵢ‖ over √(Σ‖xᵢ‖²), which Jensen makes at most 1."""
    x = np.random.default_rng(0).normal(size=(8, 3))
    ratio = float(np.mean(np.linalg.norm(signs(8) @ x, axis=1)) / 8 / linear(x))
    return ratio, abs(ratio - 1) < theory.ROUNDING if printed else ratio <= 1, "eight Gaussian vectors, all 2⁸ signs"


def restoring(printed: bool) -> tuple[float, bool, str]:
    """1-SAM at the flattest net of Sim-BN: a step from just below a label, as a share of one from just above.

    The neuron that fires has γ = |W₂| = 1/√2, and ∇f has length 2: a perturbation of length ρ against it leaves
    (1 − ρ)² of f and 1 − ρ of ∇f, one along it (1 + ρ)² and 1 + ρ. So (1 − ρ)(1 − (1 − ρ)²)/((1 + ρ)((1 + ρ)² − 1)).
    """
    rho, x = PAPER["fig2a-printed" if printed else "fig2a"].stages[-1].rho, theory.cube(4)
    kept = (1 - rho) * (1 - (1 - rho) ** 2) / ((1 + rho) * ((1 + rho) ** 2 - 1))
    params = generalising.sim_bn_xor(4, scale=1e4)
    steps = []
    with jax.enable_x64(True):
        p = Problem(theory.network(params, train=x), params, x, x[:, 0] * x[:, 1], losses.mse)
        slope = jax.jit(jax.grad(lambda w: p.example_loss(w, 0)))
        for share in (1 - 1e-6, 1 + 1e-6):
            w = p.vector(params | {"W2": share * params["W2"]})
            g = slope(w)
            steps.append(float(np.linalg.norm(slope(w + rho * g / np.linalg.norm(g)))))
    found = steps[0] / steps[1]
    # Both starts are 1e-6 off the label, the formula is for those at it.
    return found, found > 0.01 and abs(found - kept) < 1e-5, f"ρ = {rho:g}: {kept:.4f} by the formula"
