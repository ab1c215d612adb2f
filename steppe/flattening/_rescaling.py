"""All rescalings of a positively homogeneous network, M(t) = Σ_k e^{−2(At)_k} j_k j_kᵀ, and the one of least trace.

Column j_k of the Jacobian belongs to parameter k, t_u is the log-scale of hidden neuron u, and A_ku is the power with
which e^{t_u} multiplies parameter k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.sparse import csr_array, diags_array

from steppe import check
from steppe.flattening._cholesky import damped
from steppe.linalg import one_thread
from steppe.training_set import Floats

Indices = NDArray[np.int64]

# The number of an input or output, which has no scale.
OUTSIDE = -1

# The most sweeps and the most Newton steps. Newton's method takes over when a sweep changes t by less than _TURN.
_SWEEPS, _NEWTON, _TURN = 30, 100, 0.05


def exponents(src: Any, dst: Any, units: int) -> csr_array:
    """A (parameters, units) for parameters that lead from neuron src to neuron dst, or from or to OUTSIDE."""
    ends, signs = np.stack([dst, src]), np.array([[1.0], [-1.0]])
    rows = np.broadcast_to(np.arange(ends.shape[1]), ends.shape)
    hidden = ends != OUTSIDE
    entries = (np.broadcast_to(signs, ends.shape)[hidden], (rows[hidden], ends[hidden]))
    return csr_array(entries, shape=(ends.shape[1], units))


@dataclass(frozen=True, eq=False)
class Rescaling:
    """M(t): the Jacobian (N, parameters) and the exponents A (parameters, units) of its columns."""

    jacobian: Floats
    exponents: csr_array

    @classmethod
    def of(cls, terms: Sequence[tuple[Any, int, int]], units: int) -> "Rescaling":
        """From blocks (J, src, dst), where all columns of J (N, columns) lead from neuron src to neuron dst."""
        if not terms:
            check.refuse("terms", "at least one (J, src, dst)", terms, "Pass the columns of the Jacobian.")
        blocks = [np.asarray(J, dtype=float) for J, _, _ in terms]
        for J in blocks:
            check.finite("terms", J)
        ends = np.array([term[1:] for term in terms], dtype=np.int64)
        if ends.min() < OUTSIDE or ends.max() >= units:
            got = [tuple(pair) for pair in ends.tolist()]
            rule = f"a list of (J, src, dst) with src and dst from 0 to {units - 1}, or OUTSIDE"
            check.refuse("terms", rule, got, "Number the neurons from 0.")
        src, dst = np.repeat(ends, [J.shape[1] for J in blocks], axis=0).T
        return cls(np.concatenate(blocks, axis=1), exponents(src, dst, units))

    @property
    def units(self) -> int:
        return int(self.exponents.shape[1])

    def scales(self, t: Floats) -> Floats:
        """e^{−2(At)_k} for every column."""
        scales: Floats = np.exp(-2 * (self.exponents @ t))
        return scales

    def gram(self, t: Floats) -> Floats:
        """M(t)."""
        M: Floats = (self.jacobian * self.scales(t)) @ self.jacobian.T
        return M

    def weights(self, Q: Floats) -> Floats:
        """j_kᵀ Q j_k ≥ 0 for every column, with Q ⪰ 0: the weights of ⟨M(t), Q⟩."""
        # Rounding may make a zero negative, and a sum with a negative weight has no minimum.
        weights: Floats = np.maximum(np.sum(self.jacobian * (Q @ self.jacobian), axis=0), 0.0)
        return weights


def moving_at_once(exponents: csr_array) -> list[tuple[Indices, float]]:
    """Groups of neurons that may move to their own minima at once without going uphill, (neurons, share of the step).

    Even and odd layers alternate, with whole steps, if no parameter joins two neurons of a group. Otherwise all neurons
    move at once with 1/k of the step, where a parameter joins at most k of them: this cannot go uphill either,
    because e^{(s₁ + … + s_k)/k} ≤ (e^{s₁} + … + e^{s_k})/k.

    >>> chain = csr_array([[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    >>> [(group.tolist(), share) for group, share in moving_at_once(chain)]
    [([0, 2], 1.0), ([1], 1.0)]
    """
    touched = abs(exponents).sign()
    joined = csr_array(touched.T @ touched)
    parity = _parity(joined)
    groups = [np.flatnonzero(parity == side) for side in (0, 1)]
    # Every neuron is joined with itself.
    if all(joined[group][:, group].nnz == len(group) for group in groups):
        return [(group, 1.0) for group in groups if len(group)]
    return [(np.arange(exponents.shape[1]), 1.0 / float(touched.sum(axis=1).max()))]


def _parity(joined: csr_array) -> Indices:
    """The distance to the first neuron of the same component, modulo 2."""
    parity = np.full(joined.shape[0], -1)
    for first in range(joined.shape[0]):
        frontier, side = np.array([first]), 0
        while len(frontier := frontier[parity[frontier] < 0]):
            parity[frontier], side = side, 1 - side
            frontier = np.unique(joined[frontier].indices)
    return parity


def balance(exponents: csr_array, weights: Floats, *, rtol: float = 1e-14) -> Floats:
    """The t that minimises Σ_k w_k e^{−2(At)_k}, by matrix balancing: at the minimum the inflow of each neuron equals
    its outflow (times c for degree c).

    First every neuron moves to its own minimum, ¼ log(in/out), and all neurons that share no parameter at once; then
    Newton's method. Terms that some direction sends to zero without cost (see `circulating`) are ignored, and neurons
    with only such terms keep t = 0.

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
    """A lower bound of Σ_k w_k e^{−2(At)_k} for all t: the minimum itself if t attains it, 0 if t is too far from it.

    For any circulation y ≥ 0 (Aᵀy = 0) convexity of exp gives Σ_k x_k ≥ Σ_k y_k (1 + log x_k/y_k), and t cancels:
    Σ_k y_k (1 + log w_k/y_k). The circulation is the projection of the flows at t.
    """
    return bound_of(circulation(exponents, weights, t), weights)


def circulation(exponents: csr_array, weights: Floats, t: Floats) -> Floats:
    """y ≥ 0 with Aᵀy = 0, close to the flows at t; zero if t is too far from the minimum."""
    kept = circulating(exponents, weights)
    A, flows = exponents[kept], np.zeros(len(weights))
    own = weights[kept] * np.exp(-2 * (A @ t))
    moved = np.unique(A.indices)
    if len(moved):
        A = A[:, moved]
        with one_thread():
            own = own * (1 - A @ _step(A, own))
    if (own >= 0).all():
        flows[kept] = own
    return flows


def bound_of(y: Floats, weights: Floats) -> float:
    """Σ_k y_k (1 + log w_k/y_k)."""
    carried = y > 0
    if not (weights[carried] > 0).all():
        return 0.0
    return max(float(np.sum(y[carried] * (1 + np.log(weights[carried] / y[carried])))), 0.0)


def circulating(exponents: csr_array, weights: Floats) -> NDArray[np.bool_]:
    """The terms that no direction of t sends to zero without cost. To find them, neurons with terms on one side only
    lose these, until no such neuron is left."""
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
    """Cyclic updates in closed form until they gain little; none goes uphill."""
    t, flows = np.zeros(A.shape[1]), weights.copy()
    entering, leaving = A.maximum(0).T.tocsr(), (-A).maximum(0).T.tocsr()
    # All parameters on one side of a neuron have one exponent: 1 inward, the degree of the activation outward.
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
    """Damped Newton steps until the next one would gain only rounding."""
    flows = weights * np.exp(-2 * (A @ t))
    for _ in range(_NEWTON):
        step, length, total = 0.5 * _step(A, flows), 1.0, float(np.sum(flows))
        step *= min(1.0, 2.0 / max(float(np.max(np.abs(step))), 1e-300))  # e² in scale at most
        gain = float(step @ (A.T @ flows))  # half of the predicted decrease
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
    # Flows of neurons differ by many decades; scaling to unit diagonal costs no accuracy.
    root = np.sqrt(np.maximum(np.diag(laplacian), np.finfo(float).tiny))
    scaled = laplacian / root / root[:, None]
    factor = damped(scaled, 4 * np.finfo(float).eps)
    right = (A.T @ flows) / root
    d = cho_solve(factor, right)
    d += cho_solve(factor, right - scaled @ d)
    step: Floats = d / root
    return step


class Alike(NamedTuple):
    """Groups of columns with equal exponents, which act as one positive semi-definite matrix: the `first` column of
    each group, the group `of` each column, and the `sizes`."""

    first: NDArray[np.int64]
    of: NDArray[np.int64]
    sizes: NDArray[np.int64]


def alike(exponents: csr_array) -> Alike:
    """For example, all weights from the inputs into one neuron have the same exponents."""
    # Equal rows have equal sums with any weights; unequal rows have different sums with random weights.
    sums = exponents @ np.random.default_rng(0).standard_normal(exponents.shape[1])
    _, *found = np.unique(sums, return_index=True, return_inverse=True, return_counts=True)
    return Alike(*found)


def merged(exponents: csr_array, weights: Floats) -> tuple[csr_array, Floats]:
    """The function Σ_k w_k e^{−2(At)_k} with one term for each set of equal exponents.

    >>> A, w = merged(csr_array([[1.0], [1.0], [-1.0]]), np.array([3.0, 4.0, 5.0]))
    >>> A.toarray().tolist(), w.tolist()
    ([[-1.0], [1.0]], [5.0, 7.0])
    """
    groups = alike(exponents)
    sums: Floats = np.bincount(groups.of, weights).astype(float)
    return csr_array(exponents[groups.first]), sums


def compressed(form: Rescaling) -> Rescaling:
    """The same M(t) with at most N columns for each set of equal exponents: J Jᵀ = RᵀR, Jᵀ = QR.

    >>> form = Rescaling.of([([[3.0, 4.0]], -1, 0), ([[1.0]], 0, -1)], 1)
    >>> abs(compressed(form).jacobian).tolist()
    [[1.0, 5.0]]
    """
    N, groups = len(form.jacobian), alike(form.exponents)
    large = np.flatnonzero(groups.sizes > N)
    alone = np.flatnonzero(~np.isin(groups.of, large))
    order, ends = np.argsort(groups.of, kind="stable"), np.cumsum(groups.sizes)
    blocks, columns = [form.jacobian[:, alone]], [alone]
    for group in large:
        members = order[ends[group] - groups.sizes[group] : ends[group]]
        blocks.append(np.linalg.qr(form.jacobian[:, members].T).R.T)
        columns.append(np.full(N, groups.first[group]))
    return Rescaling(np.hstack(blocks), csr_array(form.exponents[np.concatenate(columns)]))
