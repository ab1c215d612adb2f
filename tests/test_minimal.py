"""minimal.py and the package agree: two programs that share no line."""

import sys
from pathlib import Path

import numpy as np
import pytest

import steppe
from steppe import measures
from steppe.dynamics import SAM
from steppe.kernels.path import block
from steppe.papers.wen2023.training import Row, Training

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def minimal():
    sys.path.insert(0, str(ROOT))
    import minimal

    return minimal


def test_it_is_short():
    assert len((ROOT / "minimal.py").read_text().splitlines()) <= 150


def test_the_same_data_and_start(minimal):
    """Both draw from the same streams of the seed, so their figures show the same experiment."""
    problem, test = Training("bias", (Row(0.01, 0.05, 1, 0.0, 1),), seed=3).problems()
    data, start = (np.random.default_rng([3, k]) for k in range(2))
    x, y = minimal.hypercube(data, minimal.N)
    x_test, y_test = minimal.hypercube(data, minimal.TEST)
    for a, b in ((x, problem.x), (y, problem.y), (x_test, test.x), (y_test, test.y)):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(minimal.initial(start), (problem.unravel(problem.w0)[k] for k in ("W1", "b1", "W2")), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_same_steps_and_the_same_measures(minimal):
    """500 steps of 1-SAM in 64 bits over the same order, then loss, accuracy and trace."""
    problem, test = Training("bias", (Row(0.01, 0.05, 1, 0.0, 1),), precision="float64").problems()
    params = {k: np.array(v) for k, v in problem.unravel(problem.w0).items()}
    weights = [params[k] for k in ("W1", "b1", "W2")]
    x, y, x_test, y_test = (np.asarray(a) for a in (problem.x, problem.y, test.x, test.y))
    order = block(0, 100, 0)[:5].ravel()
    minimal.train(*weights, x, y, order, 0.01, 0.05)
    r = steppe.run(problem, SAM(0.01, 0.05), stop=steppe.until.epochs(5), key=0)
    for name, array in zip(("W1", "b1", "W2"), weights, strict=True):
        np.testing.assert_allclose(problem.unravel(r.w)[name], array, rtol=1e-9, atol=1e-12)
    loss, accuracy, trace = minimal.measure(*weights, x, y, x_test, y_test)
    assert loss == pytest.approx(measures.loss(problem, r.w).value, rel=1e-9)
    assert accuracy == measures.accuracy(test, r.w).value
    assert trace == pytest.approx(measures.trace(problem, r.w).value, rel=1e-9)
