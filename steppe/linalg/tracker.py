"""λ_max of an operator that changes slowly, from the eigenvectors of the call before."""

from dataclasses import dataclass, field, replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import Matrix, Vector, dimension, probability, tolerance
from steppe.linalg.block import RitzPairs, ritz_pairs
from steppe.linalg.deflation import Deflated, complement_upper, eigenvalue_upper
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.start import NOISE, start


@dataclass(frozen=True, eq=False)
class Tracker:
    """Follows λ_max along a trajectory: `estimate, tracker = tracker.measure(matvec)`, one pure step a call.

    Kept between calls: Y, the `keep` leading Ritz vectors, and `watch`, the next vector of the last chain. A
    call multiplies Y, then follows a Lanczos chain in its complement from (residual of the leader) + watch +
    fresh noise, all normalised, until the estimated error of the Ritz value over [Y, chain] is below
    rtol |θ|, at most `max_matvecs` products. A second eigenvector that grows past the first is in Y already; one that
    Y has no component in enters through the noise, and the watch amplifies it from call to call, a power
    iteration that costs nothing.

    The interval is honest about what a handful of products can prove: below the Ritz value, above the bound of
    `eigenvalue_upper` with σ from the chain's random part. It is wide (often several percent) where the value is accurate to
    rtol, so `estimate.converged`, which speaks of the interval, is mostly False; `settled` speaks of the value. A call to
    `largest(..., start=tracker.vector)` certifies to any width.

    `takeover` is True after a call whose leading vector is nearer to being orthogonal to the previous one than
    parallel, |⟨new, old⟩|² < 1/2.

    >>> tracker, d = Tracker(5, key=0), np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    >>> estimate, tracker = tracker.measure(lambda v: d * v)
    >>> estimate, tracker = tracker.measure(lambda v: (d + [0, 2, 0, 0, 0]) * v)
    >>> round(estimate.value, 2), tracker.takeover, estimate.matvecs <= 6
    (4.0, True, True)
    """

    p: int
    keep: int = 2
    rtol: float = 1e-3
    confidence: float = 0.99
    max_matvecs: int = 6
    cold_matvecs: int = 200
    precision: float | None = None
    key: int = 0
    vectors: Matrix | None = field(default=None, repr=False)
    watch: Vector | None = field(default=None, repr=False)
    calls: int = 0
    takeover: bool = False
    settled: bool = False

    def __post_init__(self) -> None:
        dimension(self.p), tolerance(self.rtol), probability(self.confidence)
        check.integer("key", self.key, minimum=0, remedy="Pass an integer seed: it is mixed with the call number.")
        check.integer("keep", self.keep, minimum=1)
        remedy = "A call multiplies the kept vectors and at least one more."
        check.integer("max_matvecs", self.max_matvecs, minimum=self.keep + 1, remedy=remedy)

    @property
    def vector(self) -> Vector | None:
        return None if self.vectors is None else self.vectors[0]

    def measure(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        a = Operator(matvec, self.p, self.precision)
        rng = np.random.default_rng([self.key, self.calls])
        keep = min(self.keep, self.p)
        if self.vectors is None:
            pairs = ritz_pairs(
                a, keep, block=1, rtol=self.rtol, max_matvecs=self.cold_matvecs, basis=max(32, 2 * keep), key=rng
            )
        else:
            pairs = _project(a, self.vectors)
        if pairs.exhausted or len(pairs.vectors) == self.p:
            value, error = float(pairs.values[0]), pairs.error
            estimate = Estimate(value, value - error, value + error, 1.0, a.matvecs,
                                converged=2 * error <= self.rtol * abs(value))
            return estimate, self._after(pairs, None, True)
        residual = pairs.residuals[0]
        warm = np.zeros(self.p)
        size = float(np.linalg.norm(residual))
        if size > pairs.error:
            warm += residual / size
        if self.watch is not None:
            warm += NOISE * self.watch
        first = start(self.p, warm=warm if warm.any() else None, against=pairs.vectors, key=rng)
        budget = max(self.max_matvecs, a.matvecs + 1)
        chain = Krylov(a, first.vector[None], capacity=min(budget, self.p - keep), against=pairs.vectors)
        while True:
            chain.expand(rng)
            joint = Deflated(pairs.vectors, pairs.H, pairs.residuals, chain, chain.size)
            values, vectors, residuals = joint.ritz(min(keep + 1, len(joint.rows)))
            size = float(np.linalg.norm(residuals[0]))
            gap = float(values[0] - values[1])
            error = size * min(1.0, size / gap) if gap > 0 else size
            settled = error <= self.rtol * abs(values[0])
            if settled or chain.exhausted or chain.broken or a.matvecs >= budget:
                break
        sigma = complement_upper(chain, first.weight(0.5 * (1.0 - self.confidence)))
        bounds = []
        for n in range(chain.size + 1):
            joint_n = Deflated(pairs.vectors, pairs.H, pairs.residuals, chain, n)
            bounds.append(eigenvalue_upper(0, joint_n.H, joint_n.gram(), sigma))
        value, pad = float(values[0]), pairs.error + chain.rounding
        lower, upper = value - pad, max(value, min(bounds)) + pad
        estimate = Estimate(value, lower, upper, self.confidence, a.matvecs,
                            converged=bool(upper - lower <= self.rtol * abs(value)))
        new = RitzPairs(values[:keep], vectors[:keep], residuals[:keep], pad, chain.exhausted)
        return estimate, self._after(new, chain.next[0].copy() if len(chain.next) else None, settled)

    def _after(self, pairs: RitzPairs, watch: Vector | None, settled: bool) -> "Tracker":
        takeover = self.vectors is not None and float(self.vectors[0] @ pairs.vectors[0]) ** 2 < 0.5
        return replace(self, vectors=pairs.vectors, watch=watch, calls=self.calls + 1, takeover=takeover, settled=settled)


def _project(a: Operator, rows: Matrix) -> RitzPairs:
    """Rayleigh-Ritz on given rows: one product each."""
    Y = np.linalg.qr(rows.T)[0].T
    W = np.stack([a(y) for y in Y])
    H = 0.5 * (W @ Y.T + Y @ W.T)
    scale = float(np.linalg.norm(W, axis=1).max())
    skew = float(np.linalg.norm(W @ Y.T - H))
    a.asymmetric(skew, scale)
    theta, S = np.linalg.eigh(H)
    T = S[:, ::-1].T
    error = 2.0 * np.sqrt(len(Y)) * a.precision * scale + skew
    vectors = T @ Y
    residuals = T @ W - theta[::-1, None] * vectors
    residuals -= (residuals @ vectors.T) @ vectors
    return RitzPairs(theta[::-1], vectors, residuals, error, len(Y) == a.p)
