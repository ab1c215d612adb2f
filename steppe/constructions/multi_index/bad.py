"""Definition 2 of multi-index, condition by condition: separated, misaligned as a span, and no good on new data."""

from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs
from steppe.problems.data.multi_index import orthonormal_rows

# Singular values of W below this share of the largest are rounding.
_RANK = 1e-10


class Conditions(NamedTuple):
    """What Definition 2 bounds: the largest cosine between two inner weights, and between what they and U span."""

    closest: float
    alignment: float
    worst_length: float  # largest |‖w_k‖ − 1|


def conditions(W: Any, U: Any) -> Conditions:
    """The quantities of conditions 1 and 3; condition 2 is `population_loss` against its bound.

    >>> conditions([[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0]])[:2]       # together they span the plane, and U with it
    (0.6, 1.0)
    """
    weights, rows = inputs(W, name="W"), orthonormal_rows(U)
    if weights.shape[1] != rows.shape[1]:
        check.refuse("W", f"as wide as U, {rows.shape[1]}", weights.shape, "Pass inner weights, one row a neuron.")
    lengths = np.linalg.norm(weights, axis=1)
    if (lengths == 0).any():
        check.refuse("W", "without rows of zeros", int((lengths == 0).sum()), "Remove them: they have no direction.")
    cosines = np.clip(weights / lengths[:, None] @ (weights / lengths[:, None]).T, -1.0, 1.0)
    np.fill_diagonal(cosines, -1.0)
    return Conditions(float(cosines.max()), alignment(weights, rows), float(np.max(np.abs(lengths - 1))))


def alignment(W: Any, U: Any) -> float:
    """max |u·v| over unit u in the span of W and v in that of U: the largest cosine of a principal angle."""
    basis = span(inputs(W, name="W"))
    return float(np.clip(np.linalg.svd(basis @ orthonormal_rows(U).T, compute_uv=False)[:1].sum(), 0.0, 1.0))


def span(W: Floats) -> Floats:
    """An orthonormal basis of the span of the rows, as rows."""
    _, values, rows = np.linalg.svd(W, full_matrices=False)
    kept: Floats = rows[values > _RANK * values[0]]
    return kept


def conditional_covariance(W: Any, U: Any) -> Floats:
    """The covariance I − U P_W Uᵀ of Ux given Wx, x ~ N(0, I): what the activations leave open (Lemma 10).

    >>> conditional_covariance([[1.0, 0.0]], [[0.6, 0.8]]).round(12).tolist()        # 1 − 0.6²
    [[0.64]]
    """
    rows = orthonormal_rows(U)
    seen = span(inputs(W, name="W")) @ rows.T
    covariance: Floats = np.eye(len(rows)) - seen.T @ seen
    return covariance
