"""Two flattest minima that differ
===============================

Two nets with the least trace there is: one has learned the rule, the other one only its training set (wen2023).

Draws test accuracy against trace, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np

import steppe
from steppe import figures, measures
from steppe.data import xor
from steppe.flattening import memorising
from steppe.networks import TwoLayer
from steppe.papers.wen2023.theory import bounds, generalising

d, n = 30, 100
data = xor(d, n, test=2_000, replace=False, key=0)
bound = bounds.two_layer_bias(data.x, data.y)
explicit = {
    "generalising": generalising.xor(d),
    "memorising": memorising.two_layer(data.x, data.y),
    "PyTorch's start": TwoLayer().init(d, 500, np.random.default_rng(0)),
}

traces, accuracies = {}, {}
for name, exact in explicit.items():
    params = {key: np.asarray(array, dtype=np.float32) for key, array in exact.items()}
    problem = steppe.Problem(TwoLayer(), params, data.x, data.y, loss=steppe.losses.mse)
    traces[name] = measures.trace(problem, problem.w0).value
    accuracies[name] = measures.accuracy(problem.on(data.x_test, data.y_test), problem.w0).value
    print(f"{name:>15}: trace {traces[name]:.3f} (bound {bound:.3f}), test accuracy {accuracies[name]:.3f}")

colours = zip(traces, ("green", "red", "ink"), strict=True)
series = [
    {"x": [traces[name]], "y": [accuracies[name]], "kind": "crosses", "colour": colour, "label": name}
    for name, colour in colours
]
panel = {"x": "tr ∇²L", "y": "test accuracy", "limits": {"y": [-0.1, 1.3]}, "series": series}
panel |= {"places": [{"at": bound, "label": "lower bound"}], "legend": "upper right"}
numbers = {"title": "The flattest minima can generalise or memorise", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/flattest_minima_that_differ")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

for name, accuracy in (("generalising", 1.0), ("memorising", 0.0)):
    assert abs(traces[name] / bound - 1) < 1e-4  # float32
    assert accuracies[name] == accuracy
