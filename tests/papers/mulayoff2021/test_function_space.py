"""A net on a line against its piecewise-linear form; g against its definition; Lemma 4 over families of nets."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steppe
from steppe.check import ArgumentError
from steppe.networks import OneHidden
from steppe.papers.mulayoff2021.theory import (
    chain,
    flattest_implementation,
    least_sharpness,
    leftward,
    piecewise_linear,
    rightward,
    weight,
    weighted_roughness,
)


def net(seed, *, d=1, k=7, shared=False, flat=False):
    """`shared`: several neurons share one threshold, some with opposite signs; `flat`: a neuron with w₁ = 0."""
    rng = np.random.default_rng(seed)
    params = OneHidden().init(d, k, rng, scale=2.0)
    if shared:
        params["W1"][1:4] = params["W1"][0] * np.array([[1.0], [-1.0], [2.0]])
        params["b1"][1:4] = params["b1"][0] * np.array([1.0, -1.0, 2.0])
    if flat:
        params["W1"][-1] = 0.0
    return params, rng


def forward(params, x):
    """The network in numpy: JAX would compile again for every size that hypothesis tries."""
    return np.maximum(np.outer(x, params["W1"][:, 0]) + params["b1"], 0) @ params["W2"] + params["b2"]


@given(st.integers(0, 10_000), st.integers(4, 12), st.booleans(), st.booleans())
def test_the_form_is_the_function(seed, k, shared, flat):
    params, rng = net(seed, k=k, shared=shared, flat=flat)
    f = piecewise_linear(params)
    x = np.concatenate([f.knots, 4 * rng.normal(size=30), [-1e3, 1e3]])
    np.testing.assert_allclose(f(x), forward(params, x), rtol=1e-11, atol=1e-11)
    assert (np.diff(f.knots) > 0).all()
    assert len(f.slopes) == len(f.knots) + 1
    # Slopes on both sides of every knot, read off the network itself. Pieces narrower than 1e-6 are left alone.
    for knot, jump in zip(f.knots, f.jumps, strict=True):
        if np.sort(np.abs(f.knots - knot))[1:2].min(initial=1.0) > 1e-6 and abs(knot) < 1e3:
            h = 1e-7
            left, middle, right = forward(params, np.array([knot - h, knot, knot + h]))
            # Rounding of f, about 1e-14 here, divided by h.
            assert (right - 2 * middle + left) / h == pytest.approx(jump, rel=1e-5, abs=1e-5)


def test_shared_thresholds_are_merged():
    """Two neurons that open to opposite sides make a line or an absolute value, by the sign of w₂ alone."""
    line = piecewise_linear({"W1": [[1.0], [-1.0]], "b1": [-1.0, 1.0], "W2": [1.0, -1.0], "b2": 0.0})
    assert (len(line.knots), line.slope, line.offset) == (0, 1.0, -1.0)
    hat = piecewise_linear({"W1": [[3.0], [-1.0]], "b1": [-1.0, 1 / 3], "W2": [1.0, 3.0], "b2": 0.0})
    assert len(hat.knots) == 1
    assert hat.jumps[0] == pytest.approx(6.0)


def test_variation_and_roughness():
    f = piecewise_linear({"W1": [[1.0], [-1.0], [1.0]], "b1": [0.0, 0.0, -1.0], "W2": [1.0, 1.0, -2.0], "b2": 0.0})
    x = np.linspace(-1, 2, 30_001)
    # |x| up to 1, then down again: ∫|f′| over (−1, 2) = 1 + 1 + 1.
    assert f.variation(-1.0, 2.0) == pytest.approx(np.abs(np.diff(f(x))).sum()) == pytest.approx(3.0)
    assert (f.roughness(), f.roughness(0.5, 9.0), f.roughness(0.0, 1.0)) == (4.0, 2.0, 0.0)
    knots, weights = f.second_derivative(-1.0, 0.5)
    assert (knots.tolist(), weights.tolist()) == ([0.0], [2.0])


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8), st.floats(-4, 4))
def test_g_is_its_definition(points, at):
    """P² E[X − τ | X > τ] √(1 + E[X | X > τ]²), sample by sample."""
    for side, function in ((1, rightward), (-1, leftward)):
        beyond = [p for p in points if side * p > side * at]
        expected = 0.0
        if beyond:
            mean = np.mean(beyond)
            expected = (len(beyond) / len(points)) ** 2 * abs(mean - at) * np.sqrt(1 + mean**2)
        assert function(points, [at])[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert weight(points, [at])[0] == min(rightward(points, [at])[0], leftward(points, [at])[0])


def test_g_is_zero_outside_the_data_and_largest_inside():
    x = np.random.default_rng(0).normal(size=20)
    grid = np.linspace(x.min(), x.max(), 401)
    g = weight(x, grid)
    assert weight(x, [x.min() - 1, x.max() + 1, x.max()]).tolist() == [0.0, 0.0, 0.0]
    assert np.quantile(x, 0.2) < grid[g.argmax()] < np.quantile(x, 0.8)


@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_lemma_4(seed, k, d, n, shared):
    params, rng = net(seed, d=d, k=k, shared=shared and d == 1, flat=True)
    x = rng.normal(size=(n, d))
    links = chain(params, x)
    assert links.slack >= 1 - 1e-12  # the rounding of sums of a few dozen terms
    assert len(links.values) == (6 if d == 1 else 3)
    # The function's bound is below every implementation's sharpness, the flattest included.
    best = flattest_implementation(params, x)
    assert links.values[-1] <= best.value * (1 + 1e-9)


def test_ends_of_the_chain_by_other_means():
    params, rng = net(3)
    x = rng.normal(size=(6, 1))
    p = steppe.Problem(OneHidden(), params, x, OneHidden()(params, x), steppe.losses.half_mse)
    links = chain(params, x)
    assert links.sharpness == pytest.approx(np.linalg.eigvalsh(jax.jit(jax.hessian(p.loss))(p.w0))[-1], rel=1e-12)
    f = piecewise_linear(params)
    total = sum(abs(j) * weight(x, [t])[0] for t, j in zip(f.knots, f.jumps, strict=True))
    assert weighted_roughness(f, x) == pytest.approx(total)
    assert links.function == least_sharpness(f, x) == pytest.approx(1 + 2 * total)


def test_every_link_can_be_strict_and_can_be_tight():
    """With one point and one balanced neuron that is active on it the first three links are equal."""
    # ‖x′‖ = √2 and relu = h: (w₂√2)² = h² makes α² + β² = 2αβ.
    tight = chain({"W1": [[1.0]], "b1": [1.0], "W2": [np.sqrt(2)], "b2": 0.0}, [[1.0]])
    assert tight.sharpness == pytest.approx(tight.mean) == pytest.approx(tight.product) == pytest.approx(9.0)
    params, rng = net(1, shared=True, flat=True)
    params["b1"][-1] = 1.0  # the neuron without slope is alive,
    params["b1"][:4] = -0.1 * params["W1"][:4, 0]  # the shared threshold lies among the data,
    params["W2"][:4] = [1.0, -1.0, 0.5, 1.0]  # and its neurons do not agree
    loose = chain(params, rng.normal(size=(7, 1))).values
    assert all(a > b for a, b in pairwise(loose))


def test_vector_inputs_trained_and_bounded():
    """Gradient descent on inputs in the plane: λ_max ≤ 2/η, and the links that do not need a line."""
    rng = np.random.default_rng(7)
    x, y, lr = rng.normal(size=(4, 2)), rng.normal(size=4), 0.05
    p = steppe.Problem(OneHidden(), OneHidden().init(2, 20, rng), x, y, steppe.losses.half_mse)
    done = steppe.run(p, steppe.dynamics.GD(lr), stop=steppe.until.loss(1e-12) | steppe.until.steps(100_000))
    assert done.outcome == "reached"
    params = {name: np.asarray(a) for name, a in p.unravel(done.w).items()}
    links = chain(params, x)
    assert links.slack >= 1 - 1e-12
    assert links.sharpness <= 2 / lr
    assert links.product <= flattest_implementation(params, x).value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: piecewise_linear(net(0, d=2)[0]), "one input and one output"),
        (lambda: chain(net(0)[0], np.zeros((0, 1))), "x must be of shape"),
        (lambda: weight(np.zeros((3, 2)), [0.0]), "x must be one number for each example"),
        (lambda: chain({"W1": [[1.0]], "b1": [0.0], "W2": [[1.0], [2.0]], "b2": [0.0, 0.0]}, [[1.0]]), "one output"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
