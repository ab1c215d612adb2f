"""Convolutions laid out as products of matrices are those of the compiler."""

from functools import partial

import jax
import numpy as np
import pytest

from steppe.networks import convolution


def peer(h, W):
    return jax.lax.conv_general_dilated(h, W, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))


@partial(jax.jit, static_argnums=0)
def derivatives(f, h, W, V):
    """The values, the gradient of Σ f⁴ by both arguments, and that by W along V once more."""
    gradient = jax.grad(lambda h, W: (f(h, W) ** 4).sum(), argnums=(0, 1))
    along = jax.jvp(lambda W: gradient(h, W)[1], (W,), (V,))[1]
    return f(h, W), *gradient(h, W), along


# Every size and every image, and what may go wrong in a pair: margins of odd and even sizes, of filters that are larger
# than the image, one channel and several.
SQUARE, OBLONG, TINY = (2, 6, 6, 1), (3, 5, 7, 4), (1, 2, 3, 2)


@pytest.mark.parametrize(
    ("size", "shape"),
    [((1, 1), OBLONG), ((2, 2), SQUARE), ((3, 3), OBLONG), ((3, 3), TINY), ((4, 5), OBLONG), ((4, 5), TINY),
     ((5, 3), SQUARE)],
)  # fmt: skip
def test_values_and_derivatives(size, shape):
    rng = np.random.default_rng(0)
    h, W, V = rng.standard_normal(shape), *rng.standard_normal((2, 3, shape[-1], *size))
    for ours, theirs in zip(derivatives(convolution, h, W, V), derivatives(peer, h, W, V), strict=True):
        # Sums of at most a hundred products of either sign, rounded in another order.
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.parametrize("shape", [(3, 60, 50, 10), (7, 40, 40, 8)])
def test_images_in_several_pieces(shape):
    """One by one, and by two with one left over."""
    test_values_and_derivatives((3, 3), shape)


@pytest.mark.parametrize("shape", [(4, 8, 8, 2), (6, 40, 40, 8)])
def test_the_columns_are_not_kept_for_the_derivative(shape):
    """Nine times the memory of the images: only h and W are."""
    h, W = np.ones(shape, np.float32), np.ones((5, shape[-1], 3, 3), np.float32)
    pullback = jax.eval_shape(lambda h, W: jax.vjp(convolution, h, W)[1], h, W)
    assert max(leaf.size for leaf in jax.tree.leaves(pullback)) == h.size


def test_the_columns_of_all_images_never_exist_at_once():
    h, W = np.ones((512, 32, 32, 4), np.float32), np.ones((4, 4, 3, 3), np.float32)
    gradient = jax.jit(jax.grad(lambda W: (convolution(h, W) ** 2).sum()))
    # The outputs and their cotangents, each as large as h, and a few megabytes; the columns would be nine times h.
    assert gradient.lower(W).compile().memory_analysis().temp_size_in_bytes < 4 * h.nbytes
