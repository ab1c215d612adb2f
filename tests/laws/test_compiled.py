"""The tests compile with little optimisation: what comes out must be what a user's compiler makes of it."""

import jax
import numpy as np

from steppe import activations, data, losses, networks
from steppe.networks import build

# What JAX compiles with unless told otherwise, which conftest.py does.
DEFAULT = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}


def test_gradients_are_compiled_right():
    """At optimisation level 0 this gradient comes out wrong by a tenth in 32 bits, and its derivative as NaN."""
    net = networks.CNN((4, 4), activations.relu, batch_norm=True)
    problem, _ = build(net, data.digits(60), losses.cross_entropy)
    gradient = jax.grad(problem.loss)
    lowered = jax.jit(gradient).lower(problem.w0)
    expected = np.asarray(lowered.compile(compiler_options=DEFAULT)(problem.w0))
    # Sums of 60 images of 64 pixels in another order: some √(60 · 64) roundings.
    scale = 100 * np.finfo(np.float32).eps * np.abs(expected).max()
    np.testing.assert_allclose(lowered.compile()(problem.w0), expected, rtol=0, atol=scale)
    v = expected / np.linalg.norm(expected)
    product = jax.jit(lambda w, v: jax.jvp(gradient, (w,), (v,))[1])(problem.w0, v)
    assert np.isfinite(product).all()
