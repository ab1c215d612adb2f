"""Girard-Hutchinson trace estimator with signs."""

from dataclasses import replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import dimension, generator, probability, tolerance
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.probing import FEW, probed_trace, unit_trace
from steppe.linalg.spread import fewest


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

    >>> hutchinson(lambda v: np.array([1.0, 2.0, 3.0]) * v, 3, key=0).value
    6.0

    Hutchinson 1990.
    """
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    few = fewest(0.1 * delta)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=min(p, few), remedy=FEW)
    rng, a = generator(key), Operator(matvec, p, precision)
    if p <= few:
        return unit_trace(a)
    # A tenth of δ for stopping at the pilot, the rest for what follows.
    pilot, probes = probed_trace(a, a, 0.0, first=few, rtol=rtol, delta=0.1 * delta, max_matvecs=few, keep=0.0, rng=rng)
    left = max_matvecs - a.matvecs
    if pilot.converged or left < few:
        return replace(pilot, confidence=confidence)
    n = max(few, probes.needed(0.5 * rtol * abs(pilot.value), 0.6 * delta))
    if p <= min(n, left):
        return unit_trace(a)
    estimate, _ = probed_trace(
        a, a, 0.0, first=min(n, left), rtol=rtol, delta=0.9 * delta, max_matvecs=max_matvecs, keep=1 / 3, rng=rng
    )
    return replace(estimate, confidence=confidence)
