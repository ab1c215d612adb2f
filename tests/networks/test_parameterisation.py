"""Kernel and μP parameterisation: laws over widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.networks import CNN, FCN, kernel, mup, standard

WIDTHS = (64, 256, 1024)


def _slope(values):
    """The power of the width that fits."""
    return np.polyfit(np.log(WIDTHS), np.log(values), 1)[0]


@pytest.mark.parametrize("parameterisation", [kernel, mup, standard], ids=["kernel", "mup", "standard"])
@pytest.mark.parametrize("width", [50, 200])
def test_variance_of_the_outputs(parameterisation, width):
    """E f² = ‖x‖²/d · (½)² for two hidden ReLU layers with N(0, 1) weights behind 1/√fan_in, exact at any width; μP
    divides it by the width. The standard one, without bias, has weights of variance 1/(3 fan_in) three times."""
    network = FCN((width, width), parameterisation=parameterisation, bias=False)
    x = np.random.default_rng(0).normal(size=(1, 6))
    apply, rng = jax.jit(network), np.random.default_rng(1)
    f = np.array([apply(network.init((6,), 4, rng, np.float64), x)[0] for _ in range(300)])
    expected = np.sum(x**2) / 6 / 4
    expected *= {kernel: 1, mup: 1 / width, standard: 1 / 27}[parameterisation]
    squares = np.mean(f**2, axis=1)
    assert abs(squares.mean() - expected) < 4 * squares.std(ddof=1) / len(squares) ** 0.5


def test_the_same_functions():
    """Weights carried from one parameterisation to another give the same outputs: one hypothesis space."""
    x, rng = jnp.asarray(np.random.default_rng(0).normal(size=(5, 6))), np.random.default_rng(1)
    params = FCN((7, 9)).init((6,), 4, rng, np.float64)
    for parameterisation in (kernel, mup):
        carried = [{"W": p["W"] * p["W"].shape[1] ** 0.5, "b": p["b"]} for p in params]
        last = 1 / parameterisation.readout(9)
        carried[-1] = {name: a * last for name, a in carried[-1].items()}
        other = FCN((7, 9), parameterisation=parameterisation)
        np.testing.assert_allclose(other(carried, x), FCN((7, 9))(params, x), rtol=1e-12)


def _moved(parameterisation, width, rate, *, steps=3):
    """Root mean square change of the last hidden layer and of the outputs after a few steps of gradient descent."""
    network = FCN((width, width), parameterisation=parameterisation, bias=False)
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(8, 10))), jnp.asarray(rng.normal(size=(8, 2)))
    start = network.init((10,), 2, rng, np.float64)

    def loss(params):
        return 0.5 * jnp.mean(jnp.sum((network(params, x) - y) ** 2, axis=1))

    @jax.jit
    def moves(params):
        end = params
        for _ in range(steps):
            end = jax.tree.map(lambda a, g: a - rate * g, end, jax.grad(loss)(end))
        features = network.features(end, x)[-1] - network.features(params, x)[-1]
        return jnp.sqrt(jnp.mean(features**2)), jnp.sqrt(jnp.mean((network(end, x) - network(params, x)) ** 2))

    return [float(a) for a in moves(start)]


def test_coordinate_check():
    """With rates ∝ width, features of μP move by O(1) at every width; in the kernel parameterisation they move by
    1/√width, the outputs by O(1) in both. Powers fitted over a factor of 16; 0.15 is what one draw of the weights
    changes at width 64 (about 64^−½)."""
    moved = {
        "mup": np.array([_moved(mup, width, 0.1 * width) for width in WIDTHS]),
        "kernel": np.array([_moved(kernel, width, 0.1) for width in WIDTHS]),
    }
    assert _slope(moved["mup"][:, 0]) == pytest.approx(0.0, abs=0.15)
    assert _slope(moved["mup"][:, 1]) == pytest.approx(0.0, abs=0.15)
    assert _slope(moved["kernel"][:, 0]) == pytest.approx(-0.5, abs=0.15)
    assert _slope(moved["kernel"][:, 1]) == pytest.approx(0.0, abs=0.15)


def test_convolutions_scale_alike():
    """Outputs at the start: O(1) in the kernel parameterisation, features^−½ in μP."""
    x, rng = np.random.default_rng(0).normal(size=(1, 4, 4, 2)), np.random.default_rng(1)

    def squares(parameterisation, filters):
        network = CNN((filters, filters), parameterisation=parameterisation)
        apply = jax.jit(network)
        return np.array([np.mean(apply(network.init((4, 4, 2), 3, rng, np.float64), x) ** 2) for _ in range(200)])

    few, many = squares(kernel, 4), squares(kernel, 32)
    error = np.hypot(few.std(), many.std()) / 200**0.5
    # Max pooling over four correlated values depends a little on nothing but their law, which width does not change.
    assert abs(few.mean() - many.mean()) < 4 * error
    scaled = 32 * squares(mup, 32)
    assert abs(scaled.mean() - many.mean()) < 4 * np.hypot(scaled.std(), many.std()) / 200**0.5
