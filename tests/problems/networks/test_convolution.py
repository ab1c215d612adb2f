"""Convolutions laid out as products of matrices are those of the compiler."""

import jax
import numpy as np
import pytest

from steppe.problems.networks.convolution import convolved


def peer(h, W):
    return jax.lax.conv_general_dilated(h, W, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (4, 5), (5, 3)])
@pytest.mark.parametrize("shape", [(2, 6, 6, 1), (3, 5, 7, 4), (1, 2, 3, 2)])
def test_values_and_derivatives(size, shape):
    rng = np.random.default_rng(0)
    h, W = rng.standard_normal(shape), rng.standard_normal((3, shape[-1], *size))
    V = rng.standard_normal(W.shape)
    np.testing.assert_allclose(convolved(h, W), peer(h, W), atol=1e-12)
    ours, theirs = (jax.grad(lambda h, W, f=f: (f(h, W) ** 4).sum(), argnums=(0, 1)) for f in (convolved, peer))
    for mine, other in zip(ours(h, W), theirs(h, W), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-9)
    second = [jax.jvp(lambda W, g=g: g(h, W)[1], (W,), (V,))[1] for g in (ours, theirs)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-9, atol=1e-7)


def test_the_rows_are_not_kept_for_the_derivative():
    """Nine times the memory of the images: only h and W are."""
    h, W = np.ones((4, 8, 8, 2), np.float32), np.ones((5, 2, 3, 3), np.float32)
    _, pullback = jax.vjp(convolved, h, W)
    assert max(leaf.size for leaf in jax.tree.leaves(pullback)) == h.size
