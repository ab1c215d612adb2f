import kernel_oracle as oracle
import numpy as np
import pytest
from kernel_family import DYNAMICS, KEY, advance, build, callable_part, orders_of, problem

from steppe.dynamics.kernels import sim_bn_neurons
from steppe.dynamics.kernels.activations import Activation
from steppe.dynamics.kernels.sim_bn_steps import CHUNK
from steppe.problems.networks import SimBN, leaky_relu, relu, softplus

rectified_means, smooth_means = (
    callable_part(sim_bn_neurons.rectified_means),
    callable_part(sim_bn_neurons.smooth_means),
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("leak", [0.0, 0.2, -0.3])
def test_statistics_against_numpy(leak, dtype):
    n, rows = 21, 5
    h = np.zeros((rows, 32), dtype)
    h[:, :n] = np.random.default_rng(0).normal(size=(rows, n))
    slope = np.where(h > 0, 1, dtype(leak))
    A, means = h.copy(), np.zeros(rows, dtype)
    rectified_means(dtype(leak), A.reshape(-1), rows - 1, 32, n, means)
    tolerance = 4 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(A[:-1], (slope * slope * h)[:-1], atol=tolerance)
    np.testing.assert_allclose(means[:-1], ((slope * h) ** 2).sum(1)[:-1] / n, atol=tolerance)
    np.testing.assert_array_equal(A[-1], h[-1])
    assert means[-1] == 0

    again, room, same = h.copy(), np.zeros_like(h), np.zeros(rows, dtype)
    smooth_means(Activation(False, dtype(leak)), again, room, rows - 1, n, same)
    np.testing.assert_allclose(again, A, atol=tolerance)
    np.testing.assert_allclose(same, means, atol=tolerance)


@pytest.mark.parametrize("activation", [relu, leaky_relu(0.2), softplus])
@pytest.mark.parametrize(("width", "n"), [(CHUNK, 16), (3 * CHUNK + 1, 17), (1, 8)])
def test_whole_and_begun_chunks_and_vectors(activation, width, n):
    p = problem(lambda x: SimBN(x, activation=activation), width=width, n=n)
    for name in ("1-sam", "1-sgd"):
        move = DYNAMICS[name]
        fast = advance(build(p, move), p, move, 12)[0]
        slow = oracle.train(p, move, orders_of(p, move), 12, KEY)
        # As in the laws: 12 steps with sums of at most 130 numbers around 1.
        np.testing.assert_allclose(fast, slow, atol=1000 * np.finfo(float).eps)
