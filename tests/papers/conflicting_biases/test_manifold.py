"""M: calculus on it against dense autodiff; its points of least norm and sharpness against linear programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.draws import SEED, example
from hypothesis import given, settings
from scipy.optimize import linprog, minimize

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import printed
from steppe.papers.conflicting_biases.theory.manifold import (
    Manifold,
    arc,
    eighth_sharpness,
    flattest,
    half_norm,
    least_norm,
    least_sharpness,
)

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


# M_ℓ1, M_S and the flattest point of deeper networks, for x of any signs with ties and zeros.


@given(SEED)
def test_values_and_members_by_linear_programs(seed):
    x, y = example(seed, zeros=seed % 3 == 0)
    m = Manifold(x, y)
    cases = ((least_norm(x, y), np.ones(len(x)), lambda w: w @ w),
             (least_sharpness(x, y), 4 * x**2, m.sharpness))  # fmt: skip
    for extreme, cost, measure in cases:
        program = linprog(cost, A_eq=x[None], b_eq=[y], method="highs")
        assert extreme.value == pytest.approx(program.fun, rel=1e-9)
        w = extreme.point(len(x))
        assert float(m.residual(w)) == pytest.approx(0, abs=1e-12)
        assert float(measure(w)) == pytest.approx(extreme.value, rel=1e-12)
        spread = np.zeros(len(x))
        spread[extreme.support] = np.random.default_rng(seed).normal(size=len(extreme.support))
        spread = m.onto(spread)
        assert float(measure(spread)) == pytest.approx(extreme.value, rel=1e-9)


@given(SEED)
def test_no_interpolator_is_below(seed):
    x, y = example(seed, d=4)
    m, rng = Manifold(x, y), np.random.default_rng(seed)
    w = rng.normal(size=(50, 4))
    w = m.onto(w[(m.residual(w) + y) * y > 0])
    assert (np.sum(w**2, axis=1) >= least_norm(x, y).value * (1 - 1e-9)).all()
    assert (m.sharpness(w) >= least_sharpness(x, y).value * (1 - 1e-9)).all()


def test_the_papers_sets_for_positive_x():
    """Eq. 6 and 7: ‖w‖² = y/x_max on arg max, y/x_min on arg min."""
    norm, sharp = least_norm([2.0, 1.0, 2.0], 3.0), least_sharpness([2.0, 1.0, 1.0], 3.0)
    assert (norm.norm2, norm.support.tolist(), norm.x0) == (1.5, [0, 2], 2.0)
    assert (sharp.norm2, sharp.support.tolist(), sharp.x0, sharp.value) == (3.0, [1, 2], 1.0, 12.0)


def test_as_printed_fails():
    x = np.array([1.0, -3.0])
    assert printed.norm_entry(x) == 3.0
    assert least_norm(x, 2.0).x0 == 1.0
    assert least_norm(x, -2.0).x0 == -3.0
    assert printed.least_sharpness([1.0, 2.0], 3.0) * 4 == least_sharpness([1.0, 2.0], 3.0).value


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_from_three_layers_on_the_flattest_is_dense(depth):
    x, y = np.array([1.0, 0.5, -0.8]), 1.2
    w, m = flattest(x, y, depth), Manifold(x, y, depth)
    assert float(m.residual(w)) == pytest.approx(0, abs=1e-14)
    assert (w != 0).sum() == (3 if depth % 2 else 2)  # an even power of the third weight has the wrong sign
    best = min(
        (minimize(m.sharpness, w + 0.2 * step, constraints={"type": "eq", "fun": m.residual}, method="SLSQP")
         for step in np.random.default_rng(0).normal(size=(4, 3))),
        key=lambda found: found.fun,
    )  # fmt: skip
    # SLSQP stops at a relative change of 1e-6.
    assert float(m.sharpness(w)) == pytest.approx(best.fun, rel=1e-5)


def test_extremes_that_do_not_exist_are_refused():
    with pytest.raises(ArgumentError, match="y must be not 0"):
        least_norm([1.0], 0.0)
    with pytest.raises(ArgumentError, match="depth must be"):
        flattest([1.0], 1.0, 2)
