"""Sharpness rises to 2/η and stays there
=========================================

Gradient descent on digits at three step sizes: each curve of sharpness climbs to its own dashed line and stays there
(Cohen et al. 2021). Draws them, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import steppe
from steppe import figures, losses, measures, networks, until, when

digits = load_digits()
x, y = (digits.data[:200] / 16.0).astype(np.float32), np.eye(10, dtype=np.float32)[digits.target[:200]]
network = networks.OneHidden()
start = network.init(64, 16, np.random.default_rng(0), np.float32, outputs=10)
problem = steppe.Problem(network, start, x, y, losses.half_mse)

ends, series = {}, []
for lr, colour in ((0.15, "blue"), (0.25, "orange"), (0.4, "green")):
    run = steppe.run(
        problem,
        steppe.dynamics.GD(lr),
        stop=until.steps(1500),
        record={"sharpness": measures.sharpness},
        when=when.every(steps=50),
    )
    steps, sharpness = run.records["step"], run.records["sharpness"]
    ends[lr] = sharpness[-10:].mean()
    print(f"η = {lr}: sharpness {sharpness[0]:.2f} at the start, {ends[lr]:.2f} at the end, 2/η = {2 / lr:.2f}")
    series.append(figures.series(steps, sharpness, "line", colour, f"η = {lr}"))
    series.append(figures.series(steps[[0, -1]], [2 / lr, 2 / lr], "dashed", colour, f"2/η = {2 / lr:.1f}"))

panel = {"x": "steps", "y": "sharpness λ_max", "series": series, "legend_columns": 3}
numbers = {"title": "Sharpness rises to 2/η and stays there", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/progressive_sharpening")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert all(0.9 < end * lr / 2 < 1.1 for lr, end in ends.items())
