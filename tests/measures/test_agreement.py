"""Independent code: curvlinops on PyTorch, and matfree, for an FCN, a CNN and a transformer."""

import jax
import numpy as np
import pytest

from steppe import measures
from steppe.measures import operators

from . import nets
from .dense import assert_close

ALL = [(net, loss) for net in nets.PREDICT for loss in nets.LOSSES]


def random_vectors(p, count):
    return np.random.default_rng(1).normal(size=(count, p.w0.size))


def theirs(operator, p, v):
    import torch

    return (operator @ torch.tensor(v.astype(p.w0.dtype))).numpy()


def agree(curvature, p, operator, factor):
    """To the rounding of products of ‖A‖ ‖v‖, with ‖A‖ from the products themselves."""
    ours = curvature(p, p.w0)
    for v in random_vectors(p, 2):
        expected = factor * theirs(operator, p, v)
        # Some 10³ roundings in the network and as many in the other one.
        size = np.linalg.norm(expected)
        assert_close(ours.matvec(v), expected, size=size, ulps=512)


@pytest.mark.parametrize(("net", "loss"), ALL)
def test_hessians_of_curvlinops(net, loss):
    curvlinops = pytest.importorskip("curvlinops")
    p = nets.problem(net, loss)
    *parts, factor = nets.in_torch(net, loss, p)
    agree(operators.hessian, p, curvlinops.HessianLinearOperator(*parts, check_deterministic=False), factor)


@pytest.mark.parametrize("net", nets.PREDICT)
def test_other_matrices_of_curvlinops(net):
    curvlinops = pytest.importorskip("curvlinops")
    p = nets.problem(net, "cross_entropy")
    *parts, factor = nets.in_torch(net, "cross_entropy", p)
    agree(operators.gauss_newton, p, curvlinops.GGNLinearOperator(*parts, check_deterministic=False), factor)
    agree(operators.empirical_fisher, p, curvlinops.EFLinearOperator(*parts, check_deterministic=False), factor)


@pytest.mark.parametrize("net", nets.PREDICT)
def test_float32_of_curvlinops(net):
    curvlinops = pytest.importorskip("curvlinops")
    p = nets.problem(net, "half_mse", np.float32)
    *parts, factor = nets.in_torch(net, "half_mse", p)
    agree(operators.hessian, p, curvlinops.HessianLinearOperator(*parts, check_deterministic=False), factor)


@pytest.mark.parametrize("net", nets.PREDICT)
def test_matfree(net):
    """Its Lanczos on its own product, jvp of grad, and ours."""
    decomp, eig = (pytest.importorskip(f"matfree.{name}") for name in ("decomp", "eig"))
    p = nets.problem(net, "cross_entropy")

    @jax.jit
    def largest(start):
        def product(v):
            return jax.jvp(jax.grad(p.loss), (p.w0,), (v,))[1]

        return eig.eigh_partial(decomp.tridiag_sym(20))(product, start)[0].max()

    expected = float(largest(random_vectors(p, 1)[0]))
    ours = measures.sharpness(p, p.w0, rtol=1e-9)
    assert ours.value == pytest.approx(expected, rel=1e-6)  # 20 steps of theirs, without a stopping rule
    assert ours.lower <= expected * (1 + 1e-6)
    assert ours.upper >= expected * (1 - 1e-12)
