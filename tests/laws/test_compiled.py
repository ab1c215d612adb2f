"""The tests compile with little optimisation: what comes out must be what the operations give one by one."""

import jax
import numpy as np

from steppe import losses
from steppe.problems import build, data, networks


def test_gradients_are_compiled_right():
    """At optimisation level 0 this gradient comes out wrong by a tenth in 32 bits, and its derivative as NaN."""
    net = networks.CNN((4, 4), networks.relu, batch_norm=True)
    problem, _ = build(net, data.digits(60), losses.cross_entropy)
    gradient = jax.grad(problem.loss)
    one_by_one = np.asarray(gradient(problem.w0))
    # Sums of 60 images of 64 pixels in another order: some √(60 · 64) roundings.
    scale = 100 * np.finfo(np.float32).eps * np.abs(one_by_one).max()
    np.testing.assert_allclose(jax.jit(gradient)(problem.w0), one_by_one, rtol=0, atol=scale)
    v = one_by_one / np.linalg.norm(one_by_one)
    product = jax.jit(lambda w, v: jax.jvp(gradient, (w,), (v,))[1])(problem.w0, v)
    assert np.isfinite(product).all()
