"""μ log tr e^{M(t)/μ}, within μ log N of λ_max(M(t)) and smooth: value, gradient and Hessian in t."""

from dataclasses import dataclass

import numpy as np

from steppe.constructions._examples import Floats
from steppe.constructions.flattest.rescaling import Rescaling


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


def smoothed(form: Rescaling, B: Floats, t: Floats, mu: float) -> Smoothed:
    """All of it; `B` is the incidence of the form.

    ∂_u F = ⟨Q, ∂_u M⟩ and ∂_u∂_v F = ⟨Q, ∂_u∂_v M⟩ + Σ_ab Φ_ab (∂_u M)_ab (∂_v M)_ab − ∂_u F ∂_v F/μ in the eigenbasis
    of M, with Φ the divided differences of the weights of Q, q_a/μ on the diagonal (Daleckii and Krein 1965).
    """
    scales = form.scales(t)
    m, V = np.linalg.eigh(np.tensordot(scales, form.grams, axes=1))
    shifted = np.exp((m - m[-1]) / mu)
    total = shifted.sum()
    q = shifted / total
    rotated = V.T @ (scales[:, None, None] * form.grams) @ V
    first = -2 * np.tensordot(B, rotated, axes=(0, 0))  # ∂_u M, (units, N, N)
    flows = np.einsum("caa,a->c", rotated, q)
    gradient = -2 * B.T @ flows
    gaps = m[:, None] - m[None]
    # Φ_ab = (q_a − q_b)/(m_a − m_b), written so that close eigenvalues do not cancel.
    larger = np.maximum(q[:, None], q[None])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = -np.expm1(-np.abs(gaps) / mu) / np.abs(gaps)
    divided = larger * np.where(np.abs(gaps) > 0, ratio, 1 / mu)
    flat = first.reshape(len(first), m.size**2)
    hessian = 4 * (B.T * flows) @ B + (flat * divided.reshape(-1)) @ flat.T - np.outer(gradient, gradient) / mu
    return Smoothed(
        float(m[-1] + mu * np.log(total)), float(m[-1]), V[:, -1], (V * q) @ V.T, gradient, hessian
    )  # fmt: skip
