"""steppe.flatten: the value by dense autodiff, the bound by search and by hand, the laws over a family of networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.flatten_nets import LAYERS, NETS, D, M, N, dense, drawn, jacobian, predictions, problem, rescaled
from scipy.optimize import minimize

import steppe
from steppe.activations import softplus, tanh
from steppe.check import ArgumentError
from steppe.flattening import Neurons
from steppe.flattening._neurons import Arrays
from steppe.networks import MLP, LayerNorm, SimBN, SimLN, TwoLayer


@pytest.mark.parametrize("name", NETS)
def test_laws(name):
    """The function stays the same, autodiff gives the same value, the gap is small, a second call changes nothing, and
    the result does not depend on how the input is rescaled."""
    p = problem(name)
    before, scale = dense(p, p.w0), np.max(np.abs(p.y))
    for measure in ("trace", "sharpness"):
        best = steppe.flatten(p, p.w0, measure=measure, layers=LAYERS.get(name))
        # Forward passes of sums of some ten terms, twice: a few hundred ulp of the largest.
        np.testing.assert_allclose(predictions(p, best.w), p.y, rtol=0, atol=1e-13 * scale)
        assert best.value == pytest.approx(dense(p, best.w)[measure], rel=1e-10)
        assert best.before == pytest.approx(before[measure], rel=1e-10)
        assert 0 <= best.gap <= 1e-6
        assert best.lower <= best.value < best.before
        assert best.unattained == ()
        again = steppe.flatten(p, best.w, measure=measure, layers=LAYERS.get(name))
        np.testing.assert_array_equal(again.w, best.w)
        moved = rescaled(p, best.layers, p.w0, 1)
        assert dense(p, moved)[measure] > 10 * best.before
        other = steppe.flatten(p, moved, measure=measure, layers=LAYERS.get(name))
        # Both are within their gaps of one number; the law is 1e-6.
        assert other.value == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("measure", ["trace", "sharpness"])
@pytest.mark.parametrize("name", ["mlp", "residual", "cubic"])
def test_search_finds_nothing_below(name, measure):
    """BFGS over the scales, with values from autodiff."""
    p = problem(name, seed=3)
    best = steppe.flatten(p, p.w0, measure=measure, layers=LAYERS.get(name))
    exponents, widths = Arrays.of(p).exponents(best.layers)
    A = exponents.matrix()
    J = np.asarray(jacobian(p.predict, p.unravel)(p.w0, p.x)[0]) / np.sqrt(N)

    def value(t):
        m = np.linalg.eigvalsh((J * np.exp(-2 * (A @ t))) @ J.T)
        return np.log(m.sum() if measure == "trace" else m[-1])

    found = np.exp(minimize(value, np.zeros(sum(widths)), method="BFGS").fun)
    assert found >= best.lower * (1 - 1e-12)
    # The trace is smooth and BFGS finds its minimum; at a multiple eigenvalue it stops above it.
    assert found == pytest.approx(best.value, rel=1e-7 if measure == "trace" else 0.05)


@pytest.mark.parametrize(
    "loss", [steppe.losses.mse, steppe.losses.logistic(smoothing=0.1), steppe.losses.cross_entropy]
)
def test_other_losses(loss):
    """Any loss that is convex in the outputs, with its Hessian by autodiff."""
    p = problem("stack")
    y = np.arange(N) % 2 if loss.name == "cross_entropy" else np.where(np.asarray(p.y) > 0, 1.0, -1.0)
    p = steppe.Problem(p.predict, p.unravel(p.w0), p.x, y, loss)
    f = jnp.asarray(predictions(p, p.w0))
    bend = jax.jit(jax.hessian(lambda g: loss(g.reshape(f.shape), p.y)))(f.ravel())
    for measure in ("trace", "sharpness"):
        best = steppe.flatten(p, p.w0, measure=measure)
        assert best.value == pytest.approx(dense(p, best.w, np.asarray(bend))[measure], rel=1e-10)
        assert best.gap <= 1e-6


def test_two_layers_by_hand():
    """Σ_k 2 √(A_k a_k² B_k): MATH.md 3 with c = 1, the loss without ½; and the bound of wen2023 for one point."""
    p = problem("no_bias", seed=5, loss=steppe.losses.mse)
    params = {k: np.asarray(a) for k, a in p.unravel(p.w0).items()}
    h, lengths = np.asarray(p.x) @ params["W1"].T, np.sum(np.asarray(p.x) ** 2, axis=1)
    A = 2 / N * np.sum(np.where(h > 0, h, 0.1 * h) ** 2, axis=0)
    B = 2 / N * np.sum(np.where(h > 0, 1.0, 0.01) * lengths[:, None], axis=0)
    expected = np.sum(2 * np.sqrt(A * B) * np.abs(params["W2"]))
    assert steppe.flatten(p, p.w0).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("c", [2, 3])
def test_two_layers_of_higher_degree_by_hand(c):
    """Σ_k (c + 1) c^{−c/(c+1)} A_k^{1/(c+1)} (a_k² B_k)^{c/(c+1)}: MATH.md 3, for relu^c."""

    def network(params, x):
        return jax.nn.relu(x @ params["W1"].T) ** c @ params["W2"]

    params, x = drawn({"W1": (M, D), "W2": (M,)}, 1), np.random.default_rng(2).normal(size=(N, D))
    p = steppe.Problem(network, params, x, network(params, x), steppe.losses.mse)
    h = np.maximum(x @ params["W1"].T, 0.0)
    A = 2 / N * np.sum(h ** (2 * c), axis=0)
    B = 2 / N * np.sum((c * h ** (c - 1)) ** 2 * np.sum(x**2, axis=1)[:, None], axis=0)
    expected = np.sum((c + 1) * c ** (-c / (c + 1)) * A ** (1 / (c + 1)) * (params["W2"] ** 2 * B) ** (c / (c + 1)))
    best = steppe.flatten(p, p.w0)
    assert best.value == pytest.approx(expected, rel=1e-12)
    assert best.lower == pytest.approx(expected, rel=1e-12)
    assert best.layers[0].degree == c


def test_w_is_w0_unless_given():
    p = problem("two_layer")
    np.testing.assert_array_equal(steppe.flatten(p).w, steppe.flatten(p, p.w0).w)


def test_single_precision():
    p = problem("two_layer", dtype=np.float32)
    best, exact = steppe.flatten(p, p.w0), problem("two_layer")
    assert best.w.dtype == jnp.float32
    # Sums of a few dozen squares in float32.
    assert best.value == pytest.approx(steppe.flatten(exact, exact.w0).value, rel=1e-5)


def test_neurons_that_do_nothing():
    """A neuron whose outgoing weights are zero is switched off; one that no example activates stays unchanged."""
    params = {"W1": np.ones((3, 1)), "b1": np.array([0.0, -9.0, 1.0]), "W2": np.array([2.0, 1.0, 0.0])}
    x = np.array([[1.0], [2.0]])
    p = steppe.Problem(TwoLayer(), params, x, TwoLayer()(params, x), steppe.losses.half_mse)
    alone = {"W1": np.ones((1, 1)), "b1": np.zeros(1), "W2": np.array([2.0])}
    q = steppe.Problem(TwoLayer(), alone, x, p.y, steppe.losses.half_mse)
    for measure in ("trace", "sharpness"):
        best = steppe.flatten(p, p.w0, measure=measure)
        assert best.value == pytest.approx(steppe.flatten(q, q.w0, measure=measure).value, rel=1e-9)
        assert best.gap <= 1e-8
        assert best.value == pytest.approx(dense(p, best.w)[measure], rel=1e-10)
        np.testing.assert_allclose(predictions(p, best.w), p.y, rtol=1e-14)


def test_a_network_that_is_dead_on_all_examples():
    """No curvature at all: nothing to flatten, and that is certain."""
    params = {"W1": -np.ones((3, 1)), "b1": -np.ones(3), "W2": np.ones(3)}
    p = steppe.Problem(TwoLayer(), params, np.ones((2, 1)), np.zeros(2), steppe.losses.half_mse)
    for measure in ("trace", "sharpness"):
        best = steppe.flatten(p, p.w0, measure=measure)
        assert (best.value, best.lower, best.gap) == (0.0, 0.0, 0.0)
        np.testing.assert_array_equal(best.w, p.w0)


def test_a_cost_without_a_minimum():
    """Two outgoing weights that cancel: the loss has no slope in the incoming weight of the neuron, and one in the
    outgoing weights that falls as they grow. The neuron is named, and its curvature is the gap."""
    params = {"W1": np.array([[1.0]]), "W2": np.array([[1.0], [1.0]]), "W3": np.array([1.0, -1.0])}
    p = steppe.Problem(MLP(3, bias=False), params, np.ones((1, 1)), np.zeros(1), steppe.losses.half_mse)
    best = steppe.flatten(p, p.w0)
    assert best.unattained == ("W1 neuron 0",)
    assert best.lower == 0.0
    assert best.gap == 1.0


@pytest.mark.parametrize(
    ("network", "params", "message"),
    [
        (MLP(3, activation=tanh), None, "neurons of W1, b1 are rescaled"),
        (TwoLayer(activation=softplus), None, "positively homogeneous"),
        (SimLN(eps=1e-3), None, "direction of W1, b1 only"),
        (lambda p, x: x @ (p[0] / jnp.linalg.norm(p[0])) @ p[1], [(D, M), (M,)], "direction of 0 only"),
        (lambda p, x: x @ p["a"], {"a": (D,)}, "at least two dense"),
    ],
)
def test_refused(network, params, message):
    params = network.init(D, M, np.random.default_rng(0), np.float64) if params is None else drawn(params, 0)
    p = steppe.Problem(network, params, np.eye(N)[:, :D] + 0.1, np.ones(N), steppe.losses.mse)
    with pytest.raises(ArgumentError, match=message):
        steppe.flatten(p, p.w0)


@pytest.mark.parametrize(
    ("network", "params", "into", "out", "fixed", "unbounded"),
    [
        (lambda p, x: jnp.tanh(jax.nn.relu(x @ p[0].T) @ p[1].T) @ p[2], [(M, D), (M, M), (M,)],
         "0", "1", ("2",), ()),
        (SimBN(np.eye(D)), None, "gamma", "W2", ("W1", "b1"), ()),
        (lambda p, x: (x @ p[0].T) / jnp.linalg.norm(x @ p[0].T, axis=1, keepdims=True) * p[1][None] @ p[2],
         [(M, D), (M,), (M,)], "1", "2", ("0",), ("0",)),
        (LayerNorm(), None, "beta gamma", "W2", ("W1", "b1"), ()),
    ],
)  # fmt: skip
def test_what_cannot_move_stays(network, params, into, out, fixed, unbounded):
    """A tanh behind relu, and layers in front of a normalisation: exact, or with a small constant."""
    params = network.init(D, M, np.random.default_rng(0), np.float64) if params is None else drawn(params, 0)
    p = steppe.Problem(network, params, np.eye(N)[:, :D] + 0.1, np.ones(N), steppe.losses.mse)
    best = steppe.flatten(p)
    (layer,) = best.layers
    assert (" ".join(layer.into), " ".join(layer.out), best.fixed, best.unbounded) == (into, out, fixed, unbounded)
    assert 0 < best.movable < 1
    assert best.gap < 1e-12
    J = np.asarray(jacobian(p.predict, p.unravel)(p.w0, p.x)[0])
    arrays = Arrays.of(p)
    moving = np.ones(p.w0.size, dtype=bool)
    for name in fixed:
        moving[arrays.positions(name)] = False
    assert best.movable == pytest.approx(np.sum(J[:, moving] ** 2) / np.sum(J**2), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "trase"}, "Did you mean 'trace'"),
        ({"rtol": 0.0}, "rtol must be"),
        ({"layers": ["W1"]}, "layers must be a list of steppe.flattening.Neurons"),
        ({"layers": [Neurons({"W1": 0}, {"W2": 0})]}, "layers must be neurons that can be rescaled"),
        ({"layers": [Neurons({"W1": 0}, {"W3": 0})]}, "Did you mean 'W2'"),
        ({"layers": [Neurons({"W1": 2}, {"W2": 0})]}, "axis of 'W1'"),
        ({"layers": [Neurons({"W1": 1}, {"W2": 0})]}, "a multiple of it on the way out"),
    ],
)
def test_wrong_arguments(change, message):
    p = problem("two_layer")
    with pytest.raises(ArgumentError, match=message):
        steppe.flatten(p, p.w0, **change)
    with pytest.raises(ArgumentError, match="into must be"):
        Neurons({}, {"W2": 0})
