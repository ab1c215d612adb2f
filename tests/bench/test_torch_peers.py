"""Every library finds λ_max of the dense Hessian, and its products are counted."""

import jax
import numpy as np
import pytest

import steppe
from bench import _torch_peers, sharpness


def net():
    rng = np.random.default_rng(0)
    sizes = ((6, 5), (5, 4), (4, 3))
    layers = [((rng.normal(size=s) / s[0] ** 0.5).astype(np.float32), np.zeros(s[1], np.float32)) for s in sizes]
    x, y = (rng.normal(size=(20, k)).astype(np.float32) for k in (6, 3))
    return steppe.Problem(sharpness._fcn, layers, x, y, steppe.losses.half_mse)


@pytest.mark.parametrize(("module", "name"), [("pyhessian", "PyHessian"), ("hessian_eigenthings", "hessian-eigen")])
def test_its_largest_eigenvalue(module, name):
    pytest.importorskip(module)
    p = net()
    works = [work for found, work in _torch_peers.peers(p, p.w0).items() if found.startswith(name)]
    assert works
    truth = np.linalg.eigvalsh(jax.jit(jax.hessian(p.loss))(p.w0))[-1]
    for work in works:
        value, products = work()
        # PyHessian stops at a change of 1e-4 between two steps; its error is larger.
        assert value == pytest.approx(truth, rel=5e-3)
        assert 2 <= products <= _torch_peers.MOST
