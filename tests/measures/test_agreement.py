"""Independent code: curvlinops on PyTorch, matfree, and sums over labels, for an FCN, a CNN and a transformer."""

from functools import cache

import jax
import jax.numpy as jnp
import measure_nets as nets
import numpy as np
import pytest
from dense_curvature import assert_close

from steppe import curvature as operators
from steppe import measures

# Every loss and every network in both precisions, and eight of the twelve pairs of them: a network enters a matrix by
# its Jacobian only and a loss by its derivatives in the three outputs, so that what can go wrong is in the one or the
# other. The operators of every loss on an FCN are in test_operators.py too.
ALL = pytest.mark.parametrize(
    ("net", "loss", "dtype"),
    [
        ("fcn", "mse", np.float64),
        ("fcn", "half_mse", np.float32),
        ("fcn", "logistic", np.float32),
        ("cnn", "half_mse", np.float64),
        ("cnn", "logistic", np.float64),
        ("cnn", "cross_entropy", np.float32),
        ("transformer", "mse", np.float32),
        ("transformer", "cross_entropy", np.float64),
    ],
)


@cache
def problem(net, loss, dtype):
    made = nets.problem(net, loss, dtype)
    assert made.w0.dtype == dtype  # a division by a float64 would widen it unseen
    return made


def random_vector(p):
    return np.random.default_rng(1).normal(size=p.w0.size).astype(p.w0.dtype)


def agree(curvature, p, product, factor=1.0):
    """To the rounding of products of ‖A‖ ‖v‖, with ‖A‖ from the product itself."""
    v = random_vector(p)
    expected = factor * product(v)
    # Some 10³ roundings in the network and as many in the other one.
    assert_close(curvature(p, p.w0).matvec(v), expected, size=np.linalg.norm(expected), ulps=512)


@ALL
def test_curvlinops(net, loss, dtype):
    """Hessian, Gauss-Newton and empirical Fisher matrix of all losses.

    Its empirical Fisher matrix takes each output of a loss that is a mean over outputs for an example of its own, but
    adds up their gradients: c times ours. Its true Fisher matrix is a sample; the exact one is the Gauss-Newton matrix
    for these losses (Martens 2020, section 9).
    """
    curvlinops, torch = (pytest.importorskip(name) for name in ("curvlinops", "torch"))
    p = problem(net, loss, dtype)
    *parts, factor = nets.in_torch(net, loss, p)
    squared = factor**2 / (1 if loss == "cross_entropy" else nets.CLASSES)
    for curvature, theirs, scale in (
        (operators.hessian, curvlinops.HessianLinearOperator, factor),
        (operators.gauss_newton, curvlinops.GGNLinearOperator, factor),
        (operators.fisher, curvlinops.GGNLinearOperator, factor),
        (operators.empirical_fisher, curvlinops.EFLinearOperator, squared),
    ):
        matrix = theirs(*parts, check_deterministic=False)
        agree(curvature, p, lambda v, matrix=matrix: (matrix @ torch.tensor(v)).numpy(), scale)


@ALL
def test_the_true_fisher_matrix_sums_over_labels(net, loss, dtype):
    """Σ_y P(y) (J_iᵀ∇ℓ)(J_iᵀ∇ℓ)ᵀ, by no closed form of the covariance; matfree and curvlinops have none to compare."""
    p, wide = problem(net, loss, dtype), problem(net, loss, np.float64)
    f, J = _outputs(wide.predict, wide.unravel, wide.x, jnp.asarray(p.w0, np.float64))
    total = np.zeros(p.w0.size)
    v = random_vector(p)
    for i in range(nets.N):
        for weight, slope in _scores(loss, np.asarray(f[i])):
            g = slope @ np.asarray(J[i])
            total += weight * g * (g @ v) / nets.N
    agree(operators.fisher, p, lambda v: total)


@cache
def _jacobian(predict, unravel):
    return jax.jit(lambda w, x: (predict(unravel(w), x), jax.jacrev(lambda v: predict(unravel(v), x))(w)))


def _outputs(predict, unravel, x, w):
    return _jacobian(predict, unravel)(w, x)


def _scores(loss, f):
    """(P(y), ∇_f of −log P(y)) for labels with the moments of the model."""
    c, e = len(f), np.eye(len(f))
    if loss in ("mse", "half_mse"):
        # f ± √c σ e_j, each as likely, have mean f and covariance σ² I; the slope is (f − y)/σ².
        variance = c / 2 if loss == "mse" else 1.0
        return [(1 / (2 * c), sign * np.sqrt(c / variance) * e[j]) for j in range(c) for sign in (-1, 1)]
    if loss == "cross_entropy":
        odds = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
        return [(odds[k], odds - e[k]) for k in range(c)]
    # The mean over outputs of the matrices of each.
    odds = 1 / (1 + np.exp(-f))
    return [(q / c, r * e[j]) for j in range(c) for q, r in ((odds[j], odds[j] - 1), (1 - odds[j], odds[j]))]


@ALL
def test_matfree(net, loss, dtype):
    """Its Lanczos on its own product, jvp of grad, and ours."""
    decomp, eig = (pytest.importorskip(f"matfree.{name}") for name in ("decomp", "eig"))
    p = problem(net, loss, dtype)

    @jax.jit
    def largest(start):
        def product(v):
            return jax.jvp(jax.grad(p.loss), (p.w0,), (v,))[1]

        return eig.eigh_partial(decomp.tridiag_sym(20))(product, start)[0].max()

    expected, rounding = float(largest(random_vector(p))), 64 * float(np.finfo(dtype).eps)
    ours = measures.sharpness(p, p.w0, rtol=max(1e-9, 4 * rounding))
    accuracy = 1e-6 + 4 * rounding  # 20 steps of theirs, without a stopping rule
    assert ours.value == pytest.approx(expected, rel=accuracy)
    assert ours.lower <= expected * (1 + accuracy)
    assert ours.upper >= expected * (1 - rounding)
