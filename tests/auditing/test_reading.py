"""The reading and the comparison, on planted numbers and on losses whose stationary points are known."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from cases.planted_audits import planted

import steppe
from steppe.auditing import compare
from steppe.auditing._reading import state


@pytest.mark.parametrize(
    ("numbers", "expected", "sentence"),
    [
        ({}, "minimum", "This is a minimum of the loss on these examples"),
        ({"gradient_norm": 0.5}, "moving", "This is not a minimum: ‖∇L‖ = 0.5"),
        (
            {"smallest_eigenvalue": -1.0},
            "saddle",
            "this is a saddle: the smallest eigenvalue is -1, 0.1 of the largest",
        ),
        ({"gradient_norm": 0.5, "smallest_eigenvalue": -1.0}, "moving", "There is negative curvature too"),
        # −1e-3 of the sharpness is not told from zero.
        ({"smallest_eigenvalue": -0.009}, "minimum", "no negative curvature"),
        ({"loss": math.nan}, "diverged", "the run has diverged"),
        ({"loss": math.inf}, "diverged", "the run has diverged"),
        ({"sharpness": None}, "unknown", "is not known"),
    ],
)
def test_what_kind_of_point_it_is(numbers, expected, sentence):
    found = planted(**numbers)
    assert state(found) == expected
    assert sentence in found.reading
    assert found.trusted == (expected != "diverged")


@pytest.mark.parametrize(
    ("ratio", "sentence", "stable"),
    [
        (0.3, "The learning rate is stable here", "holds"),
        (0.99, "at the edge of stability", "holds"),
        (2.0, "too large for this point", "fails"),
    ],
)
def test_the_edge(ratio, sentence, stable):
    found = planted(edge=ratio)
    assert sentence in found.reading
    assert {c.name: c.verdict for c in found.checks}["the step size is stable here"] == stable
    assert "learning rate is" not in planted().reading


def test_rescaling():
    assert "cannot make it much flatter" in planted().reading
    assert "10 times less" in planted(trace_gauss_newton=290.0).reading
    unknown = planted(invariant_trace=None, notes={"invariant_trace": "tanh is not homogeneous"}).reading
    assert "networks of the same parameterisation only" in unknown


def test_what_does_not_follow_is_always_said():
    for numbers in ({}, {"gradient_norm": 0.5}, {"sharpness": None}, {"sharpness": 0.0, "trace": 0.0}):
        text = planted(**numbers).reading
        assert "scenario I" in text
        assert "flat networks can memorise" in text


def test_small_samples():
    text = planted(data=3.0).reading
    assert "± 3" in text
    assert "smaller than its sampling error" in text
    assert "±" not in planted(data=0.0).reading


def saddle_and_minimum():
    return steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)


@pytest.mark.parametrize(("w", "expected"), [([1.0, 1.0], "minimum"), ([0.0, 0.0], "saddle"), ([2.0, 1.0], "moving")])
def test_known_points_of_a_product(w, expected):
    """L = ½(w₁w₂ − 1)²: a minimum at (1, 1), eigenvalues 0 and 2; a saddle at 0, eigenvalues ±1."""
    found = steppe.audit(saddle_and_minimum(), w=jnp.array(w))
    assert state(found) == expected
    if expected == "saddle":
        assert found.estimates["sharpness"].value == pytest.approx(1.0)
        assert found.estimates["smallest_eigenvalue"].value == pytest.approx(-1.0)
        assert "critical_sharpness" in found.missing  # the gradient is zero


def test_a_run_that_diverged():
    found = steppe.audit(saddle_and_minimum(), w=np.array([np.nan, 1.0]))
    assert "diverged" in found.reading
    assert not found.trusted
    assert "sharpness" in found.missing
    assert {check.name: check.verdict for check in found.checks}["the loss is finite"] == "fails"


# Side by side.


# A network ten times as sharp by all measures that rescaling changes.
SHARP = {
    "sharpness": 100.0, "trace": 300.0, "sharpness_gauss_newton": 100.0, "trace_gauss_newton": 300.0,
    "critical_sharpness": 100.0, "rise_8_bits": 1e-3,
}  # fmt: skip


def test_an_order_that_rescaling_does_not_change():
    sharp = planted("sharp", width=0.01, **SHARP, invariant_trace=290.0, invariant_sharpness=90.0)
    found = compare([planted("flat", width=0.01), sharp])
    assert {order.order for order in found.orders} == {("flat", "sharp")}
    assert all(order.separated for order in found.orders)
    assert "flat is the flattest" in found.reading
    assert "The order survives rescaling" in found.reading


def test_an_order_of_scale_only():
    """A rescaled twin: ten times as sharp, the same function."""
    found = compare({"net": planted("net", width=0.01), "twin": planted("twin", width=0.01, **SHARP)})
    by_name = {order.measure: order for order in found.orders}
    assert by_name["sharpness"].separated
    assert not by_name["invariant_trace"].separated
    assert "cannot be told apart" in found.reading
    assert "survives" not in found.reading


def test_an_order_that_turns_round():
    other = planted("other", width=0.01, **SHARP, invariant_trace=10.0, invariant_sharpness=3.0)
    text = compare([planted("net", width=0.01), other]).reading
    assert "net is the flattest by" in text
    assert "it is other" in text
    assert "does not survive rescaling" in text


def test_unequal_losses_are_said():
    assert "losses differ" in compare([planted("a"), planted("b", loss=1.0)]).reading
    assert "losses differ" not in compare([planted("a"), planted("b", sharpness=11.0)]).reading


def test_intervals_that_overlap_decide_nothing():
    found = compare([planted("a", width=0.1), planted("b", width=0.1, sharpness=11.0)])
    assert "No measure tells these networks apart" in found.reading


def test_the_error_of_the_sample_can_undo_an_order():
    found = compare([planted("a", data=1.0), planted("b", data=1.0, sharpness=11.0)])
    order = next(o for o in found.orders if o.measure == "sharpness")
    assert order.separated
    assert not order.on_other_data


def test_wrong_comparisons():
    with pytest.raises(ValueError, match="at least two"):
        compare([planted("a")])
    with pytest.raises(ValueError, match="different names"):
        compare([planted("a"), planted("a")])
