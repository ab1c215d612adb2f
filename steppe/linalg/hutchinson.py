"""Girard-Hutchinson trace estimator with signs."""

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import dimension, generator, probability, tolerance
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.probes import rademacher
from steppe.linalg.spread import fewest, looks, multiplier


class Probes:
    """Running mean and spread of y = z ∘ Bz over sign vectors z, for symmetric B.

    E y = diag B and Σ_i Var y_i = Σ_{i≠j} B_ij², so twice that is Var zᵀBz (Avron and Toledo 2011, Lemma 9).
    The spread of p numbers a probe is a far steadier estimate of the variance than that of the one number zᵀBz.

    >>> probes = Probes(2)
    >>> for z in ([1.0, 1.0], [1.0, -1.0]): probes.add(np.array(z), np.array(z)[::-1])   # B = [[0, 1], [1, 0]]
    >>> probes.trace, probes.stderr ** 2   # Var zᵀBz = 4, of two probes 2; unbiased on average over all pairs
    (0.0, 4.0)
    """

    def __init__(self, p: int) -> None:
        self.n = 0
        self.mean = np.zeros(p)
        self.squares = 0.0
        self.size = 0.0

    def add(self, z: np.ndarray, Bz: np.ndarray) -> None:
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
        """Half the width of the interval: c standard errors, and the rounding |zᵀ(error)| ≤ √p · precision · ‖Bz‖."""
        rounding = precision * float(np.sqrt(len(self.mean))) * self.size
        return multiplier(self.n, delta) * self.stderr + rounding


def unit_trace(a: Operator) -> Estimate:
    """Σ_i e_iᵀAe_i: p products, exact up to their rounding."""
    e = np.zeros(a.p)
    total = []
    for i in range(a.p):
        e[i] = 1.0
        total.append(a(e)[i])
        e[i] = 0.0
    return Estimate.exact(float(np.sum(total)), matvecs=a.matvecs)


def needed(probes: Probes, target: float, delta: float) -> int:
    """The number of probes that brings the half width to `target`, with a fifth to spare."""
    scale = probes.stderr * np.sqrt(probes.n)
    n = probes.n
    for _ in range(5):  # the multiplier itself falls with n
        n = int(min(max(2, np.ceil(1.2 * (multiplier(n, delta) * scale / target) ** 2)), 1e9)) if target > 0 else 10**9
    return n


def hutchinson(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A = E zᵀAz over sign vectors z, with variance 2 Σ_{i≠j} A_ij² a probe.

    Two stages (Stein 1945): a pilot tells how many probes the width rtol |tr A| takes; fresh ones then give the
    mean and the interval, c standard errors to either side (see `multiplier`), so that the choice of their
    number does not bias it. p products of unit vectors are taken instead where that is no dearer: exact up to
    rounding. `converged` is False where `max_matvecs` ended it.

    >>> hutchinson(lambda v: np.diag([1.0, 2.0, 3.0]) @ v, 3, key=0).value
    6.0

    Hutchinson 1990.
    """
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    first = fewest(0.1 * delta)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=min(p, first), remedy=_FEW)
    rng, a = generator(key), Operator(matvec, p, precision)
    if p <= first:
        return unit_trace(a)
    pilot = Probes(p)
    for _ in range(first):
        z = rademacher(p, rng)
        pilot.add(z, a(z))
    estimate = summary(pilot, a, 0.0, rtol=rtol, delta=0.1 * delta)
    if estimate.converged or max_matvecs - a.matvecs < first:
        return estimate
    n = needed(pilot, 0.5 * rtol * abs(pilot.trace), 0.6 * delta)
    if p <= min(n, max_matvecs - a.matvecs):
        return unit_trace(a)
    main = Probes(p)
    for count, share in looks(max(first, n), max_matvecs - a.matvecs, 0.9 * delta, keep=1 / 3):
        while main.n < count:
            z = rademacher(p, rng)
            main.add(z, a(z))
        estimate = summary(main, a, 0.0, rtol=rtol, delta=share)
        if estimate.converged:
            break
    return estimate


_FEW = "Fewer probes cannot carry an interval of that confidence."


def summary(probes: Probes, a: Operator, offset: float, *, rtol: float, delta: float) -> Estimate:
    """offset + tr B with its interval at confidence 1 − δ; `offset` is a part of the trace known without error."""
    value, half = offset + probes.trace, probes.half(delta, a.precision)
    return Estimate(
        value, value - half, value + half, 1.0 - delta, a.matvecs, converged=2.0 * half <= rtol * abs(value)
    )
