"""Larger steps, smoother functions
===================================

A ReLU network of one input is trained to the same loss by three step sizes. The weighted roughness ``∫|f″|g`` of the
function obeys the bound 1/η − ½ of mulayoff2021. Draws the functions, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np

from steppe import dynamics, figures
from steppe.papers.mulayoff2021 import theory
from steppe.papers.mulayoff2021.descent import Descent

spec = Descent(scale=5.0, low=1e-3, high=0.4, count=3, warmup=50_000, width=40, n=6)
(x, y), rates = spec.data(), spec.rates()
done = dynamics.minima(x, y, spec.start(), rates, loss=1e-6, max_steps=3_000_000, warmup=spec.warmup)
print("outcomes:", list(done.outcome), done.steps.tolist())

grid = np.linspace(x.min() - 0.3, x.max() + 0.3, 400)
series, rough = [], []
for j, colour in enumerate(("blue", "orange", "green")):
    f = theory.piecewise_linear(done.params(j))
    rough.append(theory.weighted_roughness(f, x))
    print(f"η = {rates[j]:.3f}: ∫|f″|g = {rough[-1]:.3f}, bound {1 / rates[j] - 0.5:.1f}")
    series.append(figures.series(grid, f(grid), "line", colour, f"η = {rates[j]:.3f}"))
series.append(figures.series(x, y, "points", "ink", "data"))
numbers = {"title": "The same data, fitted by three step sizes", "panels": [{"x": "x", "y": "f(x)", "series": series}]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/step_size_and_the_function")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert all(o == "reached" for o in done.outcome)
assert all(r <= 1 / lr - 0.5 for r, lr in zip(rough, rates, strict=True))
assert rough[-1] < rough[0]
