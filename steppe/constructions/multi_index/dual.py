"""max over λ of y·λ − τ‖λ‖ − ψ(Φᵀλ): Newton's method, concave and unconstrained."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from steppe.constructions._examples import Floats
from steppe.constructions.multi_index.penalties import Penalty

_STEPS = 200


def maximise(phi: Floats, y: Floats, tau: float, penalty: Penalty, start: Floats, *, rtol: float) -> Floats:
    """λ at the maximum, from a start in the domain, to where a step promises less than rtol of the value."""
    multiplier = start
    value = _value(phi, y, tau, penalty, multiplier)
    for _ in range(_STEPS):
        s, length = phi.T @ multiplier, max(float(np.linalg.norm(multiplier)), np.finfo(float).tiny)
        unit = multiplier / length
        slope = y - tau * unit - phi @ penalty.slope(s)
        bend = gram(phi, penalty.curvature(s))
        if tau > 0:
            bend += tau / length * (np.eye(len(y)) - np.outer(unit, unit))
        step = solved(bend, slope)
        promise, share = float(slope @ step), 1.0
        if promise <= rtol * max(abs(value), np.finfo(float).tiny):
            break
        while share > 1e-12:
            trial = multiplier + share * step
            reached = _value(phi, y, tau, penalty, trial)
            if reached >= value + 0.1 * share * promise:
                break
            share /= 2
        else:
            break  # rounding leaves nothing to gain
        multiplier, value = trial, reached
    return multiplier


def gram(phi: Floats, weights: Floats) -> Floats:
    """Φ diag(weights) Φᵀ for weights ≥ 0, one triangle computed and copied."""
    half: Floats = dsyrk(1.0, phi * np.sqrt(weights))
    return np.triu(half) + np.triu(half, 1).T


def solved(bend: Floats, right: Floats) -> Floats:
    """bend⁻¹ right, to unit diagonal first; damped where rounding has made it singular."""
    root = np.sqrt(np.maximum(np.diag(bend), np.finfo(float).tiny))
    scaled, damping = bend / root / root[:, None], 0.0
    while True:
        try:
            factor = cho_factor(scaled + damping * np.eye(len(root)))
            break
        except LinAlgError:
            damping = max(100 * damping, 1e-15)
    solution: Floats = cho_solve(factor, right / root) / root
    return solution


def _value(phi: Floats, y: Floats, tau: float, penalty: Penalty, multiplier: Floats) -> float:
    return float(y @ multiplier - tau * np.linalg.norm(multiplier)) - penalty.value(phi.T @ multiplier)
