"""Hessians that can be written down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import assert_close

import steppe
from steppe import curvature as operators
from steppe import measures

RNG = np.random.default_rng(3)
X, W, V = RNG.normal(size=(11, 3)), RNG.normal(size=3), RNG.normal(size=(3, 4))


def rosenbrock():
    """(1 − a)² + 100 (b − a²)² as ½‖f‖² of one example with two outputs."""

    def predict(w, x):
        a, b = w
        return jnp.sqrt(2.0) * jnp.stack([1 - a, 10 * (b - a**2)])[None] * x

    return steppe.Problem(predict, np.ones(2), np.ones((1, 2)), np.zeros((1, 2)), steppe.losses.half_mse)


@pytest.mark.parametrize(
    ("loss", "factor"), [(steppe.losses.mse, 2.0), (steppe.losses.half_mse, 1.0)], ids=["mse", "half_mse"]
)
def test_least_squares(loss, factor):
    p = steppe.Problem(lambda w, x: x @ w, W, X, RNG.normal(size=11), loss)
    H = factor / len(X) * X.T @ X
    assert_close(operators.hessian(p, p.w0).dense(), H)
    sharpness = measures.sharpness(p, p.w0)
    assert sharpness.lower <= np.linalg.eigvalsh(H)[-1] <= sharpness.upper


def test_logistic_regression():
    """(1/n) Xᵀ diag(σ(1 − σ)) X, whatever the labels and their smoothing."""
    y = np.sign(RNG.normal(size=11))
    p = steppe.Problem(lambda w, x: x @ w, W, X, y, steppe.losses.logistic(smoothing=0.3))
    s = 1 / (1 + np.exp(-X @ W))
    H = X.T @ ((s * (1 - s))[:, None] * X) / len(X)
    for curvature in (operators.hessian, operators.gauss_newton, operators.fisher):
        assert_close(curvature(p, p.w0).dense(), H)


def test_softmax_regression():
    """(1/n) Σ xᵢxᵢᵀ ⊗ (diag(p) − ppᵀ)."""
    p = steppe.Problem(lambda V, x: x @ V, V, X, RNG.integers(0, 4, 11), steppe.losses.cross_entropy)
    q = np.asarray(jax.nn.softmax(X @ V))
    H = sum(np.kron(np.outer(x, x), np.diag(s) - np.outer(s, s)) for x, s in zip(X, q, strict=True)) / len(X)
    for curvature in (operators.hessian, operators.gauss_newton, operators.fisher):
        assert_close(curvature(p, p.w0).dense(), H)
    np.testing.assert_allclose(measures.fisher_trace(p, p.w0).value, np.trace(H), rtol=1e-13)


def test_rosenbrock():
    """∇² = [[802, −400], [−400, 200]] at the minimum (1, 1)."""
    p = rosenbrock()
    assert_close(operators.hessian(p, p.w0).dense(), np.array([[802.0, -400.0], [-400.0, 200.0]]))
    first, second = measures.top_eigenvalues(p, k=2)
    assert first.value == pytest.approx(1001.6006, abs=5e-5)  # the digits that are printed
    assert second.value == pytest.approx(0.39936, abs=5e-6)
    assert measures.sharpness(p, p.w0).value == pytest.approx(first.value, rel=1e-12)
    assert measures.trace(p, p.w0).value == pytest.approx(1002.0, rel=1e-14)


def test_a_negative_eigenvalue_is_no_sharpness():
    """L = ½(w₁w₂ − 10)² at (0.1, 0.1) has the eigenvalues 9.99 and −9.97; at the top of a hill all are negative."""
    p = steppe.Problem(
        lambda w, x: w[0] * w[1] * x, np.array([0.1, 0.1]), np.ones(1), np.full(1, 10.0), steppe.losses.half_mse
    )
    H = np.array([[0.01, 0.02 - 10], [0.02 - 10, 0.01]])
    low, high = np.linalg.eigvalsh(H)
    assert abs(low) < high
    assert measures.sharpness(p, p.w0).value == pytest.approx(high, rel=1e-12)
    hill = steppe.Problem(lambda w, x: -(w**2) @ x.T, np.zeros(2), np.eye(2), np.full(2, -1.0), steppe.losses.half_mse)
    # L = ½ · mean (1 − w²)²: ∇² = −I at 0, the least eigenvalue is the largest in magnitude.
    assert measures.sharpness(hill, hill.w0).value == pytest.approx(-1.0, rel=1e-12)
    assert measures.spectral_norm(hill, hill.w0).value == pytest.approx(1.0, rel=1e-12)
