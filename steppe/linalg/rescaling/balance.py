"""min over t of Σ_k w_k e^{−2(At)_k}: matrix balancing, with a lower bound that holds wherever it is computed."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array

from steppe.linalg.one_thread import one_thread
from steppe.linalg.rescaling.groups import moving_at_once
from steppe.linalg.rescaling.rescaling import Floats

_SWEEPS, _NEWTON, _TURN = 30, 100, 0.05


def balance(exponents: csr_array, weights: Floats, *, rtol: float = 1e-14) -> Floats:
    """t at the minimum: what flows into a neuron flows out of it, inflow = outflow (c times that for degree c).

    First every neuron in turn to its own minimum, ¼ log(in/out), all neurons that share no parameter at once; then
    Newton's method. Terms that some direction sends to zero without cost (`circulating`) are left out, and neurons
    that only such terms touch keep t = 0.

    >>> from steppe.linalg.rescaling import Rescaling
    >>> form = Rescaling.of([([[1.0]], -1, 0), ([[4.0]], 0, -1)], 1)
    >>> t = balance(form.exponents, form.weights(np.eye(1)))       # e^{−2t} + 16 e^{2t}
    >>> form.gram(t).round(9).tolist()                             # 2 √16
    [[8.0]]
    """
    kept = circulating(exponents, weights)
    A, w = exponents[kept], weights[kept]
    moved = np.unique(A.indices)
    t = np.zeros(exponents.shape[1])
    if len(moved):
        A = A[:, moved]
        with one_thread():
            t[moved] = _newton(A, w, _sweeps(A, w), rtol)
    return t


def lower_bound(exponents: csr_array, weights: Floats, t: Floats) -> float:
    """A number that Σ_k w_k e^{−2(At)_k} nowhere falls below; its minimum if t is one; 0 if t is too far from it.

    With any circulation y ≥ 0 (Aᵀy = 0) convexity of exp gives Σ_k x_k ≥ Σ_k y_k (1 + log x_k/y_k), and t drops out:
    Σ_k y_k (1 + log w_k/y_k). The circulation is the projection of the flows at t.
    """
    kept = circulating(exponents, weights)
    A, w = exponents[kept], weights[kept]
    flows = w * np.exp(-2 * (A @ t))
    moved = np.unique(A.indices)
    if len(moved):
        A = A[:, moved]
        with one_thread():
            flows = flows * (1 - A @ _step(A, flows))
    if not (flows >= 0).all():
        return 0.0
    carried = flows > 0
    return float(np.sum(flows[carried] * (1 + np.log(w[carried] / flows[carried]))))


def circulating(exponents: csr_array, weights: Floats) -> NDArray[np.bool_]:
    """Which terms no direction of t sends to zero for free: those left when neurons without inflow, or without
    outflow, have lost all their terms, again and again."""
    entering, leaving = exponents > 0, exponents < 0
    kept = weights > 0
    while True:
        inflow, outflow = (ends.T.astype(float) @ kept.astype(float) > 0 for ends in (entering, leaving))
        one_sided = (inflow != outflow).astype(float)
        left = kept & ~((entering + leaving).astype(float) @ one_sided > 0)
        if (left == kept).all():
            return left
        kept = left


def _sweeps(A: csr_array, weights: Floats) -> Floats:
    """Cyclic closed-form updates until they gain little; never uphill."""
    t, flows = np.zeros(A.shape[1]), weights.copy()
    entering, leaving = A.maximum(0).T.tocsr(), (-A).maximum(0).T.tocsr()
    # All parameters of one neuron on one side have one exponent: 1 inward, the degree of the activation outward.
    pull = 2 * (entering.max(axis=1).toarray() + leaving.max(axis=1).toarray())
    groups = [(group, share / pull[group], A[:, group]) for group, share in moving_at_once(A)]
    for _ in range(_SWEEPS):
        largest = 0.0
        for group, gain, own in groups:
            step = gain * np.log((entering[group] @ flows) / (leaving[group] @ flows))
            t[group] += step
            flows *= np.exp(-2 * (own @ step))
            largest = max(largest, float(np.max(np.abs(step))))
        if largest < _TURN:
            break
    return t


def _newton(A: csr_array, weights: Floats, t: Floats, rtol: float) -> Floats:
    """Damped Newton steps to where rounding leaves nothing to gain."""
    flows = weights * np.exp(-2 * (A @ t))
    for _ in range(_NEWTON):
        step, length, total = 0.5 * _step(A, flows), 1.0, float(np.sum(flows))
        step *= min(1.0, 2.0 / max(float(np.max(np.abs(step))), 1e-300))  # e² in scale at most
        gain = float(step @ (A.T @ flows))  # half the decrease that the model promises
        if gain <= rtol * total:
            return t + step
        while True:
            trial = flows * np.exp(-2 * length * (A @ step))
            if np.sum(trial) <= total - 0.2 * length * gain or length < 1e-6:
                break
            length /= 2
        t, flows = t + length * step, trial
    return t


def _step(A: csr_array, flows: Floats) -> Floats:
    """d with Aᵀ diag(flows) A d = Aᵀ flows: flows (1 − Ad) is a circulation, and d/2 is Newton's step."""
    laplacian = (A.T @ diags_array(flows) @ A).toarray()
    # Flows of neurons differ by many decades: to unit diagonal, which costs no accuracy.
    root = np.sqrt(np.maximum(np.diag(laplacian), np.finfo(float).tiny))
    scaled = laplacian / root / root[:, None]
    damping = 4 * np.finfo(float).eps
    while True:
        try:
            factor = cho_factor(scaled + damping * np.eye(len(root)))
            break
        except LinAlgError:
            damping *= 100
    right = (A.T @ flows) / root
    d = cho_solve(factor, right)
    d += cho_solve(factor, right - scaled @ d)
    step: Floats = d / root
    return step
