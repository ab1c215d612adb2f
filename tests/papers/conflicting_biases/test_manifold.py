"""M and calculus on it against dense autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import SEED, example
from hypothesis import given, settings

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import Manifold, arc
from steppe.papers.conflicting_biases.theory.manifold import eighth_sharpness, half_norm

LOSS = {L: (lambda w, x, y, L=L: 0.5 * (jnp.dot(x, w**L) - y) ** 2) for L in (1, 2, 3, 4)}
DENSE = {L: (jax.jit(jax.grad(f)), jax.jit(jax.hessian(f))) for L, f in LOSS.items()}


def point(m, seed):
    rng = np.random.default_rng(seed)
    while True:
        w = rng.normal(size=len(m.x))
        if m.depth % 2 or (m.residual(w) + m.y) * m.y > 0:
            return m.onto(w)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@settings(max_examples=15)
@given(seed=SEED)
def test_gradient_hessian_and_sharpness_by_autodiff(depth, seed):
    x, y = example(seed, d=3, zeros=seed % 2 == 0)
    m, (gradient, hessian) = Manifold(x, y, depth), DENSE[depth]
    w = np.random.default_rng(seed).normal(size=3)
    np.testing.assert_allclose(m.gradient(w), gradient(w, x, y), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(m.hessian(w), hessian(w, x, y), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(m.operator_norm(w), np.linalg.norm(hessian(w, x, y), 2), rtol=1e-11)
    on = point(m, seed)
    assert float(m.residual(on)) == pytest.approx(0, abs=1e-12 * max(1, abs(y)) * (1 + np.abs(on).max() ** depth))
    np.testing.assert_allclose(m.sharpness(on), np.linalg.norm(hessian(on, x, y), 2), rtol=1e-8)


@settings(max_examples=15)
@given(SEED)
def test_tangents_leave_only_to_second_order(seed):
    x, y = example(seed, d=4)
    m = Manifold(x, y)
    w = point(m, seed)
    v = m.projector(w) @ np.random.default_rng(seed + 1).normal(size=4)
    # h(w + tv) = t² ⟨x, v²⟩ exactly: the linear term vanishes for a tangent v.
    for t in (1e-2, 1e-4):
        assert float(m.residual(w + t * v)) == pytest.approx(t**2 * (x @ v**2), abs=1e-12 * (1 + w @ w))
    assert np.linalg.matrix_rank(m.projector(w)) == 3


@settings(max_examples=10)
@given(SEED)
def test_riemannian_hessian_is_that_of_curves(seed):
    """(f ∘ γ)″(0) = ⟨u, Hess f u⟩ + ⟨grad f, γ″⟩ along γ(t) = onto(w + tu), by central differences."""
    x, y = example(seed, d=3, positive=True)
    m = Manifold(x, y)
    w = point(m, seed)
    u = m.projector(w) @ np.random.default_rng(seed + 2).normal(size=3)
    h = 1e-4
    ahead, behind = m.onto(w + h * u), m.onto(w - h * u)
    bend = (ahead - 2 * w + behind) / h**2
    for objective, f in ((half_norm, lambda v: v @ v / 2), (eighth_sharpness(x), lambda v: np.sum((x * v) ** 2) / 2)):
        gradient, hessian = m.riemannian(*objective(w), w)
        second = (f(ahead) - 2 * f(w) + f(behind)) / h**2
        # Differences of step h leave h² and rounding/h², about 1e-7 of the values.
        assert second == pytest.approx(u @ hessian @ u + gradient @ bend, abs=1e-5 * (1 + w @ w) * (1 + x @ x) ** 2)


def test_the_arc_runs_between_the_axes():
    points = arc([0.5, 2.0], 3.0, 50)
    np.testing.assert_allclose(Manifold([0.5, 2.0], 3.0).residual(points), 0, atol=1e-14)
    assert points[0, 1] == points[-1, 0] == 0
    for bad in ([1.0, -1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ArgumentError, match="two positive numbers"):
            arc(bad, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Manifold([0.0, 0.0], 1.0), "x must be not all zero"),
        (lambda: Manifold([1.0, 2.0], -1.0), "y must be of the sign of some entry of x"),
        (lambda: Manifold([[1.0]], 1.0), "x must be of shape"),
        (lambda: Manifold([1.0], np.nan), "y must be a finite number"),
        (lambda: Manifold([1.0], 1.0, 0), "depth must be"),
        (lambda: Manifold([1.0, -1.0], 1.0).onto([0.0, 1.0]), "with the sign of y"),
        (lambda: Manifold([1.0, -1.0], 1.0).onto([0.0, 0.0]), "with the sign of y"),
    ],
)
def test_what_has_no_solution_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
