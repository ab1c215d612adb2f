"""Label noise flattens
=======================

Two parameters fit one number, w₁w₂ = 1, so that a whole curve has loss 0. Gradient descent stops where it meets the
curve. With noise in the label it drifts along the curve to the flattest point, (1, 1) (Blanc et al. 2020). Draws both
paths, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import steppe
from steppe import dynamics, figures, losses, measures, until, when

problem = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([2.5, 0.2]), jnp.ones(1), jnp.ones(1), losses.mse)
series, ends = [], {}
for name, how, colour in (
    ("gradient descent", dynamics.GD(0.02), "blue"),
    ("with label noise", dynamics.LabelNoise(dynamics.GD(0.02, batch_size=1), 0.5), "orange"),
):
    record = {"w1": lambda p, w: w[0], "w2": lambda p, w: w[1]}
    run = steppe.run(problem, how, stop=until.steps(20_000), record=record, when=when.every(steps=100), key=0)
    ends[name] = measures.trace(problem, run.w).value
    print(f"{name}: ends at {np.round(run.w, 2)}, trace of the Hessian {ends[name]:.2f}")
    series.append(figures.series(run.records["w1"], run.records["w2"], "thin", colour, name))

w1 = np.linspace(0.4, 2.6, 100)
series.append(figures.series(w1, 1 / w1, "dashed", "ink", "loss 0: w₁w₂ = 1"))
panel = {"x": "w₁", "y": "w₂", "series": series}
numbers = {"title": "Label noise drifts to the flattest point", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/label_noise_flattens")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert ends["gradient descent"] > 1.5 * ends["with label noise"]  # the flattest has 2(1 + 1) = 4
