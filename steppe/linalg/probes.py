"""Random test vectors z with E zzᵀ = I."""

import numpy as np

from steppe.linalg.arguments import Vector


def rademacher(p: int, rng: np.random.Generator) -> Vector:
    """Signs ±1 with equal probability, as float64.

    >>> sorted(set(rademacher(100, np.random.default_rng(0)).tolist()))
    [-1.0, 1.0]
    """
    return rng.integers(0, 2, size=p).astype(np.float64) * 2.0 - 1.0


def gaussian(p: int, rng: np.random.Generator) -> Vector:
    """Independent standard normals."""
    return rng.standard_normal(p)


def sphere(p: int, rng: np.random.Generator) -> Vector:
    """Uniform on the sphere of radius √p.

    >>> bool(np.isclose(np.linalg.norm(sphere(9, np.random.default_rng(0))), 3.0))
    True
    """
    g = gaussian(p, rng)
    g *= np.sqrt(p) / np.linalg.norm(g)
    return g
