"""The exact trace of the Hessian of your own JAX network, with its Gauss-Newton and residual parts."""

import jax
import jax.numpy as jnp

import steppe


def predict(params, x):
    h = jnp.tanh(x @ params["W"] + params["b"])
    return h @ params["v"]


k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
params = {"W": jax.random.normal(k1, (3, 8)), "b": jnp.zeros(8), "v": jax.random.normal(k2, (8,)) / 8}
x = jax.random.normal(k3, (50, 3))
y = jnp.sin(x[:, 0])

problem = steppe.Problem(predict, params, x, y, loss=steppe.losses.half_mse)
before = steppe.measures._trace(problem, problem.w0)
run = steppe.run(problem, steppe.dynamics.GD(0.1), stop=steppe.until.loss(1e-3) | steppe.until.steps(20_000))
after = steppe.measures._trace(problem, run.w)
print(f"{run.outcome} after {run.steps} steps; trace {before.value:.3f} -> {after.value:.3f}")
print({name: round(part.value, 4) for name, part in after.parts.items()})

dense = jnp.trace(jax.hessian(problem.loss)(run.w))
assert abs(after.value - dense) < 1e-4 * abs(dense)  # float32 sums of 40 terms
