"""Negative controls: each check of a theorem or lemma gets something plausible that must fail it."""

import numpy as np
import pytest

import steppe
from steppe.papers.wen2023 import explicit, figures_1_to_6, lemmas, misprints, section_3, sections_4_and_5
from steppe.papers.wen2023.theory import bounds, complexity, generalising


def test_norms_need_enough_examples():
    """With n = d/2 some neuron fires on no example, and costs nothing."""
    assert section_3.norms_are_equivalent([(4, 32)]).holds
    assert not section_3.norms_are_equivalent([(8, 4)]).holds


def test_a_sharper_net_is_longer():
    """2,000 random neurons whose W₂ is fitted interpolate as well, with a path norm above the lemma's."""
    found, _ = section_3.flattest_on_cube(4, 12, kinks=True)
    W1 = np.random.default_rng(0).normal(size=(20, 4))
    phi = np.maximum(found.x @ W1.T, 0)
    W2 = np.linalg.lstsq(phi, found.y, rcond=None)[0]
    kernel = np.linalg.svd(phi)[2][-1]  # a change of W₂ that the training set does not see
    assert not section_3.bounded_path_norm({"W1": W1, "W2": W2 + 20 * kernel}, found.x).holds


def square(r, c):
    return r**2


def clipped(r, c):
    """The usual truncation: its slope jumps at c."""
    return np.minimum(r**2, c**2)


def huber(r, c):
    return np.where(np.abs(r) <= c, r**2, 2 * c * np.abs(r) - c**2)


@pytest.mark.parametrize("function", [square, clipped, huber])
def test_eq_15_joins_smoothly(function):
    assert section_3.truncation_violation(section_3.truncated_square, 1.0) <= 1e-9
    assert section_3.truncation_violation(function, 1.0) > 0.1


def test_condition_2_refuses_other_distributions():
    x = explicit.cube(5)
    assert section_3.condition_2_violation(x, 5) < 1e-12
    assert section_3.condition_2_violation(2 * x, 5) > 0.1  # covariance 4I
    assert section_3.condition_2_violation(x[x[:, 0] > 0], 5) > 0.1  # not symmetric
    assert section_3.condition_2_violation(x[x[:, 2] * x[:, 3] > 0], 5) > 0.1  # correlated
    assert section_3.condition_2_violation(x, 5, C=2.0) > 0.1  # no net is so short
    assert section_3.condition_2_violation(x, 5, sigma=0.9) > 0.01  # unit variance needs σ ≥ 1


def test_lemma_a2_needs_a_complete_training_set():
    """With one tail alone nothing says which of the other inputs matter."""
    complete = steppe.data.complete(5, key=0).x
    one_tail = complete[(complete[:, 2:] == complete[0, 2:]).all(axis=1)]
    assert section_3.farthest(complete, 0.0) < 1e-5
    assert section_3.farthest(one_tail, 0.0) > 0.1


def test_weighted_theorem_needs_a_complete_training_set():
    """On three corners of each tail a neuron that sees x₁ and x₂ has ψ > ½, so that ψ = ½ says nothing about tails."""
    x = steppe.data.complete(4, key=0).x
    three = x[(x[:, 0] > 0) | (x[:, 1] > 0)]
    W = np.random.default_rng(0).normal(size=(500, 5))
    assert section_3.psi(W[:, :4], W[:, 4], x).max() <= 0.5
    assert section_3.psi(W[:, :4], W[:, 4], three).max() > 0.51


def test_weighted_theorem_needs_a_net_that_interpolates():
    x = steppe.data.complete(4, key=0).x
    params = generalising.sim_bn_xor(4, scale=1e4)
    with pytest.raises(AssertionError):
        section_3.weighted_ratio(params | {"W2": 0.9 * params["W2"]}, x)


def test_generalising_nets_do_not_memorise():
    """The nets of propositions 4.2 and 5.2 are as flat, and no memorising solutions."""
    general = sections_4_and_5.memorises_at_the_least(lambda x, y: generalising.xor(30), bounds.two_layer_bias)
    assert abs(general.measured) < 1e-12
    assert not general.holds
    normalised = sections_4_and_5.memorises_at_the_least(
        lambda x, y: generalising.sim_ln_xor(30, 1e-3), lambda x, y: bounds.sim_ln(x, y, 1e-3), eps=1e-3
    )
    assert not normalised.holds
    deep = sections_4_and_5.memorises_at_the_least(
        lambda x, y: generalising.xor(30, depth=3), lambda x, y: bounds.deep_bias(x, y, 3)
    )
    assert not deep.holds


def test_definition_4_2():
    x, y = explicit.cube(3)[:4], np.array([1.0, -1.0, 2.0, 0.5])
    params = explicit.memorising(x, y)
    assert explicit.memorises(params, x, y)
    assert not explicit.memorises(params, x, 2 * y)  # does not interpolate
    shared = params | {"b1": params["b1"] + 100 * np.abs(params["W1"]).max()}  # every neuron fires everywhere
    assert not explicit.memorises(shared, x, explicit.outputs(shared, x))
    twice = {name: np.concatenate([a, a]) for name, a in params.items()}
    assert not explicit.memorises(twice | {"W2": np.concatenate([params["W2"], params["W2"]]) / 2}, x, y)


def test_wide_neurons_are_silent_nowhere():
    """ε at half of the gap, as in the figure before: neighbours overlap."""
    assert figures_1_to_6.on_the_circle(0.5)[3] == 0
    assert not figures_1_to_6.silent_shares((0.5, 1e-2, 1e-4)).holds
    assert not figures_1_to_6.silent_shares((1e-4, 1e-3, 1e-2)).holds  # falls


def test_tails_of_longer_vectors():
    """Lemma A.17 is for σ = 1: vectors 8 times as long exceed it."""
    assert lemmas.tails(1.0).holds
    assert not lemmas.tails(64.0).holds


def test_a_class_of_longer_maps_needs_a_larger_constant():
    assert lemmas.needed_constant(1.0).holds
    assert not lemmas.needed_constant(30.0).holds


def test_lemma_a19_is_for_unit_covariance():
    """x = 0 in nine cases of ten, else a Gaussian of covariance 10 I: not 1-subgaussian, and seldom long."""
    assert misprints.below_probability(complexity.long_probability, lambda d: 1.0).holds
    assert not misprints.below_probability(complexity.long_probability, lambda d: 0.1).holds
    assert misprints.above_moment(complexity.fourth_moment, lambda d: d**2).holds
    assert not misprints.above_moment(complexity.fourth_moment, lambda d: 10 * d * (d + 2)).holds
