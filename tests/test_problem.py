import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import FAMILY, two_layer

import steppe
from steppe.check import ArgumentError


def linear(w, x):
    return x @ w


def make(predict=linear, params=None, x=None, y=None, loss=steppe.losses.mse):
    return steppe.Problem(
        predict,
        np.ones(2) if params is None else params,
        np.ones((3, 2)) if x is None else x,
        np.zeros(3) if y is None else y,
        loss,
    )


@pytest.mark.parametrize("name", [n for n in FAMILY if n != "batch-statistics"])
def test_loss_is_the_mean_of_example_losses(name):
    p = FAMILY[name]()
    each = np.asarray(jax.jit(jax.vmap(p.example_loss, (None, 0)))(p.w0, jnp.arange(len(p))))
    np.testing.assert_allclose(jax.jit(p.loss)(p.w0), each.mean(), rtol=1e-14)
    some = np.array([0, 3, 2])
    np.testing.assert_allclose(jax.jit(p.batch_loss)(p.w0, some), each[some].mean(), rtol=1e-14)


@pytest.mark.parametrize("name", FAMILY)
def test_unravel_gives_the_parameters_back(name):
    p = FAMILY[name]()
    params = p.unravel(p.w0)
    again = steppe.Problem(p.predict, params, p.x, p.y, p.loss_function)
    assert jax.tree.structure(params) == jax.tree.structure(again.unravel(again.w0))
    np.testing.assert_array_equal(again.w0, p.w0)
    np.testing.assert_array_equal(p.vector(params), p.w0)


def test_problems_of_one_shape_share_compiled_code():
    traces = []

    def predict(w, x):
        traces.append(1)
        return x @ w

    rng = np.random.default_rng(0)
    value = jax.jit(lambda p, w: p.loss(w))
    for _ in range(3):
        p = steppe.Problem(predict, rng.normal(size=2), rng.normal(size=(3, 2)), rng.normal(size=3), steppe.losses.mse)
        before = len(traces)
        value(p, p.w0)
        compiled = len(traces) - before
    assert compiled == 0


def test_precision_follows_the_parameters():
    p = make(params=np.ones(2, np.float32), x=np.ones((3, 2), np.float64))
    assert p.x.dtype == p.y.dtype == p.w0.dtype == p.loss(p.w0).dtype == jnp.float32


def test_float64_parameters_need_64_bits():
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="jax_enable_x64"):
        make()


def test_a_number_of_python_is_of_the_precision_in_use():
    for wide, dtype in ((True, np.float64), (False, np.float32)):
        with jax.enable_x64(wide):
            assert make(lambda w, x: w * x[:, 0], params=2.0).w0.dtype == dtype


def test_pytree_inputs():
    x = {"a": np.ones((3, 2)), "b": np.arange(3)}
    p = make(lambda w, x: x["a"] @ w + x["b"], x=x)
    assert float(p.example_loss(p.w0, 2)) == 16.0


def test_on_other_data():
    p = two_layer()
    test = p.on(np.ones((4, 6)), np.ones(4))
    assert len(test) == 4
    np.testing.assert_array_equal(test.w0, p.w0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros((3, 1))}, r"y must be of the shape that predict returns, \(3,\)"),
        ({"y": np.zeros(4)}, "x must be 4 rows"),
        ({"y": np.array([0.0, np.nan, 0.0])}, "y must be finite; 1 of 3"),
        ({"x": np.full((3, 2), np.inf)}, "x must be finite; 6 of 6"),
        ({"params": np.array([1, 2])}, "params must be of a real floating type; got 'int64'"),
        ({"params": np.array([1.0, np.nan])}, "params must be finite"),
        ({"params": {}}, "params must be a pytree with at least one array"),
        ({"params": np.ones(0)}, "params must be a pytree with at least one array that is not empty"),
        ({"params": {"w": np.ones(2), "act": "relu"}}, r"params\['act'\] must be an array"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0)}, "y must be an array with one row an example, not empty"),
        ({"loss": "mse"}, "loss must be a loss of steppe.losses; got 'mse'"),
        ({"loss": steppe.losses.logistic()}, "y must be -1 or \\+1"),
        ({"loss": steppe.losses.cross_entropy}, "one class number for each row"),
        ({"predict": 3}, "predict must be a function"),
        ({"predict": lambda w, x: x.sum()}, "an array of 3 rows"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    with pytest.raises(ArgumentError, match=message):
        make(**change)


def test_wrong_vector():
    p = make()
    with pytest.raises(ArgumentError, match="w must be a flat vector of 2 parameters"):
        p.vector(np.ones(3))


def test_the_pytree_is_a_vector_too():
    W = np.arange(6.0).reshape(2, 3)
    alone = make(lambda w, x: x @ w[:, 0], params=W)
    inside = make(lambda w, x: x @ w["W"][:, 0], params={"W": W})
    for p, w in ((alone, W), (alone, jnp.asarray(W)), (inside, {"W": W})):
        np.testing.assert_array_equal(p.vector(w), W.ravel())
    for p, w in ((alone, W.T), (inside, {"W": W.T}), (inside, {"V": W}), (inside, None)):
        with pytest.raises(ArgumentError, match="w must be a flat vector of 6 parameters"):
            p.vector(w)


def test_class_numbers_in_range():
    with pytest.raises(ArgumentError, match="integers from 0 to 1"):
        make(lambda w, x: x * w[None], y=np.array([0, 1, 2]), loss=steppe.losses.cross_entropy)


def test_methods_are_ordinary_functions_to_jax():
    p = make()
    for transform in (jax.jit, jax.grad, jax.hessian, lambda f: jax.jit(jax.grad(f))):
        transform(p.loss)(p.w0)
    assert hash(p.loss) == hash(p.loss)


def test_a_problem_is_frozen():
    p = make()
    with pytest.raises(AttributeError, match="frozen"):
        p.w0 = np.zeros(2)
    assert repr(p).endswith("2 parameters, 3 examples, mse)")
