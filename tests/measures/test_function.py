"""Loss, accuracy, margins, norms and distance, by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import tanh_net, two_layer
from oracles.dense_curvature import problem

import steppe
from steppe import measures
from steppe.check import ArgumentError

SIGNS, CLASSES = "signs", "classes"
LOGISTIC, CROSS_ENTROPY = steppe.losses.logistic(), steppe.losses.cross_entropy
SQUARES = (steppe.losses.mse, steppe.losses.half_mse)
# (loss, shape of the predictions, kind of targets, how they are read)
READINGS = [
    *((loss, s, y, SIGNS) for loss in SQUARES for s in ((9,), (9, 1), (9, 4, 1)) for y in ("±1", "real")),
    *((loss, s, y, CLASSES) for loss in SQUARES for s in ((9, 3), (9, 4, 3)) for y in ("±1", "one-hot", "real")),
    *((LOGISTIC, s, "±1", SIGNS) for s in ((9,), (9, 1), (9, 3), (9, 4, 1), (9, 4, 3))),
    *((CROSS_ENTROPY, s, "numbers", CLASSES) for s in ((9, 1), (9, 3), (9, 4, 1), (9, 4, 3))),
]


def predicts(f, y, loss):
    """A problem whose parameters are its predictions."""
    return steppe.Problem(lambda w, x: w, np.asarray(f), np.zeros(len(y)), y, loss)


def targets(kind, shape, rng):
    if kind == "numbers":
        return rng.integers(shape[-1], size=shape[:-1])
    if kind == "one-hot":
        return np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
    return rng.normal(size=shape) if kind == "real" else rng.choice([-1.0, 1.0], size=shape)


def margins_by_hand(f, y, reading):
    if reading == SIGNS:
        return [a * b for a, b in zip(f.ravel(), y.ravel(), strict=True)]
    numbers = y if y.shape != f.shape else y.argmax(-1)
    rows = zip(f.reshape(-1, f.shape[-1]), numbers.ravel(), strict=True)
    return [row[c] - max(np.delete(row, c), default=-np.inf) for row, c in rows]


@pytest.mark.parametrize(("loss", "shape", "kind", "reading"), READINGS, ids=str)
def test_what_is_right_by_loss_and_shape(loss, shape, kind, reading):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=shape), targets(kind, shape, rng)
    p, margins = predicts(f, y, loss), margins_by_hand(f, y, reading)
    assert measures.zero_one_error(p, p.w0).value == np.mean([m <= 0 for m in margins])
    assert measures.accuracy(p, p.w0).value == 1 - measures.zero_one_error(p, p.w0).value
    assert measures.margin(p, p.w0).value == min(margins)
    if np.isfinite(margins).all():  # one class has no other to be told from
        assert measures.margin(p, p.w0, quantile=0.3).value == pytest.approx(np.quantile(margins, 0.3), rel=1e-12)


@pytest.mark.parametrize(("loss", "shape", "kind", "reading"), READINGS, ids=str)
def test_a_prediction_of_nan_is_wrong(loss, shape, kind, reading):
    y = targets(kind, shape, np.random.default_rng(0))
    p = predicts(y if y.shape == shape else np.eye(shape[-1])[y], y, loss)
    assert measures.accuracy(p, p.w0).value == 1
    predictions = p.w0.size if reading == SIGNS else p.w0.size // shape[-1]
    assert measures.zero_one_error(p, p.w0.at[0].set(jnp.nan)).value == 1 / predictions
    assert measures.zero_one_error(p, p.w0 * jnp.nan).value == 1
    assert measures.accuracy(p, p.w0 * jnp.nan).value == 0


def test_signs_of_several_outputs_count_one_by_one():
    p = predicts(np.array([[2.0, 1.0], [-1.0, -2.0]]), np.array([[1.0, -1.0], [1.0, -1.0]]), LOGISTIC)
    assert measures.accuracy(p, p.w0).value == 0.5
    assert measures.margin(p, p.w0).value == -1.0


@pytest.mark.parametrize("measure", [measures.loss, measures.norm, measures.distance, measures.margin])
def test_what_is_nan_has_not_converged(measure):
    p = two_layer()
    e = measure(p, p.w0.at[3].set(jnp.nan))
    assert all(map(math.isnan, (e.value, e.lower, e.upper)))
    assert not e.converged
    assert measure(p, p.w0).converged


@pytest.mark.parametrize("order", [1, 2, "nuclear"])
def test_the_norms_of_the_layers_that_are_finite(order):
    p = tanh_net()
    params = p.unravel(p.w0)
    w = {"hidden": params["hidden"], "out": params["out"].at[0, 0].set(jnp.nan)}
    norms = measures.layer_norms(p, jnp.concatenate([a.ravel() for a in jax.tree.leaves(w)]), order=order)
    assert {name for name, e in norms.items() if not e.converged} == {"['out']"}
    assert norms["['hidden'][0]"].is_exact


def test_a_loss_of_your_own_may_have_class_numbers():
    own = steppe.losses.Loss("own", lambda f, y: jnp.sum(f) * y, lambda shape, y: None)
    f = np.array([[2.0, 1.0], [-1.0, -2.0]])
    p = predicts(f, np.array([0, 1]), own)
    assert (measures.accuracy(p, p.w0).value, measures.margin(p, p.w0).value) == (0.5, -1.0)
    odd = predicts(f, np.ones((2, 3)), own)
    with pytest.raises(ArgumentError, match=r"y must be of the shape of the predictions, \(2, 2\), or class numbers"):
        measures.accuracy(odd, odd.w0)


def test_an_infinite_margin_is_a_margin():
    p = predicts(np.array([1.0, -2.0]), np.array([1.0, 1.0]), LOGISTIC)
    assert measures.margin(p, p.w0 * jnp.inf).value == -math.inf


def test_zero_one_error_by_hand():
    p = two_layer()
    f = np.asarray(p.predictions(p.w0))
    assert measures.zero_one_error(p, p.w0).value == (f * np.asarray(p.y) <= 0).mean()
    assert measures.accuracy(p, p.w0).value == 1 - measures.zero_one_error(p, p.w0).value


def test_an_output_of_zero_is_wrong():
    p = two_layer()
    assert measures.zero_one_error(p, np.zeros_like(p.w0)).value == 1.0


@pytest.mark.parametrize("loss", [steppe.losses.cross_entropy, steppe.losses.half_mse])
def test_classes_by_argmax(loss):
    p = tanh_net(loss=loss)
    f, y = np.asarray(p.predictions(p.w0)), np.asarray(p.y)
    classes = y if y.ndim == 1 else y.argmax(1)
    assert measures.zero_one_error(p, p.w0).value == (f.argmax(1) != classes).mean()


def test_loss():
    p = two_layer()
    assert measures.loss(p, p.w0).value == pytest.approx(float(p.loss(p.w0)), rel=1e-14)  # compiled sums reorder
    assert measures.loss(p, p.w0).is_exact


def test_norms_against_numpy():
    p = tanh_net()
    params = p.unravel(p.w0)
    W, b, V = (np.asarray(a) for a in (*params["hidden"], params["out"]))
    flat = np.concatenate([W.ravel(), b, V.ravel()])
    assert measures.norm(p, p.w0).value == pytest.approx(np.linalg.norm(flat), rel=1e-14)
    assert measures.norm(p, p.w0, order=1).value == pytest.approx(np.abs(flat).sum(), rel=1e-14)
    nuclear = sum(np.linalg.svd(M, compute_uv=False).sum() for M in (W, V))
    assert measures.norm(p, p.w0, order="nuclear").value == pytest.approx(nuclear, rel=1e-13)
    assert set(measures.layer_norms(p, p.w0)) == {"['hidden'][0]", "['hidden'][1]", "['out']"}


def test_unknown_order():
    p = two_layer()
    with pytest.raises(ArgumentError, match="order must be 1, 2 or 'nuclear'; got 3"):
        measures.norm(p, p.w0, order=3)


def test_margins_of_classes_by_hand():
    p = problem("tanh-cross-entropy")
    f, y = np.asarray(p.predictions(p.w0)), np.asarray(p.y)
    by_hand = [row[c] - np.delete(row, c).max() for row, c in zip(f, y, strict=True)]
    assert measures.margin(p, p.w0).value == pytest.approx(min(by_hand), rel=1e-14)
    assert measures.margin(p, p.w0, quantile=0.5).value == pytest.approx(np.median(by_hand), rel=1e-12)
    wrong = (np.asarray(by_hand) < 0).mean()
    assert measures.zero_one_error(p, p.w0).value == wrong


@pytest.mark.parametrize("name", ["two-layer", "tanh-logistic"])
def test_margins_of_signs(name):
    p = problem(name)
    by_hand = np.asarray(p.predictions(p.w0)) * np.asarray(p.y)
    assert measures.margin(p, p.w0).value == pytest.approx(by_hand.min(), rel=1e-14)


def test_a_quantile_is_a_fraction():
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="quantile must be between 0 and 1; got 2"):
        measures.margin(p, p.w0, quantile=2)


@pytest.mark.parametrize("order", [1, 2, "nuclear"])
def test_distance_is_the_norm_of_the_difference(order):
    p = problem("tanh-half-mse")
    w = p.w0 + np.random.default_rng(0).normal(size=p.w0.size)
    assert measures.distance(p, w, order=order) == measures.norm(p, w - p.w0, order=order)
    assert measures.distance(p, w, to=w).value == 0.0
    assert measures.distance(p, w, to=p.unravel(p.w0)) == measures.distance(p, w)
