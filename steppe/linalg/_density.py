"""Spectral density by stochastic Lanczos quadrature."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe._result import Rows
from steppe.linalg._lanczos import tridiagonal
from steppe.linalg._operator import Matvec, Operator, Vector, dimension, generator
from steppe.linalg._probes import sphere

# Grid points for each kernel width: the trapezoidal sum of a Gaussian is then off by 2 exp(−2π²·16) of its integral.
PER_WIDTH = 4
# Widths beyond the outermost node; a Gaussian holds 1.3e-12 of its mass further out.
TAIL = 7


@dataclass(frozen=True, eq=False, repr=False)
class Density(Rows, index="point", columns=("grid", "density", "stderr")):
    """Σ_j weights_j δ(x − nodes_j), the spectral measure of A with total mass 1, averaged over probes; and `density`,
    the measure smoothed by a Gaussian of standard deviation `width` on a grid, with its standard error."""

    nodes: Vector
    weights: Vector
    grid: Vector
    density: Vector
    stderr: Vector
    width: float
    matvecs: int

    def mean(self) -> float:
        """∫ x dμ, an estimate of tr A / p from the same probes."""
        return float(self.nodes @ self.weights)


def smoothed(grid: Vector, nodes: Vector, weights: Vector, width: float) -> Vector:
    """Σ_j w_j exp(−(x − θ_j)²/2h²)/(√(2π) h).

    >>> float(smoothed(np.zeros(1), np.zeros(1), np.ones(1), 1.0)[0] * np.sqrt(2 * np.pi))
    1.0
    """
    kernel = np.exp(-0.5 * ((grid[:, None] - nodes) / width) ** 2)
    result: Vector = kernel @ weights / (np.sqrt(2.0 * np.pi) * width)
    return result


def spectral_density(
    matvec: Matvec,
    p: int,
    *,
    probes: int = 8,
    steps: int = 64,
    width: float | None = None,
    grid: Vector | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Density:
    """The density of eigenvalues, from Gauss quadrature of the spectral measures of random vectors.

    A probe z, uniform on the sphere, has the measure Σ_i ⟨z, u_i⟩²/p δ(x − λ_i), whose mean is the density of
    eigenvalues; `steps` Lanczos steps integrate polynomials of degree 2 steps − 1 against it exactly. At most
    probes × steps products. `width` is the width of the smoothing, by default a hundredth of the spread of the nodes;
    `grid` by default reaches seven widths beyond them.

    >>> d = np.repeat([0.0, 1.0], [30, 10])
    >>> found = spectral_density(lambda v: d * v, 40, probes=4, steps=3, key=0)
    >>> found.weights.sum().round(12), found.matvecs   # two distinct eigenvalues: two steps for each probe
    (np.float64(1.0), 8)

    Lin, Saad and Yang 2016; Ghorbani, Krishnan and Xiao 2019 for networks.
    """
    p = dimension(p)
    probes = check.integer("probes", probes, minimum=2, remedy="A standard error takes two probes.")
    steps = min(check.integer("steps", steps, minimum=1), p)
    if width is not None:
        width = check.number("width", width, above=0.0)
    rng, a = generator(key), Operator(matvec, p, precision)
    rules = [tridiagonal(a, sphere(p, rng), steps).quadrature() for _ in range(probes)]
    nodes = np.concatenate([theta for theta, _ in rules])
    weights = np.concatenate([w for _, w in rules]) / probes
    if width is None:
        spread = float(np.ptp(nodes))
        # Only one distinct eigenvalue, up to rounding: a hundredth of its size, or 0.01 for the zero operator.
        width = 0.01 * (spread if spread > 1e-8 * float(np.abs(nodes).max()) else float(np.abs(nodes).max()) or 1.0)
    if grid is None:
        low, high = float(nodes.min()) - TAIL * width, float(nodes.max()) + TAIL * width
        grid = np.linspace(low, high, int(np.ceil((high - low) / width * PER_WIDTH)) + 1)
    else:
        grid = np.array(grid, dtype=np.float64)
        check.finite("grid", grid)
        if grid.ndim != 1:
            check.refuse(
                "grid", "one-dimensional", grid.shape, "Pass the points of the density as one list of numbers."
            )
    curves = np.stack([smoothed(grid, theta, w, width) for theta, w in rules])
    order = np.argsort(nodes)
    stderr = curves.std(axis=0, ddof=1) / np.sqrt(probes)
    return Density(nodes[order], weights[order], grid, curves.mean(axis=0), stderr, width, a.matvecs)
