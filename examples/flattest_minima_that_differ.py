"""Two nets with the least trace there is: one has learned the rule, the other knows only its training set (wen2023)."""

import numpy as np

import steppe
from steppe.data import xor
from steppe.flattening import _memorising as memorising
from steppe.networks import TwoLayer
from steppe.papers.wen2023.theory import bounds, generalising

d, n = 30, 100
data = xor(d, n, test=2_000, replace=False, key=0)
bound = bounds.two_layer_bias(data.x, data.y)

for name, exact in (("generalising", generalising.xor(d)), ("memorising", memorising.two_layer(data.x, data.y))):
    params = {key: array.astype(np.float32) for key, array in exact.items()}
    problem = steppe.Problem(TwoLayer(), params, data.x, data.y, loss=steppe.losses.mse)
    trace = steppe.measures._trace(problem, problem.w0).value
    accuracy = steppe.measures.accuracy(problem.on(data.x_test, data.y_test), problem.w0).value
    print(f"{name:>13}: trace {trace:.3f} (bound {bound:.3f}), test accuracy {accuracy:.3f}")
    assert abs(trace / bound - 1) < 1e-4  # float32
    assert accuracy == (1.0 if name == "generalising" else 0.0)
