"""The scale of the start decides
=================================

1-SAM finds the flattest two-layer ReLU networks with bias for 2-parity. From a small first layer they generalise, from
the ordinary one they do not: the same data, the same flatness. Draws test accuracy along training, to the path in the
first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np

import steppe
from steppe import dynamics, figures, losses, measures, until, when
from steppe.data import xor
from steppe.networks import TwoLayer
from steppe.papers.wen2023.theory import bounds

data, net = xor(d=30, n=100, test=2000, key=0), TwoLayer()
bound = bounds.two_layer_bias(data.x, data.y)
series, ends = [], {}
for scale, colour in ((1.0, "blue"), (0.1, "orange")):
    params = net.init(d=30, width=100, rng=np.random.default_rng(0))
    params = params | {"W1": params["W1"] * scale, "b1": params["b1"] * scale}
    problem = steppe.Problem(net, params, data.x, data.y, losses.mse)
    test = problem.on(data.x_test, data.y_test)
    run = steppe.run(
        problem,
        dynamics.SAM(lr=0.01, rho=0.05),
        stop=until.epochs(20_000),
        record={"accuracy": lambda _, w, test=test: measures.accuracy(test, w).value},
        when=when.logarithmic(per_decade=4),
    )
    trace = measures.trace(problem, run.w).value
    ends[scale] = run.records["accuracy"][-1], trace / bound
    print(f"start × {scale}: test accuracy {ends[scale][0]:.3f}, trace {ends[scale][1]:.3f} times the least possible")
    label = f"first layer × {scale}"
    series.append(figures.series(run.records["epoch"][1:], run.records["accuracy"][1:], "line", colour, label))

panel = {"x": "epochs of 1-SAM", "y": "test accuracy", "log": "x", "series": series}
numbers = {"title": "The scale of the start decides", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/where_the_start_decides")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

assert ends[0.1][0] > ends[1.0][0] + 0.05
assert all(ratio < 1.3 for _, ratio in ends.values())
