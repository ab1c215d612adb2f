"""Matrices with a prescribed spectrum."""

import numpy as np

from steppe.linalg._operator import Matrix, Vector


def two_parts(low: Vector, high: Vector) -> Vector:
    return np.concatenate([low, high])


SPECTRA = {
    "clustered": lambda p: two_parts(np.linspace(0.0, 0.5, p - p // 3), 1.0 - 1e-7 * np.arange(p // 3)),
    "rank deficient": lambda p: two_parts(np.zeros(p - p // 4 - 1), np.linspace(0.2, 2.0, p // 4 + 1)),
    "negative-dominant": lambda p: two_parts(-np.linspace(0.1, 10, p - p // 5 - 1), np.linspace(0.1, 1, p // 5 + 1)),
    "one huge outlier": lambda p: np.append(np.linspace(0.0, 1.0, p - 1), 1e6),
    "one negative outlier": lambda p: np.append(np.linspace(0.5, 1.0, p - 1), -1e3),
    "outliers": lambda p: two_parts(np.linspace(-0.01, 0.05, p - p // 10 - 1), np.linspace(0.3, 1.0, p // 10 + 1)),
    "uniform": lambda p: np.linspace(-1.0, 1.0, p),
    "decaying": lambda p: 1.0 / np.arange(1.0, p + 1.0),
    "negative": lambda p: -np.linspace(0.5, 3.0, p),
    "identity": np.ones,
    "zero": np.zeros,
}


def spectrum(name: str, p: int) -> Vector:
    """p eigenvalues, ascending."""
    return np.sort(SPECTRA[name](p))


def plant(eigenvalues: Vector, seed: int) -> Matrix:
    """Q diag(λ) Qᵀ with Q uniformly random."""
    p = len(eigenvalues)
    Q, R = np.linalg.qr(np.random.default_rng([7, seed]).standard_normal((p, p)))
    Q *= np.sign(np.diag(R))
    A = (Q * eigenvalues) @ Q.T
    return 0.5 * (A + A.T)


class Counted:
    """v ↦ Av, and the number of its calls."""

    def __init__(self, A: Matrix) -> None:
        self.A, self.calls = A, 0

    def __call__(self, v: Vector) -> Vector:
        self.calls += 1
        return self.A @ v
