"""The trace of a symmetric operator from sign vectors, with the spread of the estimate."""

from collections.abc import Callable

import numpy as np

from steppe.estimate import Estimate
from steppe.linalg.arguments import Vector
from steppe.linalg.operator import Operator
from steppe.linalg.probes import rademacher
from steppe.linalg.spread import looks, multiplier

FEW = "Fewer probes cannot carry an interval of that confidence."


class Probes:
    """Running mean and spread of y = z ∘ Bz over sign vectors z, for symmetric B.

    E y = diag B and Σ_i Var y_i = Σ_{i≠j} B_ij², and Var zᵀBz is twice that (Avron and Toledo 2011, Lemma 9).
    The spread of p numbers a probe is a far steadier estimate of the variance than that of the one number zᵀBz.

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
        self.squares += float(before @ (y - self.mean))  # Welford: identical probes leave exactly zero
        self.size += (float(np.linalg.norm(Bz)) - self.size) / self.n

    @property
    def trace(self) -> float:
        return float(self.mean.sum())

    @property
    def stderr(self) -> float:
        return float(np.sqrt(2.0 * self.squares / (self.n - 1) / self.n))

    def half(self, delta: float, precision: float) -> float:
        """Half the width: c standard errors, and the rounding |zᵀ(error)| ≤ √p · precision · ‖Bz‖ of a product."""
        rounding = precision * float(np.sqrt(len(self.mean))) * self.size
        return multiplier(self.n, delta) * self.stderr + rounding

    def needed(self, target: float, delta: float) -> int:
        """The number of probes that brings the half width to `target`, with a fifth to spare."""
        n, scale = self.n, self.stderr * float(np.sqrt(self.n))
        if scale == 0.0:
            return 2
        if target <= 0.0:
            return 10**9
        for _ in range(5):  # the multiplier itself falls with n
            n = int(np.clip(1.2 * (multiplier(n, delta) * scale / target) ** 2, 2, 1e9))
        return n


def unit_trace(a: Operator) -> Estimate:
    """Σ_i e_iᵀAe_i: p products, exact up to their rounding."""
    e, diagonal = np.zeros(a.p), np.empty(a.p)
    for i in range(a.p):
        e[i] = 1.0
        diagonal[i] = a(e)[i]
        e[i] = 0.0
    return Estimate.exact(float(diagonal.sum()), matvecs=a.matvecs)


def probed_trace(
    a: Operator,
    rest: Callable[[Vector], Vector],
    known: float,
    *,
    first: int,
    rtol: float,
    delta: float,
    max_matvecs: int,
    keep: float,
    rng: np.random.Generator,
) -> tuple[Estimate, Probes]:
    """`known` + tr B for B given by `rest`, one product of a a probe, until the width is rtol |value|.

    Looks at `first` probes and then after each growth by half (see `looks`).
    """
    probes = Probes(a.p)
    for count, share in looks(first, max(first, max_matvecs - a.matvecs), delta, keep=keep):
        while probes.n < count:
            z = rademacher(a.p, rng)
            probes.add(z, rest(z))
        value, half = known + probes.trace, probes.half(share, a.precision)
        converged = 2.0 * half <= rtol * abs(value)
        if converged:
            break
    return Estimate(value, value - half, value + half, 1.0 - delta, a.matvecs, converged=converged), probes
