"""M_ℓ1 and M_S against linear programs, for x of any signs with ties and zeros."""

import numpy as np
import pytest
from draws import SEED, example
from hypothesis import given
from scipy.optimize import linprog, minimize

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import Manifold, printed
from steppe.papers.conflicting_biases.theory import manifold as extremes


@given(SEED)
def test_values_and_members_by_linear_programs(seed):
    x, y = example(seed, zeros=seed % 3 == 0)
    m = Manifold(x, y)
    cases = ((extremes.least_norm(x, y), np.ones(len(x)), lambda w: w @ w),
             (extremes.least_sharpness(x, y), 4 * x**2, m.sharpness))  # fmt: skip
    for extreme, cost, measure in cases:
        program = linprog(cost, A_eq=x[None], b_eq=[y], method="highs")
        assert extreme.value == pytest.approx(program.fun, rel=1e-9)
        w = extreme.point(len(x))
        assert float(m.residual(w)) == pytest.approx(0, abs=1e-12)
        assert float(measure(w)) == pytest.approx(extreme.value, rel=1e-12)
        spread = np.zeros(len(x))
        spread[extreme.support] = np.random.default_rng(seed).normal(size=len(extreme.support))
        spread = m.onto(spread)
        assert extreme.holds(spread)
        assert float(measure(spread)) == pytest.approx(extreme.value, rel=1e-9)
        assert not extreme.holds(1.001 * spread)


@given(SEED)
def test_no_interpolator_is_below(seed):
    x, y = example(seed, d=4)
    m, rng = Manifold(x, y), np.random.default_rng(seed)
    w = rng.normal(size=(50, 4))
    w = m.onto(w[(m.residual(w) + y) * y > 0])
    assert (np.sum(w**2, axis=1) >= extremes.least_norm(x, y).value * (1 - 1e-9)).all()
    assert (m.sharpness(w) >= extremes.least_sharpness(x, y).value * (1 - 1e-9)).all()


def test_the_papers_sets_for_positive_x():
    """Eq. 6 and 7: ‖w‖² = y/x_max on arg max, y/x_min on arg min."""
    norm, sharp = extremes.least_norm([2.0, 1.0, 2.0], 3.0), extremes.least_sharpness([2.0, 1.0, 1.0], 3.0)
    assert (norm.norm2, norm.support.tolist(), norm.x0) == (1.5, [0, 2], 2.0)
    assert (sharp.norm2, sharp.support.tolist(), sharp.x0, sharp.value) == (3.0, [1, 2], 1.0, 12.0)


def test_as_printed_fails():
    x = np.array([1.0, -3.0])
    assert printed.norm_entry(x) == 3.0
    assert extremes.least_norm(x, 2.0).x0 == 1.0
    assert extremes.least_norm(x, -2.0).x0 == -3.0
    assert printed.least_sharpness([1.0, 2.0], 3.0) * 4 == extremes.least_sharpness([1.0, 2.0], 3.0).value


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_from_three_layers_on_the_flattest_is_dense(depth):
    x, y = np.array([1.0, 0.5, -0.8]), 1.2
    w, m = extremes.flattest(x, y, depth), Manifold(x, y, depth)
    assert float(m.residual(w)) == pytest.approx(0, abs=1e-14)
    assert (w != 0).sum() == (3 if depth % 2 else 2)  # an even power of the third weight has the wrong sign
    best = min(
        (minimize(m.sharpness, w + 0.2 * step, constraints={"type": "eq", "fun": m.residual}, method="SLSQP")
         for step in np.random.default_rng(0).normal(size=(4, 3))),
        key=lambda found: found.fun,
    )  # fmt: skip
    # SLSQP stops at a relative change of 1e-6.
    assert float(m.sharpness(w)) == pytest.approx(best.fun, rel=1e-5)


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentError, match="y must be not 0"):
        extremes.least_norm([1.0], 0.0)
    with pytest.raises(ArgumentError, match="depth must be"):
        extremes.flattest([1.0], 1.0, 2)
