"""When flat means good: single-index models
============================================

A two-layer ReLU network with fixed inner weights fits labels that depend on one direction u of the input. The
more its inner weights look along u, the flatter its flattest interpolator, and the smaller its population loss
(multi-index). Draws both, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np

from steppe import data, figures
from steppe.activations import rectifier
from steppe.flattening import features, flattest_interpolator
from steppe.papers.multi_index.theory import correlated

d, n, m = 20, 100, 400
rng = np.random.default_rng(0)
U = data.orthonormal(1, d, key=0)
x, x_test = rng.normal(size=(n, d)), rng.normal(size=(5_000, d))
y, y_test = (np.maximum((z @ U.T)[:, 0], 0) for z in (x, x_test))

nus, flat, loss = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9), [], []
for nu in nus:
    W = correlated(m, U, nu, key=1)
    phi, q, p = features(W, x, rectifier)
    found = flattest_interpolator(phi, y, q, p)
    flat.append(found.flatness)
    loss.append(np.mean((np.maximum(x_test @ W.T, 0) @ found.a - y_test) ** 2))
    print(f"correlation {nu}: trace {flat[-1]:.1f}, population loss {loss[-1]:.4f}")

panel = {"x": "trace of the Hessian, flattest interpolator", "y": "population loss", "log": "xy"}
panel["series"] = [figures.series(flat, loss, "points", "blue", "one ν each, 0.05 to 0.9")]
numbers = {"title": "Flatter is better, in a single-index model", "panels": [panel]}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/flattest_interpolator_generalises")
print("wrote", *figures.save(figures.panels(numbers), numbers, stem))

order = np.argsort(flat)
assert np.corrcoef(np.argsort(np.argsort(flat)), np.argsort(np.argsort(loss)))[0, 1] > 0.9
