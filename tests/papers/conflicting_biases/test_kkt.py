"""KKT points of Lemma E.1 against their definition, optimisers and a convex program."""

import numpy as np
import pytest
from cases.draws import SEED, example
from hypothesis import given, settings
from scipy.optimize import linprog, minimize

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import printed
from steppe.papers.conflicting_biases.theory.kkt import kkt_points, least_risk, multipliers
from steppe.papers.conflicting_biases.theory.manifold import Manifold, least_sharpness
from steppe.papers.conflicting_biases.theory.risks import risk


def problem(seed, **options):
    x, y = example(seed, **options)
    share = np.random.default_rng(seed + 1).uniform(0.05, 0.99)
    return x, y, 2 / least_sharpness(x, y).value * share


@given(SEED)
def test_every_point_satisfies_the_conditions(seed):
    x, y, lr = problem(seed, zeros=seed % 4 == 0)
    points = kkt_points(x, y, lr)
    assert points
    for p in points:
        w = p.w
        scale = 1 + abs(p.nu) + p.lam
        slope = 2 * w**3 - 2 * w + 2 * p.nu * x * w + 4 * p.lam * lr * x**2 * w
        np.testing.assert_allclose(slope, 0, atol=1e-9 * scale * (1 + w.max() ** 3))
        assert x @ w**2 == pytest.approx(y, rel=1e-9)
        assert p.sharpness == pytest.approx(float(Manifold(x, y).sharpness(w)), rel=1e-9)
        assert p.sharpness <= 2 / lr * (1 + 1e-9)
        assert p.lam >= 0
        assert not p.active or p.sharpness == pytest.approx(2 / lr, rel=1e-9)
        assert tuple(np.flatnonzero(w)) == p.support


@given(SEED)
def test_the_best_of_them_is_the_global_minimum(seed):
    """By supports, by two monotone equations, and by a general optimiser of the convex program in u = w²."""
    x, y, lr = problem(seed, zeros=seed % 4 == 0)
    w = least_risk(x, y, lr)
    best = float(risk(w))
    assert kkt_points(x, y, lr)[0].risk == pytest.approx(best, rel=1e-8, abs=1e-10)
    assert x @ w**2 == pytest.approx(y, rel=1e-9)
    found = minimize(
        lambda u: 0.5 * u @ u - u.sum(), least_sharpness(x, y).point(len(x)) ** 2, jac=lambda u: u - 1,
        bounds=[(0, None)] * len(x), method="SLSQP", options={"maxiter": 300, "ftol": 1e-13},
        constraints=(
            {"type": "eq", "fun": lambda u: x @ u - y, "jac": lambda u: x},
            {"type": "ineq", "fun": lambda u: 1 / (2 * lr) - x**2 @ u, "jac": lambda u: -(x**2)},
        ),
    )  # fmt: skip
    if found.success:
        assert best - (len(x) + 1) / 2 == pytest.approx(found.fun, rel=1e-6, abs=1e-6)


@settings(max_examples=15)
@given(SEED)
def test_the_global_minimum_in_many_dimensions(seed):
    """The certificate of a convex problem: u minimises ⟨∇f(u), v⟩ over all feasible v."""
    x, y, lr = problem(seed, d=30)
    u = least_risk(x, y, lr) ** 2
    program = linprog(u - 1, A_eq=x[None], b_eq=[y], A_ub=(x**2)[None], b_ub=[1 / (2 * lr)], method="highs")
    assert program.status in (0, 3)
    assert program.status == 3 or (u - 1) @ u == pytest.approx(program.fun, rel=1e-7, abs=1e-7)


def test_the_best_point_is_where_no_bound_holds_it():
    x, y = np.array([1.0, 0.4]), 0.66
    free = least_risk(x, y)
    nu = (x.sum() - y) / (x @ x)
    np.testing.assert_allclose(free**2, 1 - nu * x, rtol=1e-12)
    loose = 2 / float(Manifold(x, y).sharpness(free))
    np.testing.assert_allclose(least_risk(x, y, 0.99 * loose), free, rtol=1e-12)
    assert float(risk(least_risk(x, y, 1.1 * loose))) > float(risk(free))


def test_ties_have_one_point_a_support_and_none_beyond_their_sharpness():
    x, y = np.full(3, 0.5), 2.0
    assert len(kkt_points(x, y, 2 / (4 * 0.5 * y) * 0.999)) == 7
    assert kkt_points(x, y, 2 / (4 * 0.5 * y) * 1.001) == []


def test_the_flattest_point_is_all_that_is_left_at_the_limit():
    x, y = np.array([1.0, 0.25]), 1.0
    lr = 2 / least_sharpness(x, y).value
    np.testing.assert_array_equal(least_risk(x, y, lr), [0, 2])
    with pytest.raises(ArgumentError, match="lr must be at most"):
        least_risk(x, y, 1.01 * lr)


def test_eq_13_solves_its_two_equations():
    x, y, lr = np.array([1.0, 0.4, 2.0]), 1.3, 0.17
    lam, nu = multipliers(x, y, lr)
    u = 1 - 2 * lam * lr * x**2 - nu * x
    assert x @ u == pytest.approx(y, rel=1e-12)
    assert x**2 @ u == pytest.approx(1 / (2 * lr), rel=1e-12)


def test_the_printed_condition_of_positivity_is_wrong_both_ways():
    kinds = set()
    rng = np.random.default_rng(0)
    for _ in range(500):
        x, y, lr = rng.uniform(0.1, 3.0, 3), rng.uniform(0.2, 6.0), rng.uniform(0.02, 1.0)
        lam, nu = multipliers(x, y, lr)
        kinds.add((printed.positive(x, y, lr), bool((1 - 2 * lam * lr * x**2 - nu * x > 0).all())))
    assert {(True, False), (False, True)} <= kinds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kkt_points([1.0, 2.0], 0.0, 0.1), "y must be not 0"),
        (lambda: kkt_points([1.0, 2.0], 1.0, 0.0), "lr must be"),
        (lambda: kkt_points(np.ones(20), 1.0, 0.1), "at most 16 entries"),
        (lambda: least_risk([1.0], -1.0), "y must be of the sign"),
        (lambda: least_risk([1.0], 1.0, -0.1), "lr must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_at_y_0_only_weights_without_input_move():
    np.testing.assert_array_equal(least_risk([1.0, 0.0], 0.0), [0, 1])
