"""Networks that are flattest up to constants and known by hand: Theorem 4 and Lemma 13 of multi-index."""

from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, examples
from steppe.constructions.multi_index.weights import features
from steppe.problems.data.links import SumOfSingleIndex
from steppe.problems.data.multi_index import indices
from steppe.problems.networks.homogeneous import Homogeneous


class Student(NamedTuple):
    """Inner weights of unit norm and outer weights."""

    W: Floats
    a: Floats


def copies(link: SumOfSingleIndex, U: Any, m: int) -> Student:
    """Theorem 4: every direction m/r times, with outer weights cⱼ r/m. The link itself, so its loss is the noise.

    >>> from steppe.problems.networks.homogeneous import rectifier
    >>> copies(SumOfSingleIndex(rectifier, (1.0, -2.0)), [[1.0, 0.0], [0.0, 1.0]], 4).a.tolist()
    [0.5, 0.5, -1.0, -1.0]
    """
    rows = indices(link, U)
    r, m = len(rows), check.integer("m", m, minimum=1)
    if m % r:
        check.refuse("m", f"a multiple of the number of directions, {r}", m, "Theorem 4 gives each the same share.")
    share = m // r
    return Student(np.repeat(rows, share, axis=0), np.repeat(np.asarray(link.coefficients) / share, share))


def patched(student: Student, extra: Any, x: Any, y: Any, activation: Homogeneous) -> Student:
    """Lemma 13: the student, and on the `extra` inner weights the interpolant of what it leaves, of least norm."""
    points, labels = examples(x, y)
    more = np.asarray(extra, dtype=float)
    left = labels - features(student.W, points, activation).phi @ student.a
    phi = features(more, points, activation).phi
    a, _, rank, _ = np.linalg.lstsq(phi, left, rcond=None)
    if np.linalg.norm(phi @ a - left) > 1e-8 * max(np.linalg.norm(labels), np.finfo(float).tiny):
        rule = f"inner weights whose activations span all {len(points)} examples"
        check.refuse("extra", rule, f"{len(more)} that span {rank}", "Take more, further apart.")
    return Student(np.vstack([student.W, more]), np.concatenate([student.a, a]))
