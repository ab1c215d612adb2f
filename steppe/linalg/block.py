"""The k leading Ritz pairs by block Lanczos with thick restart."""

import numpy as np

from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Operator
from steppe.linalg.probes import gaussian
from steppe.linalg.subspace import Subspace


def ritz_pairs(
    a: Operator, k: int, *, block: int, rtol: float, max_matvecs: int, basis: int, key: np.random.Generator
) -> Subspace:
    """k Ritz pairs, each residual ≤ rtol |θ| or at the level of rounding, within `max_matvecs` products.

    A random start of b vectors sees b copies of a multiple eigenvalue where one vector sees one, and a cluster
    of b eigenvalues converges at the rate of the gap below it.

    >>> d = np.array([2.0, 2.0, 1.0, 0.0])
    >>> a, rng = Operator(lambda v: d * v, 4), np.random.default_rng(0)
    >>> ritz_pairs(a, 2, block=2, rtol=1e-3, max_matvecs=9, basis=4, key=rng).values.round(9).tolist()
    [2.0, 2.0]

    Golub and Underwood 1977.
    """
    random = np.stack([gaussian(a.p, key) for _ in range(block)])
    space = Krylov(a, np.linalg.qr(random.T)[0].T, capacity=min(basis, a.p))
    while True:
        space.expand(key)
        theta, S, tail = space.ritz()
        theta, S, tail = theta[::-1][:k], S[:, ::-1][:, :k], tail[:, ::-1][:, :k]
        if space.size >= k:
            goal = np.maximum(rtol * np.abs(theta), space.rounding)
            small = bool((np.linalg.norm(tail, axis=0) <= goal).all())
            if small or space.exhausted or a.matvecs + space.width > max_matvecs:
                break
        if space.full:
            space.restart(np.arange(space.size - max(k, space.capacity // 2), space.size))
    return Subspace(S.T @ space.basis, np.diag(theta), tail.T @ space.next, space.rounding)
