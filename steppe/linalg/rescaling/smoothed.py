"""μ log tr e^{M(t)/μ}, within μ log N of λ_max(M(t)) and smooth: value, gradient and Hessian in t."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import diags_array

from steppe.linalg.rescaling.rescaling import Floats, Rescaling


@dataclass(frozen=True, eq=False)
class Smoothed:
    """At t: `value` = μ log tr e^{M/μ}, `top` = λ_max(M), `density` = Q = e^{M/μ}/tr e^{M/μ}, gradient, Hessian."""

    value: float
    top: float
    vector: Floats
    density: Floats
    gradient: Floats
    hessian: Floats


def value(form: Rescaling, t: Floats, mu: float) -> float:
    m = np.linalg.eigvalsh(form.gram(t))
    return float(m[-1] + mu * np.log(np.sum(np.exp((m - m[-1]) / mu))))


def smoothed(form: Rescaling, t: Floats, mu: float) -> Smoothed:
    """All of it.

    ∂_u F = ⟨Q, ∂_u M⟩ and ∂_u∂_v F = ⟨Q, ∂_u∂_v M⟩ + Σ_ab Φ_ab (∂_u M)_ab (∂_v M)_ab − ∂_u F ∂_v F/μ in the eigenbasis
    of M, with Φ the divided differences of the weights of Q, q_a/μ on the diagonal (Daleckii and Krein 1965).
    """
    A, scales = form.exponents, form.scales(t)
    m, V = np.linalg.eigh((form.jacobian * scales) @ form.jacobian.T)
    shifted = np.exp((m - m[-1]) / mu)
    total = shifted.sum()
    q = shifted / total
    rotated = V.T @ form.jacobian
    flows = scales * (q @ rotated**2)
    gradient = -2 * (A.T @ flows)
    gaps = np.abs(m[:, None] - m[None])
    # Φ_ab = (q_a − q_b)/(m_a − m_b), written so that close eigenvalues do not cancel.
    larger = np.maximum(q[:, None], q[None])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = -np.expm1(-gaps / mu) / gaps
    divided = larger * np.where(gaps > 0, ratio, 1 / mu)
    flat = _slopes(form, rotated, scales).reshape(form.units, m.size**2)
    second = (A.T @ diags_array(flows) @ A).toarray()  # flows · A_ku A_kv: the exponentials bend
    hessian = 4 * second + (flat * divided.reshape(-1)) @ flat.T - np.outer(gradient, gradient) / mu
    return Smoothed(
        float(m[-1] + mu * np.log(total)), float(m[-1]), V[:, -1], (V * q) @ V.T, gradient, hessian
    )  # fmt: skip


def _slopes(form: Rescaling, rotated: Floats, scales: Floats) -> Floats:
    """∂_u M = −2 Σ_k A_ku e^{−2(At)_k} j_k j_kᵀ for each u, (units, N, N)."""
    A, slopes = form.exponents.tocsc(), np.empty((form.units, len(rotated), len(rotated)))
    for u, (start, stop) in enumerate(zip(A.indptr[:-1], A.indptr[1:], strict=True)):
        own = A.indices[start:stop]
        columns = rotated[:, own]
        slopes[u] = -2 * (columns * (A.data[start:stop] * scales[own])) @ columns.T
    return slopes
