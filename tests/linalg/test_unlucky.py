"""Starts with almost no weight on the leading eigenvector: the rare event outside the confidence of an interval."""

import numpy as np
import pytest

from steppe.estimate import Accuracy
from steppe.linalg import largest


def first_vector(p, key):
    seen = []
    largest(lambda v: seen.append(v.copy()) or v, p, key=key, accuracy=Accuracy(1e-3, max_matvecs=1))
    return seen[0]


@pytest.mark.parametrize("key", range(20))
@pytest.mark.parametrize("weight", [1e-7, 1e-10])
def test_a_start_that_hardly_sees_the_leader_is_found_out(key, weight):
    """At confidence 0.99 and p = 40 a weight below 1e-6 is assumed away; the leader is 5% above the rest."""
    p, b = 40, first_vector(40, key)
    rng = np.random.default_rng(key)
    U = np.linalg.qr(np.column_stack([b, rng.standard_normal((p, p - 1))]))[0]
    u = np.sqrt(weight) * b + np.sqrt(1 - weight) * U[:, 1]
    rest = np.linalg.qr(np.column_stack([u, U]))[0][:, 1:p]
    A = 1.05 * np.outer(u, u) + (rest * np.linspace(-1, 1, p - 1)) @ rest.T
    estimate = largest(lambda v: A @ v, p, key=key).estimate
    assert estimate.value == pytest.approx(1.05, rel=1e-3)
    assert estimate.lower <= 1.05 <= estimate.upper


def test_stopped_early_it_claims_nothing():
    p, b = 40, first_vector(40, 0)
    rest = np.linalg.qr(np.column_stack([b, np.random.default_rng(0).standard_normal((p, p - 1))]))[0]
    u = 1e-6 * b + np.sqrt(1 - 1e-12) * rest[:, 1]
    others = np.linalg.qr(np.column_stack([u, rest]))[0][:, 1:p]
    A = 2.0 * np.outer(u, u) + (others * np.linspace(-1, 1, p - 1)) @ others.T
    for most in range(2, 12):
        estimate = largest(lambda v: A @ v, p, key=0, accuracy=Accuracy(1e-3, max_matvecs=most)).estimate
        assert estimate.upper >= 2.0 or not estimate.converged
