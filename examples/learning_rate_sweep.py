"""Divergence is data: gradient descent at many learning rates, compiled once, around the limit 2/λ_max."""

import jax
import jax.numpy as jnp

import steppe

x = jax.random.normal(jax.random.key(0), (40, 5))
y = x @ jnp.arange(1.0, 6.0)
problem = steppe.Problem(lambda w, x: x @ w, jnp.zeros(5), x, y, loss=steppe.losses.half_mse)
limit = 2 / jnp.linalg.eigvalsh(x.T @ x / len(x))[-1]

stop = steppe.until.loss(1e-6) | steppe.until.steps(5_000)
outcomes = {}
for fraction in (0.1, 0.5, 0.9, 1.1, 1.5):
    run = steppe.run(problem, steppe.dynamics.GD(fraction * limit), stop=stop)
    outcomes[fraction] = run.outcome
    print(f"lr = {fraction:.1f} · 2/λ: {run.outcome} after {run.steps} steps")

assert [outcomes[f] for f in (0.1, 0.5, 0.9)] == ["reached"] * 3
assert [outcomes[f] for f in (1.1, 1.5)] == ["diverged"] * 2
