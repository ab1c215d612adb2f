"""Label noise and projection, wrapped around other dynamics."""

import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import least_squares, two_layer

import steppe
from steppe import losses, until
from steppe.check import ArgumentError
from steppe.dynamics import GD, SAM, LabelNoise, Projected


def test_no_noise_is_no_noise():
    p = two_layer(n=10)
    for inner in (GD(0.05), GD(0.05, batch_size=3), SAM(0.02, 0.1)):
        a = steppe.run(p, LabelNoise(inner, 0.0), stop=until.epochs(4))
        b = steppe.run(p, inner, stop=until.epochs(4), use_kernels=False)
        np.testing.assert_allclose(a.w, b.w, rtol=1e-13)
        assert (a.steps, a.gradients) == (b.steps, b.gradients)


def test_noise_has_its_variance():
    """One GD step on a linear model moves w by lr Xᵀξσ/n more: over many keys, variance lr²σ²(XᵀX)/n²."""
    p, lr, sigma, keys = least_squares(), 0.1, 0.3, 400
    plain = steppe.run(p, GD(lr), stop=until.steps(1)).w
    moved = np.stack(
        [steppe.run(p, LabelNoise(GD(lr), sigma), stop=until.steps(1), key=k).w - plain for k in range(keys)]
    )
    expected = lr**2 * sigma**2 * np.diag(np.asarray(p.x.T @ p.x)) / len(p) ** 2
    # The relative standard error of a variance of Gaussians is √(2/keys).
    np.testing.assert_allclose(moved.var(axis=0), expected, rtol=5 * np.sqrt(2 / keys))


def test_projection_holds_the_norm():
    p = two_layer()
    r = steppe.run(p, Projected(SAM(0.01, 0.1), {"W1", "b1"}, norm=10.0), stop=until.epochs(5))
    params = p.unravel(r.w)
    length = jnp.sqrt(jnp.sum(params["W1"] ** 2) + jnp.sum(params["b1"] ** 2))
    assert float(length) == pytest.approx(10.0, rel=1e-14)


def test_bad_arguments():
    p = two_layer()
    with pytest.raises(ArgumentError, match="names of parameters"):
        steppe.run(p, Projected(GD(0.1), {"W9"}, norm=1.0), stop=until.steps(1))
    with pytest.raises(ArgumentError, match="mse or half_mse"):
        steppe.run(two_layer(loss=losses.logistic()), LabelNoise(GD(0.1), 0.1), stop=until.steps(1))
    with pytest.raises(ArgumentError, match="sigma must be"):
        LabelNoise(GD(0.1), -1.0)
    with pytest.raises(ArgumentError, match="dynamics must be a dynamics"):
        Projected(3, {"W1"}, norm=1.0)
