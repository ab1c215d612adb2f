"""Generators of data: the law of each, and the same data for the same key."""

import inspect

import numpy as np
import pytest

from steppe import data
from steppe.check import ArgumentError
from steppe.data import ball, circle, complete, ellipsoid, flipped, gaussian_mixture, parity, perturbed, xor_mixture
from steppe.data.links import Linear

MADE = {
    "parity": lambda key: parity(5, 20, (0, 3, 4), test=7, key=key),
    "complete": lambda key: complete(5, 6, test=7, key=key),
    "ball": lambda key: ball(5, 20, test=7, key=key),
    "circle": lambda key: circle(5, 20, test=7, key=key),
    "circle in the plane": lambda key: circle(2, 20, test=7, key=key),
    "ellipsoid": lambda key: ellipsoid(5, 20, test=7, key=key),
    "gaussian_mixture": lambda key: gaussian_mixture([[0.0, 5.0], [5.0, 0.0]], [1, 2], 20, test=7, key=key),
    "xor_mixture": lambda key: xor_mixture(5, 20, test=7, key=key),
    "xor": lambda key: data.xor(9, 20, test=7, key=key),
    "multi_index": lambda key: data.multi_index(Linear(), [[0.0, 1.0]], 20, test=7, key=key),
}


def test_every_generator_is_here():
    public = [getattr(data, name) for name in dir(data) if inspect.isfunction(getattr(data, name))]
    generators = {f.__name__ for f in public if inspect.signature(f).return_annotation is data.Split}
    assert generators == {name.partition(" ")[0] for name in MADE}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_same_key_same_data_other_key_other_data(make):
    one, again, other = make(3), make(3), make(4)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.x, other.x)
    assert one.x_test.shape == (7, one.x.shape[1])
    assert one.y.shape == (len(one.x),)
    assert one.y_test.shape == (7,)
    assert all(part.dtype == np.float64 and np.isfinite(part).all() for part in one)


@pytest.mark.parametrize("coordinates", [(0,), (2, 5), (1, 3, 4), (0, 1, 2, 3, 4, 5)])
def test_parity_is_the_product_of_its_coordinates(coordinates):
    x, y, x_test, y_test = parity(6, 200, coordinates, test=50)
    assert np.array_equal(np.unique(x), [-1, 1])
    assert np.array_equal(y, np.prod(x[:, coordinates], axis=1))
    assert np.array_equal(y_test, np.prod(x_test[:, coordinates], axis=1))


@pytest.mark.parametrize(("d", "tails"), [(2, None), (3, None), (4, None), (4, 4), (10, None), (10, 40), (30, 35)])
def test_complete_sets_meet_condition_1(d, tails):
    x, y, _, _ = complete(d, tails, key=1)
    size = d - 1 if tails is None else tails
    assert x.shape == (4 * size, d)
    assert len(np.unique(x, axis=0)) == 4 * size
    assert np.array_equal(y, x[:, 0] * x[:, 1])
    S = np.unique(x[:, 2:], axis=0)
    assert len(S) == size
    assert np.linalg.matrix_rank(S - S[0]) == d - 2 if d > 2 else True
    for corner in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        assert np.array_equal(np.unique(x[np.all(x[:, :2] == corner, axis=1), 2:], axis=0), S)


def test_ball_is_uniform():
    d, n = 10, 20_000
    x, y, _, _ = ball(d, n)
    assert np.array_equal(y, np.abs(x[:, 0]) - np.abs(x[:, 1]))
    # (‖x‖/R)^d is uniform on [0, 1]: mean ½, standard error 1/√(12 n); four of them.
    share = (np.linalg.norm(x, axis=1) / np.sqrt(d)) ** d
    assert share.max() <= 1
    assert share.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * n))
    # E xᵢ² = R²/(d + 2), and xᵢ² has a standard deviation below twice its mean.
    assert np.mean(x**2, axis=0) == pytest.approx(d / (d + 2), abs=4 * 2 / np.sqrt(n))


def test_circle_has_one_norm_and_its_label():
    x, y, _, _ = circle(6, 100, label=lambda v: v[:, 0] * v[:, 1], radius=2.5)
    assert np.linalg.norm(x[:, :2], axis=1) == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(x, axis=1) == pytest.approx(2.5, rel=1e-14)
    assert np.array_equal(y, x[:, 0] * x[:, 1])


def test_mixture_surrounds_its_centres():
    centres = np.array([[0.0, 5.0], [5.0, 0.0], [-5.0, 0.0]])
    x, y, _, _ = gaussian_mixture(centres, [1, 2, 3], 9000, spread=0.5)
    for label, centre in zip((1, 2, 3), centres, strict=True):
        cloud = x[y == label]
        assert np.mean(cloud, axis=0) == pytest.approx(centre, abs=4 * 0.5 / np.sqrt(len(cloud)))
        assert np.std(cloud) > 0


def test_label_noise():
    y = np.tile([1.0, -1.0], 5000)
    noisy = flipped(y, 0.2, key=0)
    # The frequency in 10,000 coin flips: four standard errors.
    assert np.mean(noisy != y) == pytest.approx(0.2, abs=4 * 0.4 / 100)
    assert np.array_equal(np.abs(noisy), np.abs(y))
    assert np.array_equal(flipped(y, 0.0), y)
    assert np.std(perturbed(y, 0.3, key=1) - y) == pytest.approx(0.3, abs=4 * 0.3 / np.sqrt(2 * 10_000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parity(4, 5, (0, 0)), "coordinates must be different"),
        (lambda: parity(4, 5, ()), "coordinates must be different"),
        (lambda: parity(4, 5, (4,)), "coordinates must be different"),
        (lambda: parity(4, 5, (0.5, 1)), "coordinates must be a whole number"),
        (lambda: complete(5, 3), "tails must be a whole number ≥ 4"),
        (lambda: complete(4, 5), "tails must be at most"),
        (lambda: ball(1, 5), "d must be"),
        (lambda: circle(2, 5, radius=2.0), "radius must be 1 when d = 2"),
        (lambda: circle(3, 5, radius=0.5), "radius must be"),
        (lambda: gaussian_mixture([[0.0]], [1, 2], 3), "labels must be of shape"),
        (lambda: gaussian_mixture([0.0], [1], 3), "centres must be of shape"),
        (lambda: flipped([1.0], 1.5), "probability must be at most 1"),
        (lambda: ellipsoid(1, 5), "d must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
