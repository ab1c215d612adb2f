"""Optimisers of optax as dynamics: against our own, against numpy, and killed and resumed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import least_squares, tanh_net, two_layer

import steppe
from steppe import until, when
from steppe.check import ArgumentError
from steppe.dynamics import GD, Decayed, HeavyBall, LabelNoise, Optax, run_many

optax = pytest.importorskip("optax")
P = tanh_net()


@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize(
    ("transformation", "own"),
    [
        (optax.sgd(0.05), lambda size: GD(0.05, batch_size=size)),
        (
            optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.05)),
            lambda size: GD(0.05, weight_decay=0.1, batch_size=size),
        ),
        (optax.sgd(0.05, momentum=0.9), lambda size: HeavyBall(0.05, 0.9, size)),
    ],
    ids=["sgd", "weight decay", "momentum"],
)  # fmt: skip
def test_equals_our_own_dynamics(transformation, own, size):
    a, b = (steppe.run(P, move, stop=until.steps(60), key=2) for move in (Optax(transformation, size), own(size)))
    # 60 steps of rounding at a rate far below 2/λ.
    np.testing.assert_allclose(a.w, b.w, rtol=1e-11, atol=1e-13)
    assert (a.outcome, a.steps, a.gradients) == (b.outcome, b.steps, b.gradients)


def test_adam_written_out():
    """Kingma and Ba 2015, algorithm 1."""
    p, lr, b1, b2, eps = least_squares(), 0.05, 0.9, 0.999, 1e-8
    X, y, w = np.asarray(p.x), np.asarray(p.y), np.asarray(p.w0).copy()
    m = v = np.zeros_like(w)
    for t in range(1, 101):
        g = X.T @ (X @ w - y) / len(y)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        w = w - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    r = steppe.run(p, Optax(optax.adam(lr)), stop=until.steps(100))
    np.testing.assert_allclose(r.w, w, rtol=1e-9)


class Killing:
    """A checkpoint that ends the run at its third save."""

    def __init__(self):
        self.saves, self.kept = 0, None

    def load(self):
        return self.kept

    def due(self):
        return True

    def save(self, arrays):
        self.saves += 1
        self.kept = {name: np.array(array) for name, array in arrays.items()}
        if self.saves == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "transformation",
    [optax.adamw(0.01), optax.add_noise(0.1, 0.5, 3), optax.sgd(optax.cosine_decay_schedule(0.1, 40), momentum=0.5)],
    ids=["adamw", "a key in the state", "a schedule"],
)
def test_a_killed_run_resumes_to_the_bit(transformation):
    def go(checkpoint=None):
        move = Optax(transformation, 3)
        return steppe.run(P, move, stop=until.epochs(12), when=when.every(steps=7), checkpoint=checkpoint, key=5)

    whole, checkpoint = go(), Killing()
    with pytest.raises(KeyboardInterrupt):
        go(checkpoint)
    again = go(checkpoint)
    np.testing.assert_array_equal(whole.w, again.w)
    np.testing.assert_array_equal(whole.records["loss"], again.records["loss"])
    assert (whole.steps, whole.gradients) == (again.steps, again.gradients)


def test_a_transformation_gets_the_loss_it_asks_for():
    """The step of Polyak, (L − L*)/‖∇L‖² along −∇L, halves the distance to the minimum of ½w²."""
    p = steppe.Problem(lambda w, x: w * x, jnp.ones(1), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    assert steppe.run(p, Optax(optax.polyak_sgd()), stop=until.steps(3)).w.tolist() == [0.125]


def test_a_line_search_gets_the_function():
    """L-BFGS solves least squares in five dimensions in a few dozen steps."""
    p = least_squares()
    best = np.linalg.lstsq(np.asarray(p.x), np.asarray(p.y), rcond=None)[0]
    r = steppe.run(p, Optax(optax.lbfgs()), stop=until.steps(40))
    np.testing.assert_allclose(r.w, best, rtol=1e-6)


def test_a_transformation_sees_the_parameters_by_name():
    p = two_layer()
    only = optax.chain(optax.masked(optax.set_to_zero(), {"W1": False, "W2": True, "b1": True}), optax.sgd(0.1))
    before, after = (p.unravel(w) for w in (p.w0, steppe.run(p, Optax(only), stop=until.steps(3)).w))
    assert (before["W1"] != after["W1"]).any()
    for name in ("W2", "b1"):
        np.testing.assert_array_equal(before[name], after[name])


def test_many_runs_and_wrappers():
    adam = Optax(optax.adam(0.01))
    starts = np.stack([P.w0, -P.w0])
    for k, w in enumerate(run_many(P, adam, starts, stop=until.steps(15)).w):
        np.testing.assert_allclose(w, steppe.run(P, adam, starts[k], stop=until.steps(15)).w, rtol=1e-11)
    p = two_layer()
    r = steppe.run(p, Decayed(LabelNoise(adam, 0.1), {"W1"}, 1.0), stop=until.steps(2))
    assert not jnp.any(p.unravel(r.w)["W1"])


def test_single_precision():
    p = two_layer(dtype=np.float32)
    assert steppe.run(p, Optax(optax.adam(0.01)), stop=until.steps(3)).w.dtype == np.float32


@pytest.mark.parametrize("bad", [None, 0.1, optax.adam, "adam", jax.nn.relu])
def test_what_is_no_transformation_is_refused(bad):
    with pytest.raises(ArgumentError, match=r"transformation must be an optax.GradientTransformation.*optax.adam"):
        Optax(bad)
