"""λ_max of an operator that changes slowly, from the eigenvectors of the previous call."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from steppe import check
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._extreme import EIGENVALUE, certified
from steppe.linalg._lanczos import NOISE, Krylov, start
from steppe.linalg._operator import Matrix, Matvec, Operator, Vector, dimension, outside, project
from steppe.linalg._subspace import Joint, Subspace, blend, complement_upper, eigenvalue_upper

# A kept vector within this share of the leader may overtake it before the next call, so each call multiplies it.
REACH = 0.05

# If the leader has lost this share of its value, a vector that no call has seen may lead now.
FALL = 0.2

# If the growth is below this share of the previous growth, a fall is near.
SLOWS = 0.99

# The error of the Ritz value is estimated, not bounded: stop at this share of the requested error.
SAFETY = 0.3


@dataclass(frozen=True, eq=False)
class Tracker:
    """Follows λ_max along a trajectory: `estimate, tracker = tracker.measure(matvec)`, a pure step.

    A tracker keeps the `keep` leading Ritz vectors with their values, the leader of the previous call, and a `watch`
    vector orthogonal to them. A call multiplies

    - the leader, and the kept vectors within 5% of its new value,
    - the second vector in every other call, and in every call once the growth slows down,
    - the previous leader, if it is another direction,
    - then the vectors of a Lanczos chain in the complement of all these. It starts from the leader's residual plus a
      kept vector without a product, the watch and fresh noise, and ends when the estimated error of the Ritz value is
      small for rtol.

    An isolated leader takes two or three products, and a call takes at most `call_matvecs`. When the leader falls, a
    call takes all of them, one along the residual of the second vector, which is likely to lead next. Another
    eigenvector that overtakes is among the multiplied vectors, or the watch finds it: that is a power iteration across
    calls, fed by the noise, and finds an eigenvector that no call has seen some calls late. The first call, and every
    call of `certify`, is the certified Lanczos of `largest` with a warm start, within `accuracy.max_matvecs`.

    The interval of `measure` is what so few products prove: a fresh random direction sees an unknown eigenvector with
    weight 1/p, so the upper end is far away, and `converged` is False even if `settled`, which is about the value, is
    True. `takeover` says whether the leader is a new one, |⟨new, old⟩|² < 1/2.

    >>> tracker, d = Tracker(5, key=0), np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    >>> estimate, tracker = tracker.measure(lambda v: d * v)
    >>> estimate, tracker = tracker.measure(lambda v: (d + [0, 2, 0, 0, 0]) * v)
    >>> round(estimate.value, 2), tracker.takeover, estimate.matvecs <= 6
    (4.0, True, True)
    """

    p: int
    keep: int = 4
    accuracy: Accuracy = EIGENVALUE
    call_matvecs: int = 6
    precision: float | None = None
    key: int = 0
    vectors: Matrix | None = field(default=None, repr=False)  # rows
    values: Vector | None = field(default=None, repr=False)
    watch: Vector | None = field(default=None, repr=False)
    before: Vector | None = field(default=None, repr=False)
    growth: float = math.nan  # since the previous call; NaN if there was none
    slows: bool = True
    calls: int = 0
    takeover: bool = False
    settled: bool = False
    fell: bool = False

    def __post_init__(self) -> None:
        dimension(self.p)
        Accuracy.expected(self.accuracy)
        check.integer("keep", self.keep, minimum=1)
        check.integer("call_matvecs", self.call_matvecs, minimum=3, remedy="The leader and a chain take three.")
        check.integer("key", self.key, minimum=0, remedy="Pass an integer seed: each call adds its number to it.")

    @property
    def vector(self) -> Vector | None:
        """The leading Ritz vector, of unit norm."""
        return None if self.vectors is None else self.vectors[0]

    @property
    def _small(self) -> bool:
        """Whether a call can multiply the whole space."""
        return self.p <= self.call_matvecs

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.key, self.calls])

    def certify(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        """λ_max to an interval of the whole `accuracy`."""
        estimate, chain = certified(
            matvec, self.p, signs=(1.0,), accuracy=self.accuracy, settle=None, basis=max(32, 2 * self.keep),
            start=self.vector, precision=self.precision, key=self._rng(),
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
        joint = Joint(fresh, Krylov(a, first.vector[None], capacity=self.call_matvecs, against=fresh.rows))
        value, error, gain = self._followed(joint, a, rng, to_the_end=falls)
        estimate = self._estimate(joint, value, first.weight(0.5 * self.accuracy.delta), a.matvecs)
        values, vectors = blend(joint, self.vectors[kept:], self.values[kept:], self.keep + 1)
        leading, dropped = vectors[: self.keep], vectors[self.keep :].sum(axis=0)
        after = self._after(values[: self.keep], leading, _watch(joint.chain, leading, dropped))
        # After such a fall, or below all kept values, a vector that no call has seen may lead.
        fell = value < max(self.values[0] - FALL * abs(self.values[0]), self.values[-1])
        # In a cluster the error estimate, which divides by a gap, is far too large; the next product gains less than
        # the last one. For a new leader the error estimate can be half the true error, so the gain is ignored.
        doubt = 2.0 * error if after.takeover else min(error, gain)
        return estimate, replace(after, fell=fell, settled=doubt <= self.accuracy.rtol * abs(value) and not fell)

    def insist(self, matvec: Matvec) -> tuple[Estimate, "Tracker"]:
        """`measure`, and `certify` if its few products leave the value in doubt.

        A longer chain would not be enough: an error estimate that is small by accident would end it too early, with an
        error of up to 1% of λ_max if many eigenvalues lie just below 2/η.
        """
        estimate, after = self.measure(matvec)
        if after.settled or self.vectors is None or self._small:
            return estimate, after  # settled, or certified as well as it could be
        sure, after = after.certify(matvec)
        # The leader of the previous call, not of the first half of this one.
        return replace(sure, matvecs=estimate.matvecs + sure.matvecs), replace(after, before=self.vector)

    def _multiplied(self, a: Operator) -> tuple[Subspace, int, bool]:
        """The span of the vectors that may lead, how many kept vectors are in it, and whether the leader falls."""
        assert self.vectors is not None
        assert self.values is not None
        kept = self._near(float(self.values[0]))
        fresh = Subspace.multiplied(a, self._with_before(self.vectors[:kept]))
        fresh = fresh.ritz(len(fresh.rows))
        falls = float(fresh.values[0]) < self.values[0] - self.accuracy.rtol * abs(self.values[0])
        while kept < self._near(float(fresh.values[0])):
            fresh, kept = self._with(fresh, a, self.vectors[kept]), kept + 1
        if falls and 1 < len(fresh.rows) <= self.call_matvecs - 3:
            # The second vector is about to lead: without its own residual it is only as accurate as before.
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
            # If the next Ritz value bounded everything outside the first few, λ_max would be at most this; ritz_error
            # explains the largest gap.
            below = max(float(found.values[count]), value - abs(value))
            error = eigenvalue_upper(0, found.ritz(count), below) - value
            enough = error <= max(SAFETY * self.accuracy.rtol * abs(value), joint.error) and not to_the_end
            if enough or chain.broken or a.matvecs >= self.call_matvecs:
                return value, error, gain

    def _estimate(self, joint: Joint, value: float, weight: float, matvecs: int) -> Estimate:
        """The value with the interval that a random start of this `weight` proves."""
        sigma = complement_upper(joint.chain, weight)
        bound = min(eigenvalue_upper(0, joint.projection(n), sigma) for n in range(joint.chain.size + 1))
        lower, upper = value - joint.error, max(value, bound) + joint.error
        return Estimate(
            value,
            lower,
            upper,
            self.accuracy.confidence,
            matvecs,
            converged=upper - lower <= self.accuracy.rtol * abs(value),
        )

    def _with_before(self, rows: Matrix) -> Matrix:
        """The rows, and the leader before the last one if enough of it lies outside them.

        A trajectory at the edge of stability oscillates with period two, so that leader is often the nearer one; on a
        trajectory that drifts, the two leaders span the direction of the drift.
        """
        if self.before is None or len(rows) > self.call_matvecs - 3:
            return rows
        left = project(self.before, rows)
        return np.vstack([rows, left]) if left @ left > SAFETY * self.accuracy.rtol else rows

    def _with(self, fresh: Subspace, a: Operator, row: Vector) -> Subspace:
        """The span with another direction, unless it holds nearly all of that direction already."""
        left = project(row, fresh.rows)
        inside = left @ left <= SAFETY * self.accuracy.rtol * (row @ row)
        return fresh if inside else fresh.extended(a, left).ritz(len(fresh.rows) + 1)

    def _near(self, leader: float) -> int:
        """How many kept vectors may lead if the leader has this value, as far as products allow."""
        assert self.values is not None
        near = int((self.values >= leader - REACH * abs(leader)).sum())
        # The second leads after the leader falls, and must be accurate by then.
        least = 2 if self.slows or self.calls % 2 else 1
        return min(max(least, near), self.call_matvecs - 2, len(self.values))

    def _warm(self, fresh: Subspace, count: int) -> Vector:
        """The start of the chain: the leader's residual, as far as it matters for the accuracy; and for the rest the
        residuals of the other vectors, the watch and, in turn, the kept vectors without a product."""
        # A residual r may leave the error ‖r‖²/|θ|; see ritz_error.
        matters = max(float(np.sqrt(SAFETY * self.accuracy.rtol)) * abs(float(fresh.values[0])), fresh.error, 1e-300)
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
        slows = not (growth >= SLOWS * self.growth and growth >= 0.0)  # also True if the growth is NaN
        return replace(
            self, values=values, growth=growth, slows=slows, vectors=vectors, watch=watch, before=self.vector,
            calls=self.calls + 1, takeover=takeover, settled=False, fell=False,
        )  # fmt: skip


def _watch(chain: Krylov, leading: Matrix, dropped: Vector) -> Vector:
    """A step of the power iteration across calls, in the complement of the kept vectors; plus the best vector that is
    not kept, with the same sign."""
    watch = outside(chain.onward(), leading)
    watch = watch + np.copysign(1.0, watch @ dropped) * dropped
    return watch / max(float(np.linalg.norm(watch)), 1e-300)
