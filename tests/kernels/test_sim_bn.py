import numba
import numpy as np
import pytest
from cases.kernel_family import DYNAMICS, KEY, advance, build, orders_of, problem
from oracles import kernel_oracle as oracle

from steppe.activations import leaky_relu, relu, softplus
from steppe.kernels import sim_bn_products
from steppe.kernels.elementary import Activation
from steppe.kernels.matrices import GROUP, aligned, padded
from steppe.kernels.sim_bn_products import PERIOD, Dense, Signs, inputs
from steppe.kernels.simd import BYTES, OPTIONS
from steppe.networks import SimBN


@numba.njit(**OPTIONS)
def products(inputs, activation, n, W, w, example, h, squares, S):
    sim_bn_products.products(inputs, activation, n, W, w, example, h, squares, S)


ACTIVATIONS = {"relu": (False, 0.0), "leaky": (False, -0.3), "softplus": (True, 0.0)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(21, 5), (8, 16), (GROUP * PERIOD + 1, 31), (3 * GROUP * PERIOD, 1)])
def test_both_kinds_of_products_against_numpy(n, d, dtype):
    rng, lanes = np.random.default_rng(0), BYTES // np.dtype(dtype).itemsize
    X, columns = rng.choice([-1.0, 1.0], (n, d)).astype(dtype), padded(d, lanes)
    XT = aligned((columns, padded(n, lanes)), dtype)
    XT[:d, :n] = X.T
    W = aligned((2, columns, lanes), dtype)
    W[:, :d] = rng.normal(size=(2, d, lanes))
    h = X @ W[1, :d]
    # A unit in the last place for every addition, of at most the largest sum that signs give; log 2 is softplus's.
    bound = np.abs(W[1]).sum(0) + np.log(2)
    unit = (n + 2 * d) * np.finfo(dtype).eps * bound
    for smooth, leak in ACTIVATIONS.values():
        slope = 1 / (1 + np.exp(-h)) if smooth else np.where(h > 0, 1, dtype(leak))
        a = np.logaddexp(0, h) if smooth else slope * h
        forms = [inputs(X, XT, tables=not smooth), Dense(XT, aligned(XT.shape[1] * lanes, dtype))]
        assert isinstance(forms[0], Dense if smooth else Signs)
        for form in forms:
            of_one, squares, S = np.zeros(4 * lanes, dtype), np.zeros(lanes, dtype), np.zeros_like(W)
            for example in (0, n - 1):
                products(
                    form, Activation(smooth, dtype(leak)), n, W.reshape(-1), W[0].size, example, of_one, squares,
                    S.reshape(-1),
                )  # fmt: skip
                np.testing.assert_array_less(np.abs(of_one[:lanes] - h[example]), unit)
                np.testing.assert_array_less(np.abs(squares - (a * a).sum(0)), unit * n * bound)
                np.testing.assert_array_less(np.abs(S[1, :d] - X.T @ (a * slope)).max(0), unit * n)
                assert not S[0].any()
                assert not S[1, d:].any()


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("activation", [relu, leaky_relu(0.2), softplus])
@pytest.mark.parametrize(("width", "n"), [(16, 16), (3 * 32 + 1, 17), (1, 8)])
def test_whole_and_begun_vectors(activation, width, n, signs):
    p = problem(lambda x: SimBN(x, activation=activation), width=width, n=n, signs=signs)
    for name in ("1-sam", "1-sgd"):
        move = DYNAMICS[name]
        fast = advance(build(p, move), p, move, 12)[0]
        slow = oracle.train(p, move, orders_of(p, move), 12, KEY)
        # As in the laws: 12 steps with sums of at most 130 numbers around 1.
        np.testing.assert_allclose(fast, slow, atol=1000 * np.finfo(float).eps)
