"""Multi-index data: orthonormal U, links against plain formulas, noise of the size asked for."""

import numpy as np
import pytest

from steppe.activations import leaky, quadratic, rectifier
from steppe.check import ArgumentError
from steppe.data import multi_index, orthonormal
from steppe.data.links import Composed, Linear, Polynomial, QuadraticForm, SumOfSingleIndex

Z = np.random.default_rng(0).normal(size=(20, 2))
A = np.array([[1.0, 2.0], [2.0, -3.0]])
LINKS = {
    "sum": (SumOfSingleIndex(rectifier, (1.0, -2.0)), np.maximum(Z, 0) @ [1.0, -2.0]),
    "leaky": (SumOfSingleIndex(leaky(0.1), (1.0, 1.0)), np.where(Z > 0, Z, 0.1 * Z).sum(axis=1)),
    "polynomial": (
        Polynomial(rectifier, (1.0, 0.0, 2.0), 2),
        (np.maximum(Z, 0) + 2 * np.maximum(Z, 0) ** 3).sum(axis=1),
    ),
    "linear": (Linear((3.0, 4.0)), Z @ [3.0, 4.0]),
    "form": (QuadraticForm(tuple(map(tuple, A))), np.einsum("ni,ij,nj->n", Z, A, Z)),
    "composed": (Composed(np.tanh, SumOfSingleIndex(quadratic, (1.0, 1.0))), np.tanh((Z**2).sum(axis=1))),
}


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    link, expected = LINKS[name]
    assert link.indices == 2
    np.testing.assert_allclose(link(Z), expected, rtol=1e-12, atol=1e-12)


def test_sample():
    U = orthonormal(2, 6, key=1)
    np.testing.assert_allclose(U @ U.T, np.eye(2), atol=1e-14)
    link = LINKS["sum"][0]
    x, y, x_test, y_test = multi_index(link, U, 4_000, noise=0.5, test=7, key=2)
    np.testing.assert_array_equal(y_test, link(x_test @ U.T))
    # The standard deviation of n draws is known to σ/√2n: four of them.
    assert np.std(y - link(x @ U.T)) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(8_000))
    again = multi_index(link, U, 4_000, noise=0.5, test=7, key=2)
    np.testing.assert_array_equal(again.y, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: orthonormal(3, 2), "at most d = 2"),
        (lambda: multi_index(Linear(), np.eye(2), 3), "one row an index"),
        (lambda: multi_index(Linear((1.0, 1.0)), 2 * np.eye(2), 3), "orthonormal"),
        (lambda: multi_index(Linear(), [[1.0]], 3, noise=-1.0), "noise must be"),
        (lambda: QuadraticForm(((0.0, 1.0), (0.0, 0.0))), "symmetric"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
