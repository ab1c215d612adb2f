"""Every operator against the dense matrix of its definition, over the whole family."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import tanh_net, two_layer
from oracles.dense_curvature import assert_close, in_float32, matrices, problem

import steppe
from steppe import curvature as operators
from steppe.check import ArgumentError
from steppe.curvature import PerChunk
from steppe.curvature._matrices import smaller

# One of each kind: two-layer and deep, every loss, examples that see each other.
KINDS = ["two-layer-logistic", "least-squares", "tanh-mse", "tanh-cross-entropy", "batch-statistics"]


@pytest.mark.parametrize("name", KINDS)
def test_all_matrices_of_the_family(name):
    p, expected = problem(name), matrices(name)
    size = np.abs(expected.hessian).max() + np.abs(expected.gauss_newton).max()
    assert_close(operators.hessian(p, p.w0).dense(), expected.hessian, size=size)
    assert_close(operators.gauss_newton(p, p.w0).dense(), expected.gauss_newton, size=size)
    assert_close(operators.residual(p, p.w0).dense(), expected.residual, size=size)
    assert_close(operators.empirical_fisher(p, p.w0).dense(), expected.empirical_fisher)
    # Every loss here is a negative log-likelihood in its natural parameter: Fisher = Gauss-Newton.
    assert_close(operators.fisher(p, p.w0).dense(), expected.gauss_newton, size=size)


@pytest.mark.parametrize("name", ["two-layer-logistic", "tanh-cross-entropy", "tanh-mse"])
def test_the_fisher_matrix_is_the_mean_over_labels_of_the_model(name):
    """(1/n) Σᵢ E_y ∇ℓᵢ∇ℓᵢᵀ, the expectation written out."""
    p = problem(name)
    f = np.asarray(jax.jit(p.predictions)(p.w0))
    J = np.asarray(jax.jit(jax.jacrev(lambda w: p.predictions(w).reshape(len(p), -1)))(p.w0))
    # The plain loss: smoothing moves the labels, not the model.
    plain = steppe.losses.logistic() if p.loss_function.name == "logistic" else p.loss_function
    slope = jax.jit(jax.grad(plain.example))
    F = np.zeros((p.w0.size, p.w0.size))
    for i in range(len(p)):
        for label, probability in _labels(p.loss_function.name, f[i]):
            g = np.asarray(slope(f[i], label)).ravel() @ J[i]
            F += probability * np.outer(g, g) / len(p)
    assert_close(operators.fisher(p, p.w0).dense(), F)


def _labels(loss, f):
    """(label, probability) of the distribution that the loss belongs to."""
    match loss:
        case "cross_entropy":
            return list(enumerate(np.exp(f) / np.exp(f).sum()))
        case "logistic":
            q = 1 / (1 + np.exp(-f))
            return [(1.0, q), (-1.0, 1 - q)]
        case _:  # 2c points with the mean f and the covariance (c/2) I of the Gaussian; the score is linear in y
            steps = [sign * np.sqrt(f.size * f.size / 2) * e for e in np.eye(f.size) for sign in (1, -1)]
            return [(f + step, 1 / len(steps)) for step in steps]


@pytest.mark.parametrize(
    ("name", "curvature"), [("two-layer", operators.hessian), ("tanh-cross-entropy", operators.gauss_newton)]
)
def test_a_ragged_last_piece_has_its_own_weight(name, curvature):
    p = problem(name)
    pieces = PerChunk(4)  # 9 or 10 examples: 4, 4 and what is left
    assert_close(curvature(p, p.w0, statistics=pieces).dense(), getattr(matrices(name), curvature.name))


def test_little_memory_means_pieces_and_the_same_matrix():
    p, expected = problem("tanh-mse"), matrices("tanh-mse")
    operator = operators.hessian(p, p.w0, memory=2_000)  # all examples take 2,944 bytes
    assert 1 <= operator.product.pieces.size < len(p)
    assert_close(operator.dense(), expected.hessian)


def test_examples_that_see_each_other_are_not_cut():
    p, expected = problem("batch-statistics"), matrices("batch-statistics")
    operator = operators.hessian(p, p.w0, memory=1)
    assert operator.product.pieces.whole
    assert_close(operator.dense(), expected.hessian)


# The root of G is another one for each loss; that of the empirical Fisher matrix is the same, the slopes.
@pytest.mark.parametrize(
    ("name", "curvature"),
    [
        ("two-layer-logistic", operators.gauss_newton),
        ("tanh-cross-entropy", operators.gauss_newton),
        ("tanh-mse", operators.gauss_newton),
        ("batch-statistics", operators.gauss_newton),
        ("tanh-cross-entropy", operators.empirical_fisher),
        ("batch-statistics", operators.empirical_fisher),
    ],
)
def test_the_gram_matrix_has_the_same_eigenvalues(name, curvature):
    p = problem(name)
    A = getattr(matrices(name), curvature.name)
    K = operators.gram(curvature, p, p.w0)
    rank = min(K.size, len(A))
    found, expected = (np.linalg.eigvalsh(M)[::-1] for M in (K.dense(), A))
    assert_close(found[:rank], expected[:rank], size=expected[0])
    assert_close(found[rank:], 0.0, size=expected[0])
    outputs = jax.eval_shape(p.predictions, p.w0).size
    assert K.size == (len(p) if curvature is operators.empirical_fisher else outputs)


def test_the_gram_matrix_in_pieces():
    p = problem("tanh-cross-entropy")
    K = operators.gram(operators.gauss_newton, p, p.w0)
    assert_close(operators.gram(operators.gauss_newton, p, p.w0, statistics=PerChunk(4)).dense(), K.dense())


def test_the_smaller_one_is_taken():
    p = problem("two-layer")  # 9 outputs, 56 parameters
    assert smaller(operators.gauss_newton, p).size == 9
    assert smaller(operators.hessian, p).size == p.w0.size
    tall = problem("least-squares")  # 12 outputs, 5 parameters
    assert smaller(operators.gauss_newton, tall).size == 5


def test_the_hessian_has_no_gram_matrix():
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="must be gauss_newton, fisher or empirical_fisher; got 'hessian'"):
        operators.gram(operators.hessian, p, p.w0)


def test_float32():
    p, expected = in_float32(problem("tanh-cross-entropy")), matrices("tanh-cross-entropy")
    H = operators.hessian(p, p.w0).dense()
    assert H.dtype == np.float32
    # The parameters themselves are rounded, which moves H by a few times that.
    assert_close(H, expected.hessian, ulps=256)


def test_linearised_once_and_compiled_once():
    traces = []

    def predict(w, x):
        traces.append(1)
        return jnp.tanh(x @ w)

    p = steppe.Problem(predict, np.ones(3), np.eye(3), np.ones(3), steppe.losses.mse)
    operators.hessian(p, p.w0).matvec(p.w0)
    before = len(traces)
    for k in range(3):
        H = operators.hessian(p, p.w0 + k)
        for _ in range(3):
            H.matvec(p.w0)
    assert len(traces) == before


def test_a_dense_matrix_beyond_memory_is_refused():
    p = steppe.Problem(lambda w, x: x @ w[:2], np.ones(30_000), np.ones((1, 2)), np.ones(1), steppe.losses.mse)
    with pytest.raises(ArgumentError, match="size must be at most 20000 for a dense matrix; got 30000"):
        operators.hessian(p, p.w0).dense()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": 0}, "memory must be a finite number > 0; got 0"),
        ({"statistics": "frozen"}, "statistics must be a treatment of batch statistics; got 'frozen'"),
    ],
)
def test_wrong_policies_are_refused(arguments, message):
    p = two_layer()
    with pytest.raises(ArgumentError, match=message):
        operators.hessian(p, p.w0, **arguments)


def test_the_fisher_matrix_of_an_unknown_loss_is_refused():
    cubic = steppe.losses.Loss("cubic", lambda f, y: jnp.sum((f - y) ** 3), lambda shape, y: None)
    p = tanh_net(loss=steppe.losses.half_mse)
    p = steppe.Problem(p.predict, p.unravel(p.w0), p.x, p.y, cubic)
    with pytest.raises(ArgumentError, match=r"loss must be one of steppe\.losses for the Fisher matrix; got 'cubic'"):
        operators.fisher(p, p.w0)
