"""The least trace without bias: against a cone program by Clarabel, closed forms, and known numbers of half-spaces."""

import cvxpy as cp
import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.papers.wen2023 import explicit, section_3
from steppe.papers.wen2023.flattest_no_bias import active_sets, flattest_no_bias
from steppe.papers.wen2023.theory import generalising

CORNERS = explicit.cube(3)


def cone_program(x, y, *, kinks):
    """All neurons of one sign that fire on one set of examples are as good as their sum: two vectors for each set."""
    n, cost, output, constraints = len(x), 0, 0, []
    for active in active_sets(x, kinks=kinks):
        squares = np.sum(x[active] ** 2)
        for sign in (1, -1):
            u = cp.Variable(x.shape[1])
            constraints += [x[active] @ u >= 0, x[~active] @ u <= 0]
            cost += 4 / n * np.sqrt(squares) * cp.norm(x[active] @ u)
            output += sign * cp.multiply(active.astype(float), x @ u)
    return cp.Problem(cp.Minimize(cost), [*constraints, output == y]).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("kinks", [True, False])
def test_against_a_cone_program(kinks):
    x = CORNERS[np.random.default_rng(1).permutation(8)[:6]]
    y = x[:, 0] * x[:, 1]
    found = flattest_no_bias(x, y, kinks=kinks)
    assert found.trace == pytest.approx(cone_program(x, y, kinks=kinks), rel=1e-5)
    assert found.lower <= found.trace <= found.lower * (1 + 1e-6)


def test_against_a_cone_program_for_gaussians():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=9)
    y[5:] = np.maximum(x[5:, 0], 0)
    assert flattest_no_bias(x, y, kinks=False).trace == pytest.approx(cone_program(x, y, kinks=False), rel=1e-5)


@pytest.mark.parametrize(("d", "count"), [(2, 4), (3, 14)])
def test_half_spaces_through_0_of_the_cube(d, count):
    """4, 14, 104, 1882, …: the self-dual threshold functions of d variables."""
    assert len(active_sets(explicit.cube(d), kinks=False)) == count


def test_the_whole_cube_in_closed_form():
    """4√d with kinks, by the net of rows (±1, ±1, 0); √2 more without, the limit of `no_bias_xor` for ε → 0."""
    y = CORNERS[:, 0] * CORNERS[:, 1]
    with_kinks, without = (flattest_no_bias(CORNERS, y, kinks=kinks) for kinks in (True, False))
    assert with_kinks.trace == pytest.approx(4 * np.sqrt(3), rel=1e-6)
    assert without.trace == pytest.approx(4 * np.sqrt(6), rel=1e-6)
    assert not with_kinks.attained
    assert not without.attained
    limit = generalising.no_bias_xor(3, epsilon=1e-6, scale=(3 / 8) ** 0.25)
    assert explicit.measured(limit, CORNERS, y)[0] == pytest.approx(without.trace, rel=1e-5)


def test_the_tie_net_by_second_differences():
    """At a kink ∇²L does not exist. Autodiff, with relu′(0) = 0, says 4√d. Gaussian perturbations raise the loss as a
    trace of (6 + 2/π)√d would: half of them wake a neuron at a kink, and each example has two with W₂ of one sign."""
    d, step = 4, 1e-3
    x = explicit.cube(d)
    y, params = x[:, 0] * x[:, 1], generalising.no_bias_tie(d)
    assert explicit.measured(params, x, y)[0] == pytest.approx(4 * np.sqrt(d), rel=1e-12)
    rng = np.random.default_rng(0)
    W1, W2 = (params[name] + step * rng.normal(size=(4_000, *params[name].shape)) for name in ("W1", "W2"))
    f = np.einsum("knj,kj->kn", np.maximum(np.einsum("nd,kjd->knj", x, W1), 0), W2)
    grown = 2 * np.mean((f - y) ** 2, axis=1) / step**2
    assert abs(grown.mean() - (6 + 2 / np.pi) * np.sqrt(d)) < 4 * grown.std() / np.sqrt(len(grown))


def test_the_former_flattest_net_is_not():
    """`no_bias_xor`, which table 1 once offered as flattest, is above the least trace, and above what 1-SAM reaches."""
    found, _ = section_3.flattest_on_cube(4, 12, kinks=False)
    scale = (4 / 8) ** 0.25
    former = min(
        explicit.measured(generalising.no_bias_xor(4, epsilon=e, scale=scale), found.x, found.y)[0] for e in (0.01, 0.1)
    )
    assert former > 1.05 * found.trace


def test_an_attained_minimum():
    """Two orthogonal examples: a neuron along each, at a kink of the other, may turn away from it at no cost."""
    found = flattest_no_bias(np.eye(2) + 0.0, [1.0, -2.0], kinks=False)
    assert found.trace == pytest.approx(4 * (1 + 2) / 2)
    assert found.attained


def test_with_few_examples_some_flattest_net_errs():
    """Six corners of eight: the flattest nets do not agree on the others."""
    x, unseen = section_3.split_cube(3, 6)
    found = flattest_no_bias(x, x[:, 0] * x[:, 1], kinks=True)
    assert section_3.least_margin(found, unseen) < 0
    seen = [found.worst(point, float(point[0] * point[1])) for point in x]
    np.testing.assert_allclose(seen, 1, atol=1e-4)


def test_shuffled_labels_teach_nothing():
    assert section_3.loss_on_gaussians(2, 12, shuffled=True) > 2 / 12


@pytest.mark.parametrize(
    ("x", "y", "kinks", "message"),
    [
        (np.eye(9), np.ones(9), True, "x must be of at most 6 coordinates"),
        ([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0], False, "y must be labels that some net without bias puts out"),
    ],
)
def test_refused(x, y, kinks, message):
    with pytest.raises(ArgumentError, match=message):
        flattest_no_bias(x, y, kinks=kinks)
