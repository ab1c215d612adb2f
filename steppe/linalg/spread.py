"""Confidence intervals for random trace estimators, for few probes too."""

from collections.abc import Iterator

import numpy as np
from scipy.special import chdtri, stdtrit


def multiplier(n: int, delta: float) -> float:
    """c such that the mean of n probes is within c standard errors of the trace with probability ≥ 1 − δ.

    zᵀAz is farthest from normal for A of rank one, where it is λχ²₁: then the mean of n probes is λy with
    y ~ χ²_n/n, its standard error as estimated in `Probes` is λ√(2y/n), and the mean misses the trace λ by
    |1 − y|/√(2y/n) standard errors. c is the larger value of that at the two δ/2 quantiles of y, and at least
    Student's quantile for n − 1 degrees of freedom. It falls to the normal quantile as n grows.

    >>> [round(multiplier(n, 0.01), 2) for n in (10, 100, 100_000)]
    [3.78, 2.82, 2.58]
    """
    y = np.array([chdtri(n, 1.0 - 0.5 * delta), chdtri(n, 0.5 * delta)]) / n
    skewed = float((np.abs(1.0 - y) / np.sqrt(2.0 * y / n)).max())
    return max(skewed, float(-stdtrit(n - 1, 0.5 * delta)))


def fewest(delta: float) -> int:
    """The least number of probes that can carry an interval of confidence 1 − δ.

    Signs can conspire: for A = [[0, 1], [1, 0]], zᵀAz = ±2, and n probes agree, with no spread to be seen, with
    probability 2¹⁻ⁿ. This is held below δ/4.

    >>> fewest(0.01)
    10
    """
    return 1 + int(np.ceil(np.log2(4.0 / delta)))


def looks(first: int, last: int, delta: float, *, keep: float) -> Iterator[tuple[int, float]]:
    """When to look at an interval and with which δ: numbers of probes growing by half, from `first` to `last`.

    They are fixed in advance, so stopping at the first interval that is narrow enough keeps the confidence: each
    look spends the share 1 − `keep` of what is left of δ.

    >>> [(n, round(d, 4)) for n, d in looks(20, 50, 0.01, keep=0.5)]
    [(20, 0.005), (30, 0.0025), (45, 0.0013), (50, 0.0006)]
    """
    n = min(first, last)
    while True:
        yield n, (1.0 - keep) * delta
        if n == last:
            return
        n, delta = min(n + (n + 1) // 2, last), keep * delta
