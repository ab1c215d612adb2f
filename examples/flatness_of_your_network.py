"""The trace of your JAX network along training
============================================

The exact trace of the Hessian of your JAX network along training, with its Gauss-Newton and residual parts.

Draws loss and trace against steps, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

import steppe
from steppe import figures, measures


def predict(params, x):
    h = jnp.tanh(x @ params["W"] + params["b"])
    return h @ params["v"]


k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
params = {"W": jax.random.normal(k1, (3, 8)), "b": jnp.zeros(8), "v": jax.random.normal(k2, (8,)) / 8}
x = jax.random.normal(k3, (50, 3))
y = jnp.sin(x[:, 0])

problem = steppe.Problem(predict, params, x, y, loss=steppe.losses.half_mse)
before = measures.trace(problem, problem.w0)
run = steppe.run(
    problem,
    steppe.dynamics.GD(0.1),
    stop=steppe.until.loss(1e-3) | steppe.until.steps(20_000),
    record={"loss": measures.loss, "trace": measures.trace},
    when=steppe.when.logarithmic(per_decade=10),
)
after = measures.trace(problem, run.w)
print(f"{run.outcome} after {run.steps} steps; trace {before.value:.3f} -> {after.value:.3f}")
print({name: round(part.value, 4) for name, part in after.parts.items()})

panels = []
for name, label, log, colour in (("loss", "½ mean square", "xy", "blue"), ("trace", "tr ∇²L", "x", "orange")):
    steps, values = run.records["step"].clip(min=0.5), run.records[name]
    line = {"x": steps.tolist(), "y": values.tolist(), "kind": "line", "colour": colour}
    panels.append({"x": "steps (the start is drawn at ½)", "y": label, "log": log, "series": [line]})
numbers = {"title": "Gradient descent on sin(x₁), 8 tanh neurons", "panels": panels}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/flatness_of_your_network")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

dense = jnp.trace(jax.hessian(problem.loss)(run.w))
assert abs(after.value - dense) < 1e-4 * abs(dense)  # float32 sums of 40 terms
