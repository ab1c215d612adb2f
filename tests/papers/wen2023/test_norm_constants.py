"""Lemma A.11 with the constants of given inputs, and Lemmas A.24 and A.25 by brute force."""

import itertools

import numpy as np
import pytest
from cases import theory_nets as nets

from steppe.papers.wen2023.theory import complexity, generalising
from steppe.papers.wen2023.theory.complexity import norm_constants, path_norm, squared_norms


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_whole_hypercube(d):
    """A(w) ≥ ½, with equality at w = (1, 1, 0, …); B(w) = 1; so tr is within [½, 1] of the norms."""
    constants = norm_constants(nets.cube(d))
    assert constants.lower == pytest.approx(0.5, rel=1e-14)
    assert constants.largest == pytest.approx(1.0, rel=1e-12)
    assert constants.upper == pytest.approx(2.0, rel=1e-12)


def test_in_the_plane_the_search_finds_the_least():
    """Against a sweep of 100,000 directions; B is smooth, so the sweep misses less than 1e-8 of it."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    angle = np.linspace(0, 2 * np.pi, 100_000)
    products = np.maximum(np.stack([np.cos(angle), np.sin(angle)], axis=1) @ x.T, 0)
    A = (products > 0) @ np.sum(x**2, axis=1) / len(x)
    B = 2 * np.mean(products**2, axis=1)
    constants = norm_constants(x)
    assert constants.lower == pytest.approx(min(A.min(), B.min()), rel=1e-6)
    assert max(A.max(), B.max()) <= constants.upper


@pytest.mark.parametrize("d", [3, 10])
def test_every_interpolator_is_within_the_constants(d):
    rng = np.random.default_rng(d)
    x = np.sign(rng.normal(size=(12 * d, d)))
    constants = norm_constants(x)
    for _ in range(10):
        params = {"W1": rng.normal(size=(5, d)) * 10 ** rng.uniform(-1, 1), "W2": rng.normal(size=5)}
        ratio = nets.gauss_newton(nets.mlp, params, x) / squared_norms(params)
        assert constants.lower <= ratio <= constants.upper
    assert 0 < constants.lower < constants.largest <= constants.upper * (1 + 1e-12)


def test_inputs_in_a_half_space_leave_no_lower_constant():
    rng = np.random.default_rng(0)
    assert norm_constants(rng.normal(size=(5, 8))).lower == 0  # n < d
    assert norm_constants(np.abs(rng.normal(size=(50, 3)))).lower == 0
    assert norm_constants(rng.normal(size=(50, 3))).lower > 0


def test_four_neurons_meet_condition_2():
    """Σ ‖W₁ⱼ‖|W₂ⱼ| → 2√2 as ε → 0, in every dimension."""
    assert path_norm(generalising.no_bias_xor(50, epsilon=1e-9)) == pytest.approx(2 * np.sqrt(2), rel=1e-8)


SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=8)))


def test_linear_complexity_is_below_its_bound():
    """R_S = E‖Σ σᵢxᵢ‖/n over all 2⁸ signs: Lemma A.25's first = is a ≤ (Jensen)."""
    x = np.random.default_rng(0).normal(size=(8, 3))
    exact = np.mean(np.linalg.norm(SIGNS @ x, axis=1)) / 8
    assert 0.8 * complexity.linear(x) < exact < complexity.linear(x)


@pytest.mark.parametrize(("n", "d"), [(12, 3), (60, 5)])
def test_no_random_neuron_is_beyond_the_extremes_of_the_search(n, d):
    rng = np.random.default_rng(d)
    x = rng.choice([-1.0, 1.0], size=(n, d))
    constants = norm_constants(x)
    w = rng.normal(size=(20_000, d))
    products = np.maximum(w / np.linalg.norm(w, axis=1, keepdims=True) @ x.T, 0)
    A, B = 2 * np.mean(products > 0, axis=1), 2 * np.mean(products**2, axis=1)
    assert constants.lower <= min(A.min(), B.min())
    assert max(A.max(), B.max()) <= constants.largest <= constants.upper


def test_network_complexity_is_below_its_bound():
    """The supremum is at one neuron, ‖u‖ = 1: a sweep of directions in the plane, all 2⁸ signs."""
    x = np.random.default_rng(1).normal(size=(8, 2))
    angle = np.linspace(0, 2 * np.pi, 2000)
    features = np.maximum(np.stack([np.cos(angle), np.sin(angle)], axis=1) @ x.T, 0)
    C = 3.0
    exact = C / 8 * np.mean(np.max(np.abs(SIGNS @ features.T), axis=1))
    longest = np.linalg.norm(x, axis=1).max()
    assert exact <= 2 * C * complexity.linear(x) <= complexity.no_bias(C, longest, 8)
