"""XTrace: every probe serves the sketch of all the others and the estimate of the rest."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import Matrix, Vector, dimension, generator, probability, tolerance
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.probes import sphere
from steppe.linalg.probing import FEW, unit_trace
from steppe.linalg.spread import fewest, looks, multiplier

# Groups of the jackknife: it costs this many eliminations of size n, and Student's quantile hardly falls beyond.
GROUPS = 32


@dataclass(frozen=True, eq=False)
class Compressed:
    """Probes Ω (columns), AΩ = QR and Z = AQ, in the n coordinates of Q: H = QᵀZ, W = QᵀΩ, T = ZᵀΩ, |ω_i|²."""

    p: int
    R: Matrix
    H: Matrix
    W: Matrix
    T: Matrix
    lengths: Vector

    def estimates(self) -> Vector:
        """The n exchangeable estimates. Without probe i the sketch is Q_i, Q_iQ_iᵀ = Q(I − s_is_iᵀ)Qᵀ with s_i the
        normalised i-th column of R⁻ᵀ, and

            t_i = tr(Q_iᵀAQ_i) + (p − n + 1) ω̃ᵀAω̃/ω̃ᵀω̃,   ω̃ = (I − Q_iQ_iᵀ)ω_i.
        """
        n = len(self.H)
        S = np.linalg.solve(self.R.T, np.eye(n))
        S /= np.linalg.norm(S, axis=0)
        inside = self.W - S * (S * self.W).sum(axis=0)  # Q_iᵀω_i in the basis Q
        kept = np.trace(self.H) - (S * (self.H @ S)).sum(axis=0)
        # ω̃ᵀAω̃ = ωᵀAω − 2 w̃ᵀZᵀω + w̃ᵀHw̃, and ωᵀAω = ωᵀQR.
        rest = (self.W * self.R).sum(axis=0) + (inside * (self.H @ inside - 2.0 * self.T)).sum(axis=0)
        result: Vector = kept + (self.p - n + 1) * rest / (self.lengths - (inside**2).sum(axis=0))
        return result

    def without(self, gone: np.ndarray) -> "Compressed":
        """The same with some probes never drawn; no product."""
        stay = np.delete(np.arange(len(self.H)), gone)
        q, r = np.linalg.qr(self.R[:, stay])
        return Compressed(self.p, r, q.T @ self.H @ q, q.T @ self.W[:, stay], q.T @ self.T[:, stay], self.lengths[stay])

    def stderr(self) -> tuple[float, int]:
        """A standard error of the mean of the estimates that is not too small on average, and its groups.

        The t_i share their sketches: they are correlated, and Σ(t_i − t)²/(n(n − 1)), as published, is too small (at
        99% it missed 7% of the time on a spectrum with ten outliers). The jackknife over groups of probes is not:
        Var f ≤ E Σ_g (f₍g₎ − f₍·₎)² for any symmetric f of independent groups (Efron and Stein 1981).
        """
        groups = np.array_split(np.arange(len(self.H)), min(GROUPS, len(self.H)))
        means = np.array([self.without(group).estimates().mean() for group in groups])
        return float(np.sqrt(((means - means.mean()) ** 2).sum())), len(groups)


class Gathered:
    """The probes so far, their products, and the products of the orthonormal basis of those."""

    def __init__(self, a: Operator) -> None:
        self.a = a
        self.Om, self.Y, self.Q, self.Z = (np.empty((0, a.p)) for _ in range(4))

    def grow(self, n: int, rng: np.random.Generator) -> None:
        """n probes in all. Gram-Schmidt keeps the older part of Q, and so its products."""
        new = np.stack([sphere(self.a.p, rng) for _ in range(n - len(self.Om))])
        product = np.stack([self.a(w) for w in new])
        self.Om, self.Y = np.vstack([self.Om, new]), np.vstack([self.Y, product])
        for _ in range(2):
            product = product - (product @ self.Q.T) @ self.Q
            product = np.linalg.qr(product.T)[0].T
        self.Q = np.vstack([self.Q, product])

    @property
    def floor(self) -> float:
        """Below it the products cannot tell a direction of the range from their own rounding."""
        return self.a.precision * float(np.linalg.norm(self.Y))

    @property
    def rounding(self) -> float:
        """|ωᵀ(error)| ≤ √p · precision · ‖Aω‖."""
        return self.a.precision * float(np.sqrt(self.a.p) * np.linalg.norm(self.Y, axis=1).mean())

    @property
    def triangle(self) -> Matrix:
        """R = QᵀY."""
        return self.Q @ self.Y.T

    def compressed(self) -> Compressed:
        self.Z = np.vstack([self.Z, *(self.a(q)[None] for q in self.Q[len(self.Z) :])])
        Q, Om, Z = self.Q, self.Om, self.Z
        return Compressed(self.a.p, self.triangle, Q @ Z.T, Q @ Om.T, Z @ Om.T, (Om**2).sum(axis=1))


def xtrace(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    memory: float | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A as the mean of n exchangeable Hutch++ estimates, each with one probe for the rest; 2n products.

    The interval is c jackknife standard errors to either side, c as for as many independent probes (see
    `multiplier`). More probes are added, at numbers fixed in advance (see `looks`), until its width is
    rtol |tr A|. An operator of rank < n is exact up to rounding; p products of unit vectors are taken where
    that is no dearer. Holds four vectors of length p a probe: as many probes as `memory` has room for, in bytes, but
    not fewer than an interval needs.

    >>> u = np.arange(1.0, 51.0)
    >>> round(xtrace(lambda v: u * (u @ v), 50, key=0).value, 6)   # 1² + … + 50²
    42925.0

    Epperly, Tropp and Webber 2024, XTrace: making the most of every sample in stochastic trace estimation.
    """
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    few = fewest(0.5 * delta)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=min(p, 2 * few), remedy=FEW)
    most = max_matvecs // 2
    if memory is not None:
        room = check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, or None for no bound.")
        most = min(most, int(room // (4 * 8 * p)))
    rng, a = generator(key), Operator(matvec, p, precision)
    seen = Gathered(a)
    for n, share in looks(few, max(few, most), delta, keep=0.5):
        if p <= 2 * n and a.matvecs + p <= max_matvecs:
            return unit_trace(a)
        seen.grow(min(n, p - 1), rng)
        U, s, _ = np.linalg.svd(seen.triangle)
        if s[-1] <= seen.floor:
            # The range of A is spanned by fewer probes than were taken: tr A = tr(QᵀAQ).
            rows = U[:, s > seen.floor].T @ seen.Q
            value, half, confidence = float(sum(v @ a(v) for v in rows)), seen.rounding, 1.0
        else:
            small = seen.compressed()
            value, (stderr, groups) = float(small.estimates().mean()), small.stderr()
            half = multiplier(groups, share) * stderr + seen.rounding
        converged = 2.0 * half <= rtol * abs(value)
        if converged or confidence == 1.0 or len(seen.Om) == p - 1:
            break
    return Estimate(value, value - half, value + half, confidence, a.matvecs, converged=converged)
