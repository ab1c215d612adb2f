"""The diagonal of a symmetric operator from sign vectors."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.linalg.arguments import Vector, dimension, generator, tolerance
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.probes import rademacher


@dataclass(frozen=True, eq=False)
class Diagonal:
    """diag A with the standard error of each entry; `converged` where ‖stderr‖ ≤ rtol ‖value‖ was reached."""

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
    """diag A = E z ∘ Az over sign vectors z; the variance of entry i is Σ_{j≠i} A_ij² a probe.

    Stops when ‖stderr‖ ≤ rtol ‖value‖, at the latest after `max_matvecs` products. p products of unit vectors
    are taken where that is no dearer: exact, with stderr 0. A diagonal operator is exact after any probe.

    >>> d = np.array([1.0, 2.0, 3.0])
    >>> diagonal(lambda v: d * v, 3, key=0).value.tolist()
    [1.0, 2.0, 3.0]

    Bekas, Kokiopoulou and Saad 2007.
    """
    p, rtol = dimension(p), tolerance(rtol)
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
        # ‖stderr‖ falls as 1/√n: foresee, but look again before n has grown by more than 1.5².
        ratio = float(np.linalg.norm(stderr)) / max(rtol * float(np.linalg.norm(mean)), 1e-300)
        next_look = n + 1 + int(n * (min(ratio, 1.5) ** 2 - 1.0))
    return Diagonal(_unit_diagonal(a), np.zeros(p), a.matvecs, True)


def _unit_diagonal(a: Operator) -> Vector:
    e, result = np.zeros(a.p), np.empty(a.p)
    for i in range(a.p):
        e[i] = 1.0
        result[i] = a(e)[i]
        e[i] = 0.0
    return result
