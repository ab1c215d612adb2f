"""λ_max of an operator that changes slowly, from the eigenvectors of the call before."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg._certify import certified
from steppe.linalg._lanczos import NOISE, Krylov, start
from steppe.linalg._operator import (
    Matrix,
    Matvec,
    Operator,
    Vector,
    dimension,
    outside,
    probability,
    project,
    tolerance,
)
from steppe.linalg._subspace import Joint, Subspace, blend, complement_upper, eigenvalue_upper

# A kept vector within this share of the leader may overtake it before the next call, and is multiplied.
REACH = 0.05

# A leader that lost this share of its value may have lost its place to a vector that was never seen.
FALL = 0.2

# Growth below this share of the growth before announces a fall.
SLOWS = 0.99

# The error of the Ritz value is estimated, not bounded: stop at this share of what was asked.
SAFETY = 0.3


@dataclass(frozen=True, eq=False)
class Tracker:
    """Follows λ_max along a trajectory: `estimate, tracker = tracker.measure(matvec)`, a pure step.

    Kept from call to call: the `keep` leading Ritz vectors with their values, the leader of the call before, and a
    `watch` vector orthogonal to them. A call multiplies the leader, those within 5% of what the leader has become, the
    second every other time and always where the growth slows down, and the leader before it where that is another
    direction; then it follows a Lanczos chain in their complement, one product at least, from the leader's residual
    with an admixture of a kept vector not multiplied, the watch and fresh noise, until the estimated error of the Ritz
    value is small for rtol: two or three products for an isolated leader, at most `max_matvecs`. Where the leader
    falls it takes all of them, one along the residual of the second, which is likely to lead next. Another eigenvector
    that overtakes is among the multiplied ones, or is found by the watch, a power iteration across the calls that the
    noise feeds: one that was never seen at all is found some calls late. The first call, and every call of `certify`,
    is the certified Lanczos of `largest`, warm-started.

    The interval of `measure` is honest about what so few products prove: a fresh random direction sees an
    unknown eigenvector with weight 1/p, so the upper end is far away and `converged` is False where `settled`,
    which speaks of the value, is True. `takeover` tells whether the leader is a new one, |⟨new, old⟩|² < 1/2.

    >>> tracker, d = Tracker(5, key=0), np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    >>> estimate, tracker = tracker.measure(lambda v: d * v)
    >>> estimate, tracker = tracker.measure(lambda v: (d + [0, 2, 0, 0, 0]) * v)
    >>> round(estimate.value, 2), tracker.takeover, estimate.matvecs <= 6
    (4.0, True, True)
    """

    p: int
    keep: int = 4
    rtol: float = 1e-3
    confidence: float = 0.99
    max_matvecs: int = 6
    cold_matvecs: int = 1000
    precision: float | None = None
    key: int = 0
    vectors: Matrix | None = field(default=None, repr=False)  # rows
    values: Vector | None = field(default=None, repr=False)
    watch: Vector | None = field(default=None, repr=False)
    before: Vector | None = field(default=None, repr=False)
    growth: float = math.nan  # since the call before; not known where there was none
    slows: bool = True
    calls: int = 0
    takeover: bool = False
    settled: bool = False
    fell: bool = False

    def __post_init__(self) -> None:
        dimension(self.p)
        tolerance(self.rtol)
        probability(self.confidence)
        check.integer("keep", self.keep, minimum=1)
        check.integer("max_matvecs", self.max_matvecs, minimum=3, remedy="The leader and a chain take three.")
        check.integer("cold_matvecs", self.cold_matvecs, minimum=1)
        check.integer("key", self.key, minimum=0, remedy="Pass an integer seed: each call mixes its number in.")

    @property
    def vector(self) -> Vector | None:
        """The leading Ritz vector, of unit norm."""
        return None if self.vectors is None else self.vectors[0]

    @property
    def _small(self) -> bool:
        """Whether few products are all there are."""
        return self.p <= self.max_matvecs

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.key, self.calls])

    def certify(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        """λ_max to an interval of relative width rtol, within `cold_matvecs` products."""
        estimate, chain = certified(
            matvec, self.p, signs=(1.0,), rtol=self.rtol, settle=None, confidence=self.confidence,
            max_matvecs=self.cold_matvecs, basis=max(32, 2 * self.keep), start=self.vector,
            precision=self.precision, key=self._rng(),
        )  # fmt: skip
        theta, S, _ = chain.ritz()
        vectors = S[:, ::-1][:, : self.keep].T @ chain.basis
        watch = outside(chain.onward(), vectors)
        after = self._after(theta[::-1][: self.keep], vectors, watch)
        return estimate, replace(after, settled=estimate.converged)

    def measure(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        """λ_max by a few products; the first call certifies."""
        if self.vectors is None or self.values is None or self._small:
            return self.certify(matvec)
        a, rng = Operator(matvec, self.p, self.precision), self._rng()
        fresh, kept, falls = self._multiplied(a)
        first = start(self.p, warm=self._warm(fresh, kept), against=fresh.rows, key=rng)
        joint = Joint(fresh, Krylov(a, first.vector[None], capacity=self.max_matvecs, against=fresh.rows))
        value, error, gain = self._followed(joint, a, rng, to_the_end=falls)
        estimate = self._estimate(joint, value, first.weight(0.5 * (1.0 - self.confidence)), a.matvecs)
        values, vectors = blend(joint, self.vectors[kept:], self.values[kept:], self.keep + 1)
        leading, dropped = vectors[: self.keep], vectors[self.keep :].sum(axis=0)
        after = self._after(values[: self.keep], leading, _watch(joint.chain, leading, dropped))
        # Fallen so far, or below all that was kept, that a vector never seen may lead.
        fell = value < max(self.values[0] - FALL * abs(self.values[0]), self.values[-1])
        # In a cluster the estimate, which divides by a gap, is far too large; the next product gains less than this.
        # Of a leader that is new it was seen half too small, and the gain says little of it.
        doubt = 2.0 * error if after.takeover else min(error, gain)
        return estimate, replace(after, fell=fell, settled=doubt <= self.rtol * abs(value) and not fell)

    def insist(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        """`measure`, and `certify` where its few products leave the value in doubt.

        Not more of the same: an estimate of the error that is small by accident would end that too early, by up to 1%
        of λ_max where eigenvalues crowd below 2/η.
        """
        estimate, after = self.measure(matvec)
        if after.settled or self.vectors is None or self._small:
            return estimate, after  # settled, or certified as well as it could be
        sure, after = after.certify(matvec)
        # The leader before this call, not that of its first part.
        return replace(sure, matvecs=estimate.matvecs + sure.matvecs), replace(after, before=self.vector)

    def _multiplied(self, a: Operator) -> tuple[Subspace, int, bool]:
        """The span of those that may lead, how many of the kept vectors are in it, and whether the leader falls."""
        assert self.vectors is not None
        assert self.values is not None
        kept = self._near(float(self.values[0]))
        fresh = Subspace.multiplied(a, self._with_before(self.vectors[:kept]))
        fresh = fresh.ritz(len(fresh.rows))
        falls = float(fresh.values[0]) < self.values[0] - self.rtol * abs(self.values[0])
        while kept < self._near(float(fresh.values[0])):
            fresh, kept = self._with(fresh, a, self.vectors[kept]), kept + 1
        if falls and 1 < len(fresh.rows) <= self.max_matvecs - 3:
            # Another one is about to lead: without its own residual it is known to no better than the last time.
            fresh = self._with(fresh, a, fresh.residuals[1])
        return fresh, kept, falls

    def _followed(
        self, joint: Joint, a: Operator, rng: np.random.Generator, *, to_the_end: bool
    ) -> tuple[float, float, float]:
        """Grows the chain until the leading Ritz value is good enough; that value, its estimated error and the gain of
        the last product."""
        chain, count, value = joint.chain, len(joint.known.rows), float(joint.known.values[0])
        while True:
            joint.grow(rng)
            found = joint.projection(chain.size).ritz(count + chain.size)
            value, gain = float(found.values[0]), float(found.values[0]) - value
            # Were the next Ritz value all there is outside the first few, λ_max would be at most this; see ritz_error
            # for the width of gap that is believed.
            below = max(float(found.values[count]), value - abs(value))
            error = eigenvalue_upper(0, found.ritz(count), below) - value
            enough = error <= max(SAFETY * self.rtol * abs(value), joint.error) and not to_the_end
            if enough or chain.broken or a.matvecs >= self.max_matvecs:
                return value, error, gain

    def _estimate(self, joint: Joint, value: float, weight: float, matvecs: int) -> Estimate:
        """With the interval that the chain's random part, of this `weight`, proves."""
        sigma = complement_upper(joint.chain, weight)
        bound = min(eigenvalue_upper(0, joint.projection(n), sigma) for n in range(joint.chain.size + 1))
        lower, upper = value - joint.error, max(value, bound) + joint.error
        return Estimate(
            value, lower, upper, self.confidence, matvecs, converged=upper - lower <= self.rtol * abs(value)
        )

    def _with_before(self, rows: Matrix) -> Matrix:
        """The rows and, where it lies outside them enough to matter, the leader of the call before the last.

        A trajectory at the edge of stability swings to and fro, so that leader is often the nearer one; and where it
        drifts, the two of them span the direction of the drift.
        """
        if self.before is None or len(rows) > self.max_matvecs - 3:
            return rows
        left = project(self.before, rows)
        return np.vstack([rows, left]) if left @ left > SAFETY * self.rtol else rows

    def _with(self, fresh: Subspace, a: Operator, row: Vector) -> Subspace:
        """With another direction multiplied too, unless what is known has told all of it."""
        left = project(row, fresh.rows)
        told = left @ left <= SAFETY * self.rtol * (row @ row)
        return fresh if told else fresh.extended(a, left).ritz(len(fresh.rows) + 1)

    def _near(self, leader: float) -> int:
        """How many of the kept vectors may lead where the leader has this value, as far as products allow."""
        assert self.values is not None
        near = int((self.values >= leader - REACH * abs(leader)).sum())
        # The second is what leads where the leader falls, and has to be known by then.
        least = 2 if self.slows or self.calls % 2 else 1
        return min(max(least, near), self.max_matvecs - 2, len(self.values))

    def _warm(self, fresh: Subspace, count: int) -> Vector:
        """Where the chain looks: along the leader's residual as far as that matters for the accuracy; for the rest
        along the residuals of the others, the watch and, in turn, the kept vectors not multiplied."""
        # ‖r‖²/|θ| is the error that a residual may leave; see ritz_error.
        matters = max(float(np.sqrt(SAFETY * self.rtol)) * abs(float(fresh.values[0])), fresh.error, 1e-300)
        sizes = np.linalg.norm(fresh.residuals, axis=1)
        shares = np.minimum(1.0, sizes / matters) / np.maximum(sizes, 1e-300)
        aside = shares[1:] @ fresh.residuals[1:]
        if self.vectors is not None and len(self.vectors) > count:
            aside = aside + self.vectors[count + self.calls % (len(self.vectors) - count)]
        if self.watch is not None:
            aside = aside + self.watch
        aside = aside / max(float(np.linalg.norm(aside)), 1e-300)
        warm: Vector = shares[0] * fresh.residuals[0] + max(NOISE, 1.0 - sizes[0] / matters) * aside
        return warm

    def _after(self, values: Vector, vectors: Matrix, watch: Vector | None) -> "Tracker":
        takeover = self.vectors is not None and float(self.vectors[0] @ vectors[0]) ** 2 < 0.5
        growth = math.nan if self.values is None else float(values[0] - self.values[0])
        slows = not (growth >= SLOWS * self.growth and growth >= 0.0)  # so too where it is not known
        return replace(
            self, values=values, growth=growth, slows=slows, vectors=vectors, watch=watch, before=self.vector,
            calls=self.calls + 1, takeover=takeover, settled=False, fell=False,
        )  # fmt: skip


def _watch(chain: Krylov, leading: Matrix, dropped: Vector) -> Vector:
    """A step of the power iteration that runs across calls in the complement of what is kept, and the vector that
    just missed being kept, with the same sign."""
    watch = outside(chain.onward(), leading)
    watch = watch + np.copysign(1.0, watch @ dropped) * dropped
    return watch / max(float(np.linalg.norm(watch)), 1e-300)
