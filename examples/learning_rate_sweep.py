"""Divergence is data: a sweep of learning rates
=============================================

Divergence is data: gradient descent at several learning rates around the limit 2/λ_max.

Draws the losses against steps, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import figures, measures

x = jax.random.normal(jax.random.key(0), (40, 5))
y = x @ jnp.arange(1.0, 6.0)
problem = steppe.Problem(lambda w, x: x @ w, jnp.zeros(5), x, y, loss=steppe.losses.half_mse)
limit = 2 / jnp.linalg.eigvalsh(x.T @ x / len(x))[-1]

stop = steppe.until.loss(1e-6) | steppe.until.steps(5_000)
outcomes, series = {}, []
for fraction, colour in ((0.1, "sky"), (0.5, "blue"), (0.9, "green"), (1.1, "orange"), (1.5, "red")):
    run = steppe.run(problem, steppe.dynamics.GD(fraction * limit), stop=stop, record={"loss": measures.loss})
    outcomes[fraction] = run.outcome
    print(f"lr = {fraction:.1f} · 2/λ: {run.outcome} after {run.steps} steps")
    finite = np.isfinite(run.records["loss"])
    steps, loss = (run.records[name][finite] for name in ("step", "loss"))
    line = {"x": steps.clip(min=0.5).tolist(), "y": loss.tolist(), "kind": "line", "colour": colour}
    series.append(line | {"label": f"{fraction:.1f} · 2/λ: {run.outcome}"})

panel = {"x": "steps (the start is drawn at ½)", "y": "½ mean square", "log": "xy", "series": series}
panel |= {"limits": {"x": [0.4, 2e3], "y": [1e-7, 1e7]}, "legend": "upper right"}
numbers = {"title": "Learning rates around 2/λ", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/learning_rate_sweep")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert [outcomes[f] for f in (0.1, 0.5, 0.9)] == ["reached"] * 3
assert [outcomes[f] for f in (1.1, 1.5)] == ["diverged"] * 2
