"""The critical learning rate, before training
==============================================

One gradient flow gives η_c = 2/s_GF. Below it gradient descent ends at the same sharpness for every step size; above it
the end is as sharp as 2/η allows (conflicting-biases). Draws the ends, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import steppe
from steppe import figures, losses, rates

problem = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([2.0, 0.1]), jnp.ones(1), jnp.ones(1), losses.half_mse)
(critical,) = steppe.critical_rate(problem, losses=[1e-6])
fractions = [0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.6, 1.9]
found = rates.sweep(problem, [float(f * critical.rate) for f in fractions], goals=[1e-6], critical=(critical,))
reached = found.at(1e-6)
kept = np.isfinite(reached["sharpness"])  # the largest rates may not reach the loss
ends = {name: np.asarray(reached[name])[kept] for name in ("lr", "sharpness")}
print(f"η_c = {float(critical.rate):.3f}; {len(ends['lr'])} of {len(fractions)} rates reach the loss")

limit = 2 / ends["lr"]
panel = {
    "x": "learning rate η",
    "y": "sharpness of the end",
    "series": [
        figures.series(ends["lr"], ends["sharpness"], "points", "blue", "gradient descent"),
        figures.series(ends["lr"], limit, "dashed", "ink", "2/η"),
    ],
    "places": [{"at": float(critical.rate), "label": "η_c"}],
}
numbers = {"title": "The end of gradient descent against its step size", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/critical_rate_of_a_network")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

below = ends["sharpness"][ends["lr"] < 0.75 * float(critical.rate)]
assert max(below) / min(below) < 1.05
assert (ends["sharpness"] <= 1.001 * limit).all()
