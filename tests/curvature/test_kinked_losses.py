"""Losses of users: smooth ones are measured, whatever they are written with; kinked ones are refused by name."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.curvature._inputs import refuse_kinked_loss

DTYPES = [np.float64, np.float32]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
AWAY = RNG.uniform(0.2, 0.8, size=9)
# How far each example is from where the loss bends.
FITS = {"none": AWAY, "one": np.where(np.arange(9) == 0, 0.0, AWAY), "all": np.zeros(9)}


@cache  # one object for each, so that compiled code is shared
def loss(name):
    example = (SMOOTH | KINKED)[name][0]
    return steppe.losses.Loss(name, lambda f, y: jnp.sum(example(f, y)), lambda shape, y: None)


def linear(w, x):
    return x @ w


def squared(w, x):
    return x @ w**2


@cache
def _product(dtype):
    return np.asarray(jnp.asarray(X.astype(dtype)) @ jnp.ones(3, dtype))


def of(name, margins, dtype, *, target=None, predict=linear):
    """A net with f − y = margins, or y as `target` makes it of f and the margins."""
    x = X.astype(dtype)
    f = _product(dtype)  # as JAX rounds it
    y = f - margins.astype(dtype) if target is None else target(f, margins.astype(dtype))
    return steppe.Problem(predict, np.ones(3, dtype), x, y.astype(dtype), loss(name))


def huber_where(f, y):
    r = jnp.abs(f - y)
    return jnp.where(r < 1, 0.5 * r**2, r - 0.5)


def huber_minimum(f, y):
    """As optax.losses.huber_loss has it."""
    r = jnp.abs(f - y)
    quadratic = jnp.minimum(r, 1.0)
    return 0.5 * quadratic**2 + (r - quadratic)


# With the second derivative of each at |r| < 1.
SMOOTH = {
    "square": (lambda f, y: (f - y) ** 2, lambda r: 2.0 + 0 * r),
    "abs squared": (lambda f, y: jnp.abs(f - y) ** 2, lambda r: 2.0 + 0 * r),
    "abs cubed": (lambda f, y: jnp.abs(f - y) ** 3, lambda r: 6 * np.abs(r)),
    "huber, where": (huber_where, lambda r: 1.0 + 0 * r),
    "huber, minimum": (huber_minimum, lambda r: 1.0 + 0 * r),
    "log cosh": (lambda f, y: jnp.log(jnp.cosh(f - y)), lambda r: np.cosh(r) ** -2),
    "root": (lambda f, y: jnp.sqrt(1 + (f - y) ** 2), lambda r: (1 + r**2) ** -1.5),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_loss_is_measured(name, fit, dtype):
    _, bend = SMOOTH[name]
    p = of(name, FITS[fit], dtype)
    r = np.asarray(p.predictions(p.w0) - p.y, float)
    expected = np.linalg.eigvalsh(np.asarray(p.x, float).T @ (bend(r)[:, None] * np.asarray(p.x, float)) / 9)[-1]
    # Half of the digits: r itself is a difference.
    size = float(np.finfo(dtype).eps) ** 0.5
    assert measures.sharpness(p, p.w0).value == pytest.approx(expected, rel=max(1e-3, size), abs=size)


def at_the_margin(f, margins):
    """y = ±1 would leave f to be chosen; the margin 1 − fy is."""
    return (1 - margins) / f


# (loss, how y is made, what is said)
KINKED = {
    "absolute": (lambda f, y: jnp.abs(f - y), None, "slope jumps"),
    "maximum": (lambda f, y: jnp.maximum(f - y, 0.3 * (y - f)), None, "slope jumps"),
    "quantile": (lambda f, y: jnp.where(f > y, 0.9 * (f - y), 0.1 * (y - f)), None, "slope jumps"),
    "root of square": (lambda f, y: jnp.sqrt((f - y) ** 2), None, "derivatives are not finite"),
    "hinge": (lambda f, y: jax.nn.relu(1 - f * y), at_the_margin, "slope jumps"),
    "squared hinge": (lambda f, y: jax.nn.relu(1 - f * y) ** 2, at_the_margin, "second derivative jumps"),
    "huber at its bend": (lambda f, y: huber_where(f, y - 1), None, "second derivative jumps"),
    # Twice differentiable, but not by autodiff: at a tie it takes half of each side.
    "halves": (
        lambda f, y: jnp.maximum(f - y, 0) ** 2 + jnp.minimum(f - y, 0) ** 2,
        None,
        "second derivative autodiff gets wrong",
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("fit", "count"), [("one", 1), ("all", 9)])
@pytest.mark.parametrize("name", KINKED)
def test_a_kinked_loss_is_refused_by_name(name, fit, count, dtype):
    _, target, trouble = KINKED[name]
    p = of(name, FITS[fit], dtype, target=target)
    message = (
        f"loss must be twice differentiable at the predictions; got .*'{name}', whose {trouble} at {count} of them"
    )
    with pytest.raises(ArgumentError, match=message):
        measures.sharpness(p, p.w0)


@pytest.mark.parametrize("name", KINKED)
def test_elsewhere_the_same_loss_is_measured(name):
    _, target, _ = KINKED[name]
    wide, narrow = (of(name, FITS["none"], dtype, target=target, predict=squared) for dtype in DTYPES)
    assert np.isfinite(measures.sharpness(wide, wide.w0).value)
    refuse_kinked_loss(narrow, narrow.w0)  # which is what would not let it be measured


def test_a_second_derivative_that_jumps_for_one_example_of_many_is_measured():
    """One margin of 3000: 1/3000 of the curvature is in doubt, less than the 1e-3 that sharpness works to."""
    x = np.random.default_rng(1).normal(size=(3000, 2))
    f = x.sum(1)
    y = (1 - np.where(np.arange(3000) == 0, 0.0, 0.5)) / f
    p = steppe.Problem(linear, np.ones(2), x, y, loss("squared hinge"))
    weight = np.where(np.arange(3000) == 0, 0.0, 2 * y**2)
    expected = np.linalg.eigvalsh(x.T @ (weight[:, None] * x) / 3000)[-1]
    assert measures.sharpness(p, p.w0).value == pytest.approx(expected, rel=2e-3)


def test_several_outputs():
    """The margin of a class over the others: smooth away from ties, refused at one."""
    margin = steppe.losses.Loss("margin", lambda f, y: jnp.max(f[1:]) - f[0], lambda shape, y: None)

    def predict(w, x):
        return x[:, None] * w[None] ** 2

    away = steppe.Problem(predict, np.array([1.0, 2.0, 3.0]), np.ones(2), np.zeros(2), margin)
    assert measures.sharpness(away, away.w0).value == pytest.approx(2.0, rel=1e-3)  # w₃² − w₁²
    with pytest.raises(ArgumentError, match="'margin', whose slope jumps at 2 of them"):
        measures.sharpness(away, np.array([1.0, 2.0, 2.0]))


def test_in_the_space_of_outputs_too():
    """More parameters than examples: the Gram matrix is taken."""
    p = steppe.Problem(lambda w, x: x @ w, np.ones(3), np.ones((1, 3)), np.full(1, 3.0), loss("absolute"))
    with pytest.raises(ArgumentError, match="loss must be twice differentiable"):
        measures.fisher_sharpness(p, p.w0, empirical=True)
