"""Many step sizes at once: against gradient descent written out in numpy, and against the generic path by autodiff."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steppe
from steppe import losses, until
from steppe.check import ArgumentError
from steppe.dynamics import GD, minima
from steppe.kernels.one_hidden import active_set
from steppe.networks import OneHidden


def case(seed, *, n=6, k=7, ties=False):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n), rng.normal(size=n)
    if ties:
        x[1:3] = x[0]
    return x, y, OneHidden().init(1, k, rng)


def written_out(x, y, start, lr, steps, *, warmup=0, below=0.0, factor=1.0):
    """(parameters, loss after each step) with every sum over all neurons and examples."""
    w, b, v, c = start["W1"][:, 0].copy(), start["b1"].copy(), start["W2"].copy(), float(start["b2"])
    seen, boost = [], 1.0
    for t in range(steps + 1):
        h = x[:, None] * w + b
        r = np.maximum(h, 0) @ v + c - y
        seen.append(np.mean(r**2) / 2)
        if t == steps:
            break
        boost = factor if seen[-1] < below else boost
        r *= lr * boost * (min(1.0, (t + 1) / warmup) if warmup else 1.0) / len(x)
        delta = r[:, None] * (h > 0) * v
        w, b, v, c = w - x @ delta, b - delta.sum(0), v - r @ np.maximum(h, 0), c - r.sum()
    return np.concatenate([w, b, v, [c]]), seen


def flat(done, run):
    return np.concatenate([done.W1[run], done.b1[run], done.W2[run], done.b2[run : run + 1]])


@given(
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([(0, 0.0, 1.0), (20, 0.0, 1.0), (0, 0.3, 3.0)]),
)
def test_every_step_is_one_of_gradient_descent(seed, n, k, ties, schedule):
    x, y, start = case(seed, n=n, k=k, ties=ties and n >= 3)
    warmup, below, factor = schedule
    rates = [0.01, 0.1]
    done = minima(x, y, start, rates, loss=0.0, max_steps=40, warmup=warmup, below=below, factor=factor)
    for run, lr in enumerate(rates):
        w, seen = written_out(x, y, start, lr, int(done.steps[run]), warmup=warmup, below=below, factor=factor)
        # 40 steps of rounding, none of them near an instability at these rates.
        np.testing.assert_allclose(flat(done, run), w, rtol=1e-9, atol=1e-11)
        until_end = done.moments <= done.steps[run]
        np.testing.assert_allclose(
            done.losses[until_end, run], np.array(seen)[done.moments[until_end]], rtol=1e-8, atol=1e-20
        )


def test_the_generic_path_takes_the_same_steps():
    x, y, start = case(3, n=10, k=20)
    problem = steppe.Problem(OneHidden(), start, x[:, None], y, losses.half_mse)
    done = minima(x[:, None], y, start, [0.05], loss=0.0, max_steps=300)
    other = steppe.run(problem, GD(0.05), stop=until.steps(300))
    mine = steppe.Problem(OneHidden(), done.params(0), x[:, None], y, losses.half_mse)
    np.testing.assert_allclose(mine.w0, other.w, rtol=1e-9, atol=1e-11)
    assert done.loss[0] == pytest.approx(float(problem.loss(other.w)), rel=1e-9)


@given(st.floats(-3, 3), st.floats(-3, 3), st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_active_sets(a, b, x):
    x = np.sort(np.array(x))
    p, n, active = active_set(a, b, x), len(x), a * x + b > 0
    expected = np.arange(n) >= p if p <= n else np.arange(n) < p - n
    np.testing.assert_array_equal(active, expected)


class Interrupting:
    """A checkpoint that ends the run after a number of saves."""

    def __init__(self, saves):
        self.saves, self.kept = saves, None

    def load(self):
        return self.kept

    def due(self):
        return True

    def save(self, arrays):
        self.kept = {name: array.copy() for name, array in arrays.items()}
        self.saves -= 1
        if self.saves == 0:
            raise KeyboardInterrupt


def test_bits_do_not_depend_on_threads_or_interruptions():
    x, y, start = case(5, n=8, k=15)
    rates, options = np.geomspace(0.01, 0.5, 7), {"max_steps": 2_000, "warmup": 300}
    whole = minima(x, y, start, rates, **options)
    threaded = minima(x, y, start, rates, threads=2, **options)
    checkpoint = Interrupting(saves=40)
    with pytest.raises(KeyboardInterrupt):
        minima(x, y, start, rates, checkpoint=checkpoint, **options)
    resumed = minima(x, y, start, rates, checkpoint=checkpoint, **options)
    for other in (threaded, resumed):
        for name in ("W1", "b1", "W2", "b2", "loss", "steps", "losses"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))
        assert whole.outcome == other.outcome


def test_outcomes():
    """One neuron on one point: L = (w₂(w₁x + b₁) + b₂ − y)²/2."""
    start = {"W1": [[1.0]], "b1": [1.0], "W2": [1.0], "b2": 0.0}
    done = minima([0.0], [2.0], start, [0.1, 50.0], max_steps=200)
    assert done.outcome == ("reached", "diverged")
    assert done.loss[0] <= 1e-8
    assert np.isnan(done.losses[done.moments > done.steps[1], 1]).all()
    # A dead neuron, and b₂ already fitted: the loss of (0, 2) against their mean stays at ½.
    dead = {"W1": [[0.0]], "b1": [-1.0], "W2": [1.0], "b2": 1.0}
    done = minima([0.0, 1.0], [0.0, 2.0], dead, [0.1], max_steps=10**9)
    assert (done.outcome, float(done.loss[0])) == (("stalled",), 0.5)
    assert minima([0.0], [2.0], start, [0.001], max_steps=10).outcome == ("exhausted",)


def test_runs_that_end_in_the_warm_up_are_told():
    start = {"W1": [[1.0]], "b1": [1.0], "W2": [1.0], "b2": 0.0}
    done = minima([0.0], [2.0], start, [0.2], warmup=1_000)
    plain = minima([0.0], [2.0], start, [0.2])
    assert (done.warming[0], plain.warming[0]) == (True, False)
    assert plain.steps[0] < done.steps[0] < 1_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((3, 2))}, "x must be one number an example.*steppe.run"),
        ({"y": [1.0]}, "y must be of shape"),
        ({"y": [1.0, np.nan, 0.0]}, "y must be finite"),
        ({"lr": [0.1, -1.0]}, "lr must be a list of step sizes > 0"),
        ({"start": {"W1": [[1.0]]}}, "start must be parameters W1"),
        ({"max_steps": 0}, "max_steps must be a whole number"),
        ({"factor": 0.0}, "factor must be a finite number > 0"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_wrong_arguments(change, message):
    x, y, start = case(0, n=3, k=2)
    options = {"x": x, "y": y, "start": start, "lr": [0.1]} | change
    with pytest.raises(ArgumentError, match=message):
        minima(**options)
