"""Complete training sets for xor: Condition 1 of wen2023."""

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats, Split, corners

_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])


def complete(d: int, tails: int | None = None, *, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """{−1, 1}² × S with y = x₁x₂, S of `tails` (by default d − 1) distinct points of {−1, 1}^{d−2}.

    The differences S − S span all d − 2 dimensions, as Condition 1 asks; there are 4·tails training points.

    >>> x, y, _, _ = complete(10, key=0)
    >>> x.shape, int(np.linalg.matrix_rank(x[4:, 2:] - x[0, 2:]))
    ((36, 10), 8)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    size = check.integer("tails", d - 1 if tails is None else tails, minimum=d - 1, remedy="Rank d − 2 needs d − 1.")
    test = check.integer("test", test, minimum=0)
    if d - 2 < 63 and size > 2 ** (d - 2):
        rule = f"at most 2^(d−2) = {2 ** (d - 2)}"
        check.refuse("tails", rule, size, "There are no more distinct tails.")
    rng = np.random.default_rng(key)
    chosen = _spanning(rng, d - 2, size)
    x = np.concatenate([np.tile(_CORNERS, (size, 1)), np.repeat(chosen, 4, axis=0)], axis=1)
    x_test = corners(rng, test, d)
    return Split(x, x[:, 0] * x[:, 1], x_test, x_test[:, 0] * x_test[:, 1])


def _spanning(rng: np.random.Generator, k: int, size: int) -> Floats:
    """Distinct corners of {−1, 1}^k whose differences have rank k: a random corner, its k neighbours, random others.

    Drawing until the rank is right would take for ever where size = k + 1 and k is small.
    """
    start = corners(rng, 1, k)
    chosen = np.concatenate([start, start * (1 - 2 * np.eye(k))])
    chosen = _mixed(rng, chosen)
    while len(chosen) < size:
        together = np.concatenate([chosen, corners(rng, 2 * size, k)])
        _, first = np.unique(together, axis=0, return_index=True)
        chosen = together[np.sort(first)][:size]
    return chosen


def _mixed(rng: np.random.Generator, points: Floats) -> Floats:
    """A random spanning set in place of the neighbours, where one is drawn within a few tries."""
    k = points.shape[1]
    for _ in range(100):
        drawn = corners(rng, *points.shape)
        if len(np.unique(drawn, axis=0)) == len(drawn) and np.linalg.matrix_rank(drawn[1:] - drawn[0]) == k:
            return drawn
    return points
