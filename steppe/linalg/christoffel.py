"""An upper bound for λ_max from the weight of its eigenvector in the start vector."""

import numpy as np

from steppe.linalg.arguments import Vector


def log_kernel(mu: float, theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """log K(μ), K(μ) = Σ_j φ_j(μ)², where the orthonormal basis that Lanczos built from b is v_j = φ_j(A) b.

    An eigenvector u of eigenvalue μ has ⟨v_j, u⟩ = φ_j(μ)⟨b, u⟩, and Σ ⟨v_j, u⟩² ≤ 1 (Bessel), so

        ⟨b, u⟩² ≤ 1/K(μ),

    the Christoffel function of the spectral measure of b. In the Ritz basis (θ_i, residual norm |t_i|),

        K(μ) = φ(μ)² (1 + Σ_i t_i²/(μ − θ_i)²),   φ(μ) = Π(μ − θ_i) Π(μ − ψ_l)/Πβ,

    with φ the polynomial of the next vector, ψ_l the Ritz values that restarts discarded and β every residual
    norm so far: it holds through restarts, and every factor grows with μ beyond all θ and ψ.

    >>> theta, beta = np.array([0.0]), 2.0   # one product: φ₀ = 1, φ₁(μ) = μ/2, K(4) = 1 + 4
    >>> np.exp(log_kernel(4.0, theta, np.array([beta]), np.empty(0), np.log(beta))).round(12).tolist()
    5.0
    """
    gaps = mu - theta
    phi = np.log(gaps).sum() + np.log(mu - roots).sum() - log_beta
    return float(2.0 * phi + np.log1p(((tail / gaps) ** 2).sum()))


def log_kernel_at_top(theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """log K at the largest θ, where K is 1/⟨b, y⟩² of its Ritz vector y; −∞ where y is an eigenvector to rounding.

    >>> theta, beta = np.array([0.0]), 2.0                     # one product: y = b
    >>> log_kernel_at_top(theta, np.array([beta]), np.empty(0), np.log(beta))
    0.0
    """
    k = int(np.argmax(theta))
    if tail[k] == 0.0:
        return -np.inf
    top = theta[k]
    phi = np.log(top - np.delete(theta, k)).sum() + np.log(top - roots).sum() - log_beta
    return float(2.0 * (phi + np.log(abs(tail[k]))))


def upper(weight: float, theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """The μ > max θ with K(μ) = 1/weight: λ_max ≤ μ where the eigenvector has ⟨b, u⟩² ≥ weight.

    Bisection on log(μ − max θ), to a thousandth of the gap, rounded up.

    >>> theta, beta = np.array([0.0]), 2.0
    >>> round(upper(0.2, theta, np.array([beta]), np.empty(0), np.log(beta)), 2)   # K(4) = 5
    4.0
    """
    top = float(theta.max())
    count = len(theta) + len(roots)
    # Every factor of φ is at least μ − max θ, so at this gap φ² alone is 1/weight.
    high = (log_beta - 0.5 * np.log(weight)) / count
    low = high - 80.0  # a gap e⁻⁸⁰ times smaller is beyond float64
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        mu = top + np.exp(middle)
        if mu == top or log_kernel(mu, theta, tail, roots, log_beta) < -np.log(weight):
            low = middle
        else:
            high = middle
    return top + float(np.exp(high))
