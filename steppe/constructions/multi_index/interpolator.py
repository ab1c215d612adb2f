"""The flattest interpolator for given inner weights: the convex program of multi-index, Eq. 3, with a certificate."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.multi_index.dual import maximise
from steppe.constructions.multi_index.penalties import Barrier, Power
from steppe.constructions.multi_index.reduced import Interpolator, Reduced, reduced
from steppe.linalg import one_thread

_ROUNDS, _SHRINK, _CENTRED = 40, 0.1, 0.03


def flattest_interpolator(phi: Any, y: Any, q: Any, p: float, *, tau: float = 0.0, rtol: float = 1e-8) -> Interpolator:
    """min Σ_k q_k |a_k|^p over ‖Φa − y‖ ≤ τ for 1 ≤ p ≤ 2, to a relative gap of rtol; `features` gives Φ, q and p.

    p = 1 (activations of degree 1) is a linear program for τ = 0, p = 2c/(c + 1) a smooth one. The dual is
    max y·λ − τ‖λ‖ − ψ(Φᵀλ) with ψ the conjugate of the cost, smooth for p > 1; for p = 1 it demands |Φᵀλ| ≤ q, and a
    logarithmic barrier takes its place. Newton's method in as many unknowns as there are examples.

    >>> best = flattest_interpolator([[1.0, 2.0]], [4.0], [1.0, 3.0], 1.0)  # 1·4 against 3·2
    >>> best.a.round(6).tolist(), round(best.flatness, 6)
    ([4.0, 0.0], 4.0)
    """
    problem = reduced(*_arguments(phi, y, q), check.number("tau", tau, minimum=0.0))
    p, rtol = check.number("p", p, minimum=1.0), check.number("rtol", rtol, above=0.0)
    if p > 2:
        check.refuse("p", "from 1 to 2", p, "p = 2c/(c + 1) for an activation of degree c.")
    if np.linalg.norm(problem.y) <= problem.tau:  # a = 0 will do
        return problem.whole(np.zeros(len(problem.q)), p, np.zeros(len(problem.y)), 0.0)
    with one_thread(rows=len(problem.y)):
        return _smooth(problem, p, rtol) if p > 1 else _linear(problem, rtol)


def _smooth(problem: Reduced, p: float, rtol: float) -> Interpolator:
    penalty = Power(problem.q, p)
    # The multiple of y that is best: the slope along it is that of a power.
    s = problem.phi.T @ problem.y
    room = float(problem.y @ problem.y - problem.tau * np.linalg.norm(problem.y))
    start = problem.y * (room / (penalty.r * penalty.value(s))) ** (1 / (penalty.r - 1))
    multiplier = maximise(problem.phi, problem.y, problem.tau, penalty, start, rtol=1e-3 * rtol)
    lower = float(problem.y @ multiplier - problem.tau * np.linalg.norm(multiplier))
    lower -= penalty.value(problem.phi.T @ multiplier)
    return problem.whole(problem.primal(multiplier, penalty), p, multiplier, lower)


def _linear(problem: Reduced, rtol: float) -> Interpolator:
    """Along the path of the barrier, μ shrinking until the gap is small."""
    s = problem.phi.T @ problem.y
    multiplier = problem.y * (0.5 / np.max(np.abs(s) / problem.q))
    best = None
    mu = float(problem.y @ multiplier) / len(problem.q)
    for _ in range(_ROUNDS):
        penalty = Barrier(problem.q, mu)
        # Near enough to the path for the next μ; the gap is measured, whatever the accuracy here.
        share = mu * len(problem.q) / max(float(problem.y @ multiplier), np.finfo(float).tiny)
        multiplier = maximise(
            problem.phi, problem.y, problem.tau, penalty, multiplier, rtol=max(1e-2 * rtol, _CENTRED * share)
        )
        lower = float(problem.y @ multiplier - problem.tau * np.linalg.norm(multiplier))
        found = problem.whole(problem.primal(multiplier, penalty), 1.0, multiplier, lower)
        best = found if best is None or found.gap < best.gap else best
        # Below 1e-14 of the value the barrier is rounding.
        if best.gap <= rtol or mu * len(problem.q) < 1e-14 * best.flatness:
            break
        mu *= _SHRINK
    assert best is not None
    return best


def _arguments(phi: Any, y: Any, q: Any) -> tuple[Floats, Floats, Floats]:
    phi, y, q = (np.asarray(a, dtype=float) for a in (phi, y, q))
    if phi.ndim != 2 or 0 in phi.shape:
        check.refuse("phi", "of shape (n, m), one row an example", phi.shape, "Pass the features of the data.")
    if y.shape != phi.shape[:1] or q.shape != phi.shape[1:]:
        rule = f"of shapes ({phi.shape[0]},) and ({phi.shape[1]},)"
        check.refuse("y and q", rule, (y.shape, q.shape), "Pass one label an example and one weight a neuron.")
    for name, a in (("phi", phi), ("y", y), ("q", q)):
        check.finite(name, a)
    felt = (phi != 0).any(axis=0)
    if (q[felt] <= 0).any():
        check.refuse("q", "> 0 for every neuron that some example activates", q[felt].min(), "Use features(W, x, σ).")
    return phi, y, q
