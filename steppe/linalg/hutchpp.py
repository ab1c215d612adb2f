"""Hutch++: the trace on a sketched subspace exactly, the rest by probes."""

from dataclasses import replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import Matrix, Vector, dimension, generator, probability, tolerance
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.probes import rademacher
from steppe.linalg.probing import FEW, Probes, probed_trace, unit_trace
from steppe.linalg.spread import fewest


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
        """`count` more directions, two products each; fewer where the range of A has no more."""
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
        """PAPz, from Az without a product where that is known."""
        return self.project(self.a(self.project(z)) if Az is None else Az - (self.Q @ z) @ self.Z)


def hutchpp(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Estimate:
    """tr A = tr(QᵀAQ) + E zᵀPAPz, Q an orthonormal basis of AΩ for random Ω, P = I − QQᵀ.

    The sketch doubles as long as a pilot, whose products are known and cost nothing more, foresees fewer
    products in all; then fresh probes estimate the rest as in `hutchinson`, with the same interval, valid given Q.
    Needs O(1/ε) products where Hutchinson needs O(1/ε²), and holds two vectors of length p a direction.

    >>> u = np.arange(1.0, 51.0)   # rank one: the sketch holds everything
    >>> round(hutchpp(lambda v: u * (u @ v), 50, key=0).value, 6)   # 1² + … + 50²
    42925.0

    Meyer, Musco, Musco and Woodruff 2021; choice of the sketch after Persson, Cortinovis and Kressner 2022.
    """
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    few = fewest(0.1 * delta)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=min(p, 2 * few), remedy=FEW)
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
        n = max(few, probes.needed(0.5 * rtol * abs(sketch.trace + probes.trace), 0.6 * delta))
        more = max(4, len(sketch.Q))
        # The sketch pays while it shortens the rest by more than it costs; n halves at best when it doubles.
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
        a, sketch.rest, sketch.trace, first=min(n, left), rtol=rtol, delta=delta, max_matvecs=max_matvecs,
        keep=1 / 3, rng=rng,
    )  # fmt: skip
    # What the sketch itself rounds, as in Probes.half.
    rounding = a.precision * float(np.linalg.norm(sketch.Z, axis=1).sum())
    lower, upper = estimate.lower - rounding, estimate.upper + rounding
    converged = upper - lower <= rtol * abs(estimate.value)
    return replace(estimate, lower=lower, upper=upper, confidence=confidence, converged=converged)
