import numpy as np
import pytest

from steppe import check


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3), np.array(3)])
def test_whole_numbers(value):
    assert check.integer("n", value, minimum=0) == 3
    assert type(check.integer("n", value, minimum=0)) is int


@pytest.mark.parametrize("value", [True, 2.5, "3", None, [3], float("nan"), float("inf"), -1, np.bool_(True), 1j])
def test_not_whole_numbers(value):
    with pytest.raises(check.ArgumentError, match=r"^n must be a whole number ≥ 0; got"):
        check.integer("n", value, minimum=0)


@pytest.mark.parametrize("value", [True, "3", None, [1.0], float("nan"), float("inf"), -1.0, 1j])
def test_not_numbers(value):
    with pytest.raises(check.ArgumentError, match=r"^lr must be a finite number ≥ 0; got"):
        check.number("lr", value, minimum=0.0)


def test_finite_counts_the_bad_entries():
    with pytest.raises(check.ArgumentError, match="2 of 3 entries"):
        check.finite("x", np.array([1.0, np.nan, np.inf]))


def test_suggestions():
    assert "'fig4b'" in check.suggest("fig4", ["fig4b", "other"])
    assert check.suggest("zzz", ["a", "b"]) == "Known: a, b."
