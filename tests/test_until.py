import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe import until, when
from steppe.check import ArgumentError

conditions = st.one_of(
    st.floats(0, 10).map(until.loss),
    st.integers(0, 99).map(until.steps),
    st.integers(0, 99).map(until.epochs),
    st.floats(0, 10).map(until.seconds),
    st.floats(0, 10).map(until.time),
)


@given(conditions, conditions, conditions)
def test_joining_is_commutative_associative_and_idempotent(a, b, c):
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a | a == a


def test_the_first_to_hold_wins():
    assert (until.loss(0.1) | until.loss(0.5)).loss == 0.5
    assert (until.steps(10) | until.steps(3)).steps == 3


@pytest.mark.parametrize("make", [until.steps, until.epochs, until.seconds, until.time])
@pytest.mark.parametrize("value", [-1, float("nan"), "many", None])
def test_bad_values(make, value):
    with pytest.raises(ArgumentError, match=make.__name__):
        make(value)


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_logarithmic_moments_rise_and_are_even_in_ratio(per_decade, start):
    moments = when.logarithmic(per_decade=per_decade)
    following = moments.after(start)
    assert following > start
    # Rounding to whole numbers aside, the next moment is at most one ratio away.
    assert following <= max(start, 1) * 10 ** (1 / per_decade) + 1
    assert moments.after(following - 1) == following


@given(st.integers(1, 50), st.integers(0, 10**6))
def test_even_moments(distance, start):
    following = when.every(steps=distance).after(start)
    assert following % distance == 0
    assert start < following <= start + distance


@given(st.lists(st.integers(0, 50)), st.integers(0, 60))
def test_chosen_moments(chosen, start):
    later = [step for step in chosen if step > start]
    assert when.steps(chosen).after(start) == min(later, default=np.inf)


def test_chosen_moments_are_whole_numbers():
    for bad in ([1.5], [-1], 3):
        with pytest.raises(ArgumentError, match="steps must be"):
            when.steps(bad)


def test_every_needs_one_unit():
    with pytest.raises(ArgumentError, match="either steps or epochs"):
        when.every()
    with pytest.raises(ArgumentError, match="either steps or epochs"):
        when.every(steps=1, epochs=1)
