"""The spectrum of a trained network
=================================

The spectrum of a trained network: its density with an error band, and the sharpness with its interval.

Draws them with the limit 2/η, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np

import steppe
from steppe import figures, measures
from steppe.data import xor
from steppe.networks import TwoLayer

LR = 0.2
data, network = xor(d=12, n=100, key=0), TwoLayer()
start = network.init(d=12, width=80, rng=np.random.default_rng(0))
problem = steppe.Problem(network, start, data.x, data.y, loss=steppe.losses.half_mse)
run = steppe.run(problem, steppe.dynamics.GD(LR), stop=steppe.until.loss(1e-3) | steppe.until.steps(100_000))

sharpness = measures.sharpness(problem, run.w, key=0)
density = measures.density(problem, run.w, probes=16, key=0)
print(f"{run.outcome} after {run.steps} steps: λ_max in [{sharpness.lower:.4f}, {sharpness.upper:.4f}]")
print(f"{sharpness.matvecs} products; the limit of stability 2/η is {2 / LR:.0f}")

numbers = {
    "title": "Two-layer net on 2-parity, loss 0.001",
    "grid": density.grid.tolist(),
    "density": density.density.tolist(),
    "stderr": density.stderr.tolist(),
    "sharpness": sharpness.value,
    "lower": sharpness.lower,
    "upper": sharpness.upper,
    "confidence": sharpness.confidence,
    "lr": LR,
}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/spectral_density")
print("wrote", *figures.save(figures.spectrum(numbers), numbers, stem))

trace = measures.trace(problem, run.w).value
means = [measures.density(problem, run.w, probes=2, key=k).mean() for k in range(1, 9)]
assert abs(density.mean() - trace / problem.w0.size) < 4 * np.std(means) / np.sqrt(8)  # standard errors of 16 probes
assert sharpness.converged
assert sharpness.value < 2 / LR  # gradient descent does not settle in a minimum that is sharper
