"""Derivatives of g = N/√ψ, the shape of every normalisation, from those of N and ψ."""

from jax import Array


def squared_gradient(N: Array, squares: Array, cross: Array, psi: Array, psi_squares: Array) -> Array:
    """‖∇g‖² = ‖∇N‖²/ψ − N ∇N·∇ψ/ψ² + ¼ N² ‖∇ψ‖²/ψ³, given squares = ‖∇N‖², cross = ∇N·∇ψ, psi_squares = ‖∇ψ‖²."""
    return squares / psi - N * cross / psi**2 + N**2 * psi_squares / (4 * psi**3)


def laplacian(N: Array, lap_N: Array, cross: Array, psi: Array, psi_squares: Array, lap_psi: Array) -> Array:
    """Δg = ψ^{−½} ΔN − ψ^{−3/2} ∇N·∇ψ + N (¾ ψ^{−5/2} ‖∇ψ‖² − ½ ψ^{−3/2} Δψ).

    >>> laplacian(1.0, 0.0, 2.0, 4.0, 4.0, 2.0)             # t/√(t² + 3) at t = 1: g″ = −9t/ψ^{5/2}
    -0.28125
    """
    return lap_N / psi**0.5 - cross / psi**1.5 + N * (0.75 * psi_squares / psi**2.5 - 0.5 * lap_psi / psi**1.5)
