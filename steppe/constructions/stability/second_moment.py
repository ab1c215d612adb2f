"""Linear stability of SGD at an interpolator: does E‖f − y‖² grow? The exact operator that decides it.

Near an interpolator the residuals u = Φᵀ(θ − θ*) obey u ← u − (η/B) K S u, with K = ΦᵀΦ and S the diagonal of a
random batch of B out of n examples. So U = E[u uᵀ] obeys a linear map T, and SGD is stable in mean square where the
spectral radius of T is at most 1. For B = n it is (1 − ηλ_max)², or the one of the least λ where that is larger.
"""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats


def second_moment(K: Any, lr: float, *, batch_size: int) -> Floats:
    """T as a matrix on symmetric n × n matrices, n(n + 1)/2 numbers each, batches drawn without replacement.

    T(U) = U − (η/n)(KU + UK) + (η/B)² K (E[s sᵀ] ⊙ U) K, E[sᵢsⱼ] = B(B − 1)/(n(n − 1)) and B/n on the diagonal.
    """
    K, lr, batch = _checked(K, lr, batch_size)
    n = len(K)
    rows, columns = np.triu_indices(n)
    T = np.empty((len(rows), len(rows)))
    for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
        U = np.zeros((n, n))
        U[i, j] = U[j, i] = 1.0
        T[:, k] = _apply(U, K, lr, batch)[rows, columns]
    return T


def growth(K: Any, lr: float, *, batch_size: int, rtol: float = 1e-10, dense: int = 60) -> float:
    """The spectral radius of T: E‖u‖² grows or shrinks by this factor a step in the long run.

    Up to n = `dense` from all eigenvalues; beyond by power iteration from U = I: T, an average of maps U ↦ AUAᵀ, keeps
    the cone of U ⪰ 0, so its spectral radius is an eigenvalue with an eigenvector in that cone.

    >>> round(growth(np.diag([4.0, 2.0]), 0.5, batch_size=2), 6)    # λ = 2, 1: (1 − 0.5)² and (1 − 1)², 0.25 ahead
    0.25
    >>> round(growth(np.diag([4.0, 2.0]), 0.5, batch_size=1), 6)    # ½ (1 − 2)² + ½
    1.0
    """
    K, lr, batch = _checked(K, lr, batch_size)
    if len(K) <= dense:
        return float(np.abs(np.linalg.eigvals(second_moment(K, lr, batch_size=batch))).max())
    U, radius = np.eye(len(K)) / np.sqrt(len(K)), 0.0
    for _ in range(100_000):
        V = _apply(U, K, lr, batch)
        after = float(np.linalg.norm(V))
        if abs(after - radius) <= rtol * after or after == 0:
            return after
        U, radius = V / after, after
    return radius


def largest_stable_lr(K: Any, *, batch_size: int, rtol: float = 1e-6) -> float:
    """The largest η up to which SGD is stable in mean square; 2/λ_max(K/n) for the full batch."""
    K, _, batch = _checked(K, 1.0, batch_size)
    low, high = 0.0, 2 * len(K) / float(np.linalg.eigvalsh(K)[-1])
    # Noise only destabilises: E‖u‖² ≥ ‖E u‖², so no batch size is stable beyond full batches.
    while high - low > rtol * high:
        middle = (low + high) / 2
        low, high = (middle, high) if growth(K, middle, batch_size=batch) <= 1 + 1e-12 else (low, middle)
    return high


def simulated_growth(
    K: Any, lr: float, *, batch_size: int, steps: int = 20, samples: int = 10_000, key: int = 0
) -> tuple[float, float]:
    """(E‖u_t‖²/‖u₀‖² after `steps` steps from a random direction, its standard error) by SGD itself.

    For data too large for the operator. Where it grows, E‖u‖² is carried by fewer and fewer runs: keep `steps` small.
    """
    K, lr, batch = _checked(K, lr, batch_size)
    n, rng = len(K), np.random.default_rng(key)
    start = rng.standard_normal(n)
    u = np.repeat(start[None] / np.linalg.norm(start), check.integer("samples", samples, minimum=2), axis=0)
    for _ in range(check.integer("steps", steps, minimum=1)):
        order = np.argsort(rng.random(u.shape), axis=1)
        chosen = np.zeros(u.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, :batch], True, axis=1)
        u = u - lr / batch * (np.where(chosen, u, 0.0) @ K)
    squares = np.sum(u**2, axis=1)
    return float(squares.mean()), float(squares.std(ddof=1) / np.sqrt(len(squares)))


def _apply(U: Floats, K: Floats, lr: float, batch: int) -> Floats:
    n = len(K)
    both = batch * (batch - 1) / (n * (n - 1)) if n > 1 else 0.0
    drawn = both * U
    np.fill_diagonal(drawn, batch / n * np.diagonal(U))
    mean = K @ U
    result: Floats = U - lr / n * (mean + mean.T) + (lr / batch) ** 2 * (K @ drawn @ K)
    return result


def _checked(K: Any, lr: float, batch_size: int) -> tuple[Floats, float, int]:
    K = np.asarray(K, dtype=float)
    # The rounding of a product ΦᵀΦ.
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.allclose(K, K.T, rtol=1e-10, atol=1e-12 * np.abs(K).max()):
        check.refuse("K", "a symmetric matrix, one row an example", f"shape {K.shape}", "Pass J @ J.T, J the Jacobian.")
    check.finite("K", K)
    batch = check.integer("batch_size", batch_size, minimum=1)
    if batch > len(K):
        check.refuse("batch_size", f"at most the {len(K)} examples", batch_size, "Pass the number of examples or less.")
    return K, check.number("lr", lr, above=0.0), batch
