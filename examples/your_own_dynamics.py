"""Your own dynamics
====================

A dynamics is one pure step. This one takes the sign of the gradient; `steppe.run` carries it out, records and stops
it. Draws its loss beside gradient descent's, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

import steppe
from steppe import dynamics, figures, losses, measures, until


@final
class SignDescent(dynamics.Dynamics):
    """w ← w − η sign ∇L(w)."""

    lr: Array
    batch_size: int | None = eqx.field(static=True, default=None)
    gradients_per_step: ClassVar[int] = 1

    def step(self, problem, state, index, *, key):
        loss, gradient = jax.value_and_grad(problem.loss)(state)
        return state - self.lr * jnp.sign(gradient), loss


x = jax.random.normal(jax.random.key(0), (40, 5))
problem = steppe.Problem(lambda w, x: x @ w, jnp.zeros(5), x, x @ jnp.arange(1.0, 6.0), losses.half_mse)

series, ends = [], {}
for name, how, colour in (
    ("gradient descent", dynamics.GD(0.1), "blue"),
    ("sign descent", SignDescent(jnp.asarray(0.07)), "orange"),
):
    run = steppe.run(problem, how, stop=until.steps(100), record={"loss": measures.loss})
    ends[name] = run.records["loss"][-1]
    print(f"{name}: loss {ends[name]:.2e} after {run.steps} steps, {run.gradients} gradients")
    series.append(figures.series(run.records["step"], run.records["loss"], "line", colour, name))

panel = {"x": "steps", "y": "½ mean square", "log": "y", "series": series}
numbers = {"title": "A dynamics of one's own, beside gradient descent", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/your_own_dynamics")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert ends["gradient descent"] < ends["sign descent"]  # a step of fixed length does not settle
