"""Dense curvature matrices by autodiff, and the shared problems, each made once so that compiled code is shared."""

from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from cases.problems import FAMILY

import steppe

# Products and sums of some 10² terms in another order: a few dozen ulp of the largest entry.
ULPS = 64


@cache
def problem(name):
    return FAMILY[name]()


@dataclass(frozen=True)
class Matrices:
    hessian: np.ndarray
    gauss_newton: np.ndarray
    empirical_fisher: np.ndarray

    @property
    def residual(self):
        return self.hessian - self.gauss_newton


@cache
def matrices(name):
    return dense(problem(name))


def dense(p, w=None):
    """∇²L, (1/n) Σ JᵀℓʺJ and (1/n) Σ ggᵀ, from the definitions, in one compiled function."""

    @jax.jit
    def everything(w):
        f = p.predictions(w)
        J = jax.jacrev(lambda v: p.predictions(v).reshape(len(p), -1))(w)  # (n, outputs, p)
        bend = jax.vmap(lambda g, y: jax.hessian(lambda h: p.loss_function.example(h.reshape(g.shape), y))(g.ravel()))(
            f, p.y
        )
        slope = jax.vmap(jax.grad(p.loss_function.example))(f, p.y).reshape(len(p), -1)
        g = jnp.einsum("ncp,nc->np", J, slope)
        return jax.hessian(p.loss)(w), jnp.einsum("nap,nab,nbq->pq", J, bend, J) / len(p), g.T @ g / len(p)

    return Matrices(*(np.asarray(A) for A in everything(p.w0 if w is None else w)))


def in_float32(p):
    params = jax.tree.map(lambda a: a.astype(np.float32), p.unravel(np.asarray(p.w0)))
    return steppe.Problem(p.predict, params, p.x, p.y, p.loss_function)


def assert_close(found, expected, *, size=None, ulps=ULPS):
    """Equal up to `ulps` units in the last place of the largest entry, in the precision of `found`."""
    found, size = np.asarray(found), np.abs(expected).max() if size is None else size
    np.testing.assert_allclose(found, expected, rtol=0, atol=ulps * float(np.finfo(found.dtype).eps) * size)
