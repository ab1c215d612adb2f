"""Losses of users: what is known of ours by name is not assumed of them, whatever name they carry."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import two_layer
from oracles.dense_curvature import assert_close, dense

import steppe
from steppe import Accuracy, measures
from steppe import curvature as operators
from steppe.check import ArgumentError
from steppe.losses import Loss, logistic, ours

EXAMPLES = {
    "convex": lambda f, y: jnp.sum((f - y) ** 4),
    # ∇²ℓ of both signs, and for several outputs not diagonal.
    "not convex": lambda f, y: jnp.sum(jnp.cos(2 * f - y)) + jnp.prod(f - y),
}
NAMES = ("own", "mse", "half_mse", "cross_entropy", "logistic")


@cache  # one object for each, so that compiled code is shared
def loss(example, name):
    return Loss(name, EXAMPLES[example], lambda shape, y: None)


def scalar(w, x):
    return jnp.tanh(x @ w)


def vector(params, x):
    return jnp.tanh(x @ params["V"]) @ params["U"]


def problem(outputs, n, example, name="own"):
    """24 parameters and n · c rows, or 6 and n."""
    rng = np.random.default_rng(0)
    if outputs == 1:
        return steppe.Problem(
            scalar, rng.normal(size=6), rng.normal(size=(n, 6)), rng.normal(size=n), loss(example, name)
        )
    params = {"V": rng.normal(size=(3, 4)), "U": rng.normal(size=(4, 3))}
    return steppe.Problem(vector, params, rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), loss(example, name))


# Fewer and more rows than parameters, one output and several, convex and not: every two of these together.
@pytest.mark.parametrize(
    ("outputs", "n", "example"), [(1, 2, "not convex"), (1, 9, "convex"), (3, 2, "convex"), (3, 10, "not convex")]
)
def test_gauss_newton_of_a_users_loss(outputs, n, example):
    p = problem(outputs, n, example)
    G = dense(p).gauss_newton
    truth = np.linalg.eigvalsh(G)[::-1]
    curvature = operators.gauss_newton
    assert_close(curvature(p, p.w0).dense(), G)
    assert (truth[-1] < -1e-3) == (example == "not convex")
    size = np.abs(truth).max()
    top = measures.sharpness(p, curvature=curvature, accuracy=Accuracy(1e-9))
    norm = measures.spectral_norm(p, curvature=curvature, accuracy=Accuracy(1e-9))
    several = measures.top_eigenvalues(p, k=3, curvature=curvature, accuracy=Accuracy(1e-9))
    found = [top.value, norm.value, *(e.value for e in several)]
    np.testing.assert_allclose(found, [truth[0], size, *truth[:3]], rtol=0, atol=1e-9 * size)
    assert measures.trace(p, p.w0).parts["gauss_newton"].value == pytest.approx(np.trace(G), rel=1e-12)


@cache
def truth():
    return np.linalg.eigvalsh(dense(problem(1, 2, "convex")).gauss_newton)[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_proof(name):
    p = problem(1, 2, "convex", name)
    assert not ours(p.loss_function)
    found = measures.sharpness(p, p.w0, curvature=operators.gauss_newton).value
    assert found == pytest.approx(truth(), rel=1e-3)  # the default rtol
    for refused in (operators.fisher, measures.fisher_sharpness, measures.fisher_trace):
        with pytest.raises(ArgumentError, match=r"one of steppe\.losses for the Fisher matrix.*take gauss_newton"):
            refused(p, p.w0)


def test_the_gram_matrix_of_a_users_loss_is_refused_with_another_way():
    p = problem(1, 2, "convex")
    with pytest.raises(ArgumentError, match=r"root of G; got .*'own'.*take products, gauss_newton\(problem, w\)"):
        operators.gram(operators.gauss_newton, p, p.w0)
    operators.gram(operators.empirical_fisher, p, p.w0)  # the slopes of any loss are its root


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_ours_are_known(smoothing):
    known = (steppe.losses.mse, steppe.losses.half_mse, steppe.losses.cross_entropy, logistic(smoothing=smoothing))
    assert all(ours(loss) for loss in known)
    assert not ours(Loss("logistic", known[3].example, known[3].check_targets, 0.7))


@pytest.mark.parametrize("name", NAMES[1:])
def test_training_follows_a_users_loss(name):
    """A kernel that knew it by name would follow another gradient."""
    p = two_layer()
    params = p.unravel(np.asarray(p.w0))
    p, q = (steppe.Problem(p.predict, params, p.x, p.y, loss("convex", n)) for n in (name, "own"))
    stop = steppe.until.steps(3)
    named, own = (steppe.run(a, steppe.dynamics.GD(1e-3), stop=stop).w for a in (p, q))
    np.testing.assert_array_equal(named, own)
    assert not np.array_equal(named, p.w0)
