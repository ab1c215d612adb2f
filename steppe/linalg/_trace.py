"""Trace and diagonal from random probes: Hutchinson, Hutch++, XTrace."""

from dataclasses import dataclass, replace

import numpy as np

from steppe import check
from steppe._result import Rows
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._operator import Matrix, Matvec, Operator, Vector, dimension, generator
from steppe.linalg._probes import (
    FEW,
    Probes,
    fewest,
    looks,
    multiplier,
    probed_trace,
    rademacher,
    sphere,
    unit_diagonal,
    unit_trace,
)

# The accuracy of a trace unless the caller states another one.
TRACE = Accuracy(0.05)

# Groups of the jackknife: it costs this many eliminations of size n. With more groups Student's quantile falls little.
GROUPS = 32


def hutchinson(
    matvec: Matvec,
    p: int,
    *,
    accuracy: Accuracy = TRACE,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A = E zᵀAz over sign vectors z, with variance 2 Σ_{i≠j} A_ij² for each probe (Girard, Hutchinson).

    Two stages (Stein 1945): a pilot estimates how many probes the width rtol |tr A| needs; fresh probes then give the
    mean and the interval, c standard errors to either side (see `multiplier`), so that the choice of their
    number does not bias the mean. If p products of unit vectors cost no more, they replace the probes: exact up to
    rounding.

    >>> hutchinson(lambda v: np.array([1.0, 2.0, 3.0]) * v, 3, key=0).value
    6.0

    Hutchinson 1990.
    """
    Accuracy.expected(accuracy)
    p, few = dimension(p), fewest(0.1 * accuracy.delta)
    max_matvecs = check.integer("max_matvecs", accuracy.max_matvecs, minimum=min(p, few), remedy=FEW)
    rng, a = generator(key), Operator(matvec, p, precision)
    if p <= few:
        return unit_trace(a)
    # A tenth of δ for stopping at the pilot, the rest for the fresh probes.
    pilot, probes = probed_trace(
        a, a, 0.0, first=few, last=few, accuracy=accuracy, delta=0.1 * accuracy.delta, keep=0.0, rng=rng
    )
    left = max_matvecs - a.matvecs
    if pilot.converged or left < few:
        return pilot
    n = max(few, probes.needed(0.5 * accuracy.rtol * abs(pilot.value), 0.6 * accuracy.delta))
    if p <= min(n, left):
        return unit_trace(a)
    estimate, _ = probed_trace(
        a, a, 0.0, first=min(n, left), last=left, accuracy=accuracy, delta=0.9 * accuracy.delta, keep=1 / 3, rng=rng
    )
    return estimate


class Sketch:
    """Q (rows, orthonormal) near the leading range of A, and Z = A Q: tr A = tr(QᵀAQ) + tr(PAP), P = I − QQᵀ."""

    def __init__(self, a: Operator) -> None:
        self.a = a
        self.Q: Matrix = np.empty((0, a.p))
        self.Z: Matrix = np.empty((0, a.p))

    @property
    def trace(self) -> float:
        return float((self.Q * self.Z).sum())

    def grow(self, count: int, rng: np.random.Generator) -> None:
        """Up to `count` more directions, two products each; no more than the range of A has."""
        Y = np.stack([self.a(rademacher(self.a.p, rng)) for _ in range(count)])
        scale = float(np.linalg.norm(Y, axis=1).max())
        for _ in range(2):
            Y = Y - (Y @ self.Q.T) @ self.Q
        _, s, Vt = np.linalg.svd(Y, full_matrices=False)
        new = Vt[s > self.a.precision * np.sqrt(count) * scale]
        self.Q = np.vstack([self.Q, new])
        self.Z = np.vstack([self.Z, *(self.a(q)[None] for q in new)])

    def project(self, v: Vector) -> Vector:
        return v - (self.Q @ v) @ self.Q

    def rest(self, z: Vector, Az: Vector | None = None) -> Vector:
        """PAPz; without a product if Az is known."""
        return self.project(self.a(self.project(z)) if Az is None else Az - (self.Q @ z) @ self.Z)


def hutchpp(
    matvec: Matvec,
    p: int,
    *,
    accuracy: Accuracy = TRACE,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A = tr(QᵀAQ) + E zᵀPAPz, Q an orthonormal basis of AΩ for random Ω, P = I − QQᵀ: Hutch++.

    The sketch Q doubles as long as a pilot, which reuses its products, predicts fewer products in all; then fresh
    probes estimate the rest as in `hutchinson`, with the same interval, valid given Q. Needs O(1/ε) products
    (Hutchinson: O(1/ε²)), and holds two vectors of length p for each direction.

    >>> u = np.arange(1.0, 51.0)   # rank one: the sketch holds everything
    >>> round(hutchpp(lambda v: u * (u @ v), 50, key=0).value, 6)   # 1² + … + 50²
    42925.0

    Meyer, Musco, Musco and Woodruff 2021; choice of the sketch after Persson, Cortinovis and Kressner 2022.
    """
    Accuracy.expected(accuracy)
    p, rtol, few = dimension(p), accuracy.rtol, fewest(0.1 * accuracy.delta)
    max_matvecs = check.integer("max_matvecs", accuracy.max_matvecs, minimum=min(p, 2 * few), remedy=FEW)
    rng, a = generator(key), Operator(matvec, p, precision)
    if p <= 2 * few:
        return unit_trace(a)
    sketch = Sketch(a)
    pilot = [(z, a(z)) for z in (rademacher(p, rng) for _ in range(few))]
    best = np.inf
    while True:
        probes = Probes(p)
        for z, Az in pilot:
            probes.add(z, sketch.rest(z, Az))
        n = max(few, probes.needed(0.5 * rtol * abs(sketch.trace + probes.trace), 0.6 * accuracy.delta))
        more = max(4, len(sketch.Q))
        # A larger sketch pays if it saves more probes than it costs; n at best halves when the sketch doubles.
        if n <= 4 * more or 1.5 * n > best or a.matvecs + 2 * more + few > max_matvecs:
            break
        best = n
        if 2 * more + len(sketch.Q) >= p:
            break
        sketch.grow(more, rng)
    left = max_matvecs - a.matvecs
    if p <= min(n, left):
        return unit_trace(a)
    estimate, _ = probed_trace(
        a, sketch.rest, sketch.trace, first=min(n, left), last=left, accuracy=accuracy, delta=accuracy.delta,
        keep=1 / 3, rng=rng,
    )  # fmt: skip
    # The rounding of the sketch itself, as in Probes.half.
    rounding = a.precision * float(np.linalg.norm(sketch.Z, axis=1).sum())
    lower, upper = estimate.lower - rounding, estimate.upper + rounding
    converged = upper - lower <= rtol * abs(estimate.value)
    return replace(estimate, lower=lower, upper=upper, converged=converged)


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
        """The same as if some probes had never been drawn; no product."""
        stay = np.delete(np.arange(len(self.H)), gone)
        q, r = np.linalg.qr(self.R[:, stay])
        return Compressed(self.p, r, q.T @ self.H @ q, q.T @ self.W[:, stay], q.T @ self.T[:, stay], self.lengths[stay])

    def stderr(self) -> tuple[float, int]:
        """A standard error of the mean of the estimates that is not too small on average, and its number of groups.

        The t_i share their sketches: they are correlated, and the published Σ(t_i − t)²/(n(n − 1)) is too small (the
        interval at 99% missed 7% of the time on a spectrum with ten outliers). The jackknife over groups is not:
        Var f ≤ E Σ_g (f₍g₎ − f₍·₎)² for any symmetric f of independent groups (Efron and Stein 1981).
        """
        groups = np.array_split(np.arange(len(self.H)), min(GROUPS, len(self.H)))
        means = np.array([self.without(group).estimates().mean() for group in groups])
        return float(np.sqrt(((means - means.mean()) ** 2).sum())), len(groups)


class Gathered:
    """The probes Ω so far, their products Y = AΩ, an orthonormal basis Q of these, and Z = AQ; all as rows."""

    def __init__(self, a: Operator) -> None:
        self.a = a
        self.Om, self.Y, self.Q, self.Z = (np.empty((0, a.p)) for _ in range(4))

    def grow(self, n: int, rng: np.random.Generator) -> None:
        """Draws probes until there are n. Gram-Schmidt keeps the older part of Q, and so its products."""
        new = np.stack([sphere(self.a.p, rng) for _ in range(n - len(self.Om))])
        product = np.stack([self.a(w) for w in new])
        self.Om, self.Y = np.vstack([self.Om, new]), np.vstack([self.Y, product])
        for _ in range(2):
            product = product - (product @ self.Q.T) @ self.Q
            product = np.linalg.qr(product.T)[0].T
        self.Q = np.vstack([self.Q, product])

    @property
    def floor(self) -> float:
        """A smaller singular value of Y may be rounding, not a direction of the range of A."""
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
    accuracy: Accuracy = TRACE,
    memory: float | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A as the mean of n exchangeable Hutch++ estimates, each with one probe for the rest; 2n products.

    Every probe serves the sketch of all other probes and the estimate of its own rest. The interval is c jackknife
    standard errors to either side, c as for n independent probes (see `multiplier`). n grows, through numbers fixed in
    advance (see `looks`), until the width is rtol |tr A|. For an operator of rank < n only rounding is left; if p
    products of unit vectors cost no more, they replace the probes. Holds four vectors of length p for each probe, and
    at most `memory` bytes of them, but never fewer probes than an interval needs.

    >>> u = np.arange(1.0, 51.0)
    >>> round(xtrace(lambda v: u * (u @ v), 50, key=0).value, 6)   # 1² + … + 50²
    42925.0

    Epperly, Tropp and Webber 2024, XTrace: making the most of every sample in stochastic trace estimation.
    """
    Accuracy.expected(accuracy)
    p, few, spanned = dimension(p), fewest(0.5 * accuracy.delta), False
    max_matvecs = check.integer("max_matvecs", accuracy.max_matvecs, minimum=min(p, 2 * few), remedy=FEW)
    most = max_matvecs // 2
    if memory is not None:
        room = check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, or None for no bound.")
        most = min(most, int(room // (4 * 8 * p)))
    rng, a = generator(key), Operator(matvec, p, precision)
    seen = Gathered(a)
    for n, share in looks(few, max(few, most), accuracy.delta, keep=0.5):
        if p <= 2 * n and a.matvecs + p <= max_matvecs:
            return unit_trace(a)
        seen.grow(min(n, p - 1), rng)
        U, s, _ = np.linalg.svd(seen.triangle)
        if s[-1] <= seen.floor:
            # The products span the range of A, but for a part B that is no larger than their rounding:
            # tr A = tr(QᵀAQ) + tr B, |tr B| ≤ √p ‖B‖_F, and ‖B‖_F ≈ ‖Bω‖ ≤ floor; twice that for the luck of ω.
            rows, spanned = U[:, s > seen.floor].T @ seen.Q, True
            value, half = float(sum(v @ a(v) for v in rows)), seen.rounding + 2.0 * float(np.sqrt(p)) * seen.floor
        else:
            small = seen.compressed()
            value, (stderr, groups) = float(small.estimates().mean()), small.stderr()
            half = multiplier(groups, share) * stderr + seen.rounding
        converged = 2.0 * half <= accuracy.rtol * abs(value)
        if converged or spanned or len(seen.Om) == p - 1:
            break
    return Estimate(value, value - half, value + half, accuracy.confidence, a.matvecs, converged=converged)


@dataclass(frozen=True, eq=False, repr=False)
class Diagonal(Rows, index="entry", columns=("value", "stderr")):
    """diag A with the standard error of each entry; `converged` says whether ‖stderr‖ ≤ rtol ‖value‖."""

    value: Vector
    stderr: Vector
    matvecs: int
    converged: bool


def diagonal(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 0.1,
    max_matvecs: int = 1000,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Diagonal:
    """diag A = E z ∘ Az over sign vectors z; one probe gives entry i with variance Σ_{j≠i} A_ij².

    Stops when ‖stderr‖ ≤ rtol ‖value‖, at the latest after `max_matvecs` products. If p products of unit vectors
    cost no more, they replace the probes: exact, with stderr 0. A diagonal operator is exact after any probe.

    >>> d = np.array([1.0, 2.0, 3.0])
    >>> diagonal(lambda v: d * v, 3, key=0).value.tolist()
    [1.0, 2.0, 3.0]

    Bekas, Kokiopoulou and Saad 2007.
    """
    p = dimension(p)
    rtol = check.number("rtol", rtol, above=0.0, remedy="Pass the relative standard error, for instance 0.1.")
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=2, remedy="A spread takes two probes.")
    rng, a = generator(key), Operator(matvec, p, precision)
    mean, squares, n = np.zeros(p), np.zeros(p), 0
    next_look = 8
    while p > next_look or p > max_matvecs - a.matvecs:
        for _ in range(min(next_look, max_matvecs) - n):
            z = rademacher(p, rng)
            y = z * a(z)
            n += 1
            before = y - mean
            mean += before / n
            squares += before * (y - mean)
        stderr = np.sqrt(squares / (n - 1) / n)
        converged = bool(np.linalg.norm(stderr) <= rtol * np.linalg.norm(mean))
        if converged or n == max_matvecs:
            return Diagonal(mean, stderr, a.matvecs, converged)
        # ‖stderr‖ falls as 1/√n: predict n, but look again before n has grown by more than 1.5².
        ratio = float(np.linalg.norm(stderr)) / max(rtol * float(np.linalg.norm(mean)), 1e-300)
        next_look = n + 1 + int(n * (min(ratio, 1.5) ** 2 - 1.0))
    return Diagonal(unit_diagonal(a), np.zeros(p), a.matvecs, True)
