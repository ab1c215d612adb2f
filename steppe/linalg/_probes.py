"""Random probe vectors, and the confidence interval of a trace from their spread."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy.special import chdtri, stdtrit

from steppe.estimate import Accuracy, Estimate
from steppe.linalg._operator import ROUNDING, Operator, Vector

# An error message of all estimators of a trace.
FEW = "Fewer probes cannot carry an interval of that confidence."


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


def multiplier(n: int, delta: float) -> float:
    """c such that the mean of n probes is within c standard errors of the trace with probability ≥ 1 − δ.

    zᵀAz is farthest from normal for A of rank one, where it is λχ²₁: then the mean of n probes is λy with
    y ~ χ²_n/n, its standard error by `Probes` is λ√(2y/n), and the mean misses the trace λ by
    |1 − y|/√(2y/n) standard errors. c is the larger of these at the two δ/2 quantiles of y, and at least
    Student's quantile for n − 1 degrees of freedom. It falls to the normal quantile as n grows.

    >>> [round(multiplier(n, 0.01), 2) for n in (10, 100, 100_000)]
    [3.78, 2.82, 2.58]
    """
    y = np.array([chdtri(n, 1.0 - 0.5 * delta), chdtri(n, 0.5 * delta)]) / n
    skewed = float((np.abs(1.0 - y) / np.sqrt(2.0 * y / n)).max())
    return max(skewed, float(-stdtrit(n - 1, 0.5 * delta)))


def fewest(delta: float) -> int:
    """The least number of probes that can carry an interval of confidence 1 − δ.

    Signs can mislead: for A = [[0, 1], [1, 0]], zᵀAz = ±2, and n probes agree, with zero spread, with
    probability 2¹⁻ⁿ. The result makes this less than δ/4.

    >>> fewest(0.01)
    10
    """
    return 1 + int(np.ceil(np.log2(4.0 / delta)))


def looks(first: int, last: int, delta: float, *, keep: float) -> Iterator[tuple[int, float]]:
    """(number of probes, δ) for each look at an interval; the numbers grow by half, from `first` to `last`.

    The numbers are fixed in advance, so one may stop at the first interval that is narrow enough and keep the
    confidence: each look spends the share 1 − `keep` of the rest of δ.

    >>> [(n, round(d, 4)) for n, d in looks(20, 50, 0.01, keep=0.5)]
    [(20, 0.005), (30, 0.0025), (45, 0.0013), (50, 0.0006)]
    """
    n = min(first, last)
    while True:
        yield n, (1.0 - keep) * delta
        if n == last:
            return
        n, delta = min(n + (n + 1) // 2, last), keep * delta


class Probes:
    """Running mean and spread of y = z ∘ Bz over sign vectors z, for symmetric B.

    E y = diag B, Σ_i Var y_i = Σ_{i≠j} B_ij², and Var zᵀBz is twice that sum (Avron and Toledo 2011, Lemma 9).
    The spread of the p numbers y_i estimates the variance far better than the spread of the one number zᵀBz.

    >>> probes = Probes(2)
    >>> for z in ([1.0, 1.0], [1.0, -1.0]): probes.add(np.array(z), np.array(z)[::-1])   # B = [[0, 1], [1, 0]]
    >>> probes.trace, probes.stderr ** 2
    (0.0, 4.0)
    """

    def __init__(self, p: int) -> None:
        self.n = 0
        self.mean = np.zeros(p)
        self.squares = 0.0
        self.size = 0.0  # mean ‖Bz‖

    def add(self, z: Vector, Bz: Vector) -> None:
        self.n += 1
        y = z * Bz
        before = y - self.mean
        self.mean += before / self.n
        self.squares += float(before @ (y - self.mean))  # Welford: equal probes give exactly zero
        self.size += (float(np.linalg.norm(Bz)) - self.size) / self.n

    @property
    def trace(self) -> float:
        return float(self.mean.sum())

    @property
    def stderr(self) -> float:
        return float(np.sqrt(2.0 * self.squares / (self.n - 1) / self.n))

    def half(self, delta: float, precision: float) -> float:
        """Half the width of the interval: c standard errors, and the rounding |zᵀ(error)| ≤ √p · precision · ‖Bz‖."""
        rounding = precision * float(np.sqrt(len(self.mean))) * self.size
        return multiplier(self.n, delta) * self.stderr + rounding

    def needed(self, target: float, delta: float) -> int:
        """The number of probes that makes the half width `target`, plus a fifth."""
        n, scale = self.n, self.stderr * float(np.sqrt(self.n))
        if scale == 0.0:
            return 2
        if target <= 0.0:
            return 10**9
        for _ in range(5):  # the multiplier falls with n, too
            n = int(np.clip(1.2 * (multiplier(n, delta) * scale / target) ** 2, 2, 1e9))
        return n


def unit_diagonal(a: Operator) -> Vector:
    """e_iᵀAe_i for all unit vectors e_i: p products, exact up to their rounding."""
    e, diagonal = np.zeros(a.p), np.empty(a.p)
    for i in range(a.p):
        e[i] = 1.0
        diagonal[i] = a(e)[i]
        e[i] = 0.0
    return diagonal


def unit_trace(a: Operator) -> Estimate:
    """The sum of `unit_diagonal`: exact if the products are in float64, else with the rounding of each product."""
    rows = unit_diagonal(a)
    exact = Estimate.exact(float(rows.sum()), matvecs=a.matvecs)
    if a.precision <= 2.0 * ROUNDING * float(np.finfo(np.float64).eps):
        return exact
    half = a.precision * a.scale * float(np.sqrt(a.p))
    return replace(exact, lower=exact.value - half, upper=exact.value + half)


def probed_trace(
    a: Operator,
    rest: Callable[[Vector], Vector],
    known: float,
    *,
    first: int,
    last: int,
    accuracy: Accuracy,
    delta: float,
    keep: float,
    rng: np.random.Generator,
) -> tuple[Estimate, Probes]:
    """`known` + tr B, where z ↦ Bz is `rest`, which costs one product of a.

    Looks at the interval after `first` probes and after each growth by half, up to `last` (see `looks`), until its
    width is rtol |value|. `delta` is the share of `accuracy.delta` that these looks may spend together.
    """
    probes = Probes(a.p)
    for count, share in looks(first, last, delta, keep=keep):
        while probes.n < count:
            z = rademacher(a.p, rng)
            probes.add(z, rest(z))
        value, half = known + probes.trace, probes.half(share, a.precision)
        converged = 2.0 * half <= accuracy.rtol * abs(value)
        if converged:
            break
    level = accuracy.confidence
    return Estimate(value, value - half, value + half, level, a.matvecs, converged=converged), probes
