"""Theorems B.1 and B.2, measured."""

from typing import Any

import numpy as np

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.diagonal_setting import Example
from steppe.papers.conflicting_biases.finished import spec_of
from steppe.papers.conflicting_biases.flow_bias import FlowBias
from steppe.papers.conflicting_biases.theory import arc, flow_limit


def flow_bias(evidence: Evidence) -> Finding:
    """The exponent of ε(α) over the last decades against 2(1 − x₂/x_max), or L: the largest relative difference."""
    worst, falling = 0.0, True
    for entry in evidence["thmB1"]:
        alpha, excess = entry.curves["alpha"], entry.curves["excess"]
        slope = float(np.log(excess[5] / excess[0]) / np.log(alpha[5] / alpha[0]))
        worst = max(worst, abs(slope / spec_of(FlowBias, entry).exponent() - 1))
        falling &= bool((np.diff(excess) > 0).all())
    last = max(float(e.curves["excess"][0]) for e in evidence["thmB1"])
    return Finding(worst, falling and worst < 0.02, f"ε falls with α throughout, to at most {last:.1e} at α = 1e-6")


def flow_closed_form() -> Finding:
    """The limit of the flow in closed form against a stiff integrator, L = 2, 3, 4 and x of both signs."""
    from scipy.integrate import solve_ivp

    worst, x, y, w0 = 0.0, np.array([1.0, 0.4, -0.3]), 0.7, np.array([0.2, 0.3, 0.4])
    for L in (2, 3, 4):

        def slope(t: float, w: Any, L: int = L) -> Any:
            return -(w**L @ x - y) * L * x * w ** (L - 1)

        end = solve_ivp(slope, (0, 500), w0, method="LSODA", rtol=1e-11, atol=1e-13).y[:, -1]
        worst = max(worst, float(np.abs(end - flow_limit(x, y, w0, depth=L)).max()))
    return Finding(worst, worst < 1e-8, "largest difference of a weight")


def stability(evidence: Evidence) -> Finding:
    """The largest sharpness of a limit over 2/η, over all runs that converged."""
    ratios, runs = [], 0
    for entry in evidence["thmB2"]:
        c = entry.curves
        done = c["converged"].astype(bool)
        ratios += (c["sharpness"][done] / c["limit"][done]).tolist()
        runs += len(done)
    # A loss of 1e-26 leaves w within 1e-12 of its limit.
    return Finding(max(ratios), max(ratios) <= 1 + 1e-9, f"{len(ratios)} of {runs} runs converged")


def stability_exception() -> Finding:
    """Gradient descent started exactly at a point of M three times too sharp: the distance it moves in 100 steps."""
    x, y, lr = np.array([1.0, 0.25]), 1.0, 3 * 2 / 4.0
    w = np.array([1.0, 0.0])
    for _ in range(100):
        w = w - lr * (x @ w**2 - y) * 2 * x * w
    moved = float(np.abs(w - [1.0, 0.0]).max())
    return Finding(moved, moved == 0, "start (1, 0), S = 4, 2/η = 1.33: it is in A_X")


def stability_conditions(*, corrected: bool) -> Finding:
    """The share of rates up to the limit of M for which 1/η is no eigenvalue of ∇²L at any stationary point."""
    example = Example()
    solutions = arc(example.x, example.y, 400)
    eigenvalues = np.linalg.eigvalsh(example.manifold().hessian(solutions))[:, -1]
    rates = np.linspace(0.05, example.limit, 500) * example.unit
    fine = (1 / rates < eigenvalues.min()) | (1 / rates > eigenvalues.max())
    share = float(fine.mean())
    if not corrected:
        return Finding(share, bool(fine.all()), "of 500 rates below the limit of M")
    outside = (rates < 0.5 * example.unit) | (rates > 0.5 * example.limit * example.unit)
    agree = float((fine == outside).mean())
    return Finding(agree, agree == 1.0, "share of rates on which both agree")
