import dataclasses

import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError
from steppe.estimate import Accuracy


@pytest.mark.parametrize("rtol", [0.0, -1e-3, np.inf, np.nan, "small", None])
def test_rtol(rtol):
    with pytest.raises(ArgumentError, match="rtol must be a finite number > 0"):
        Accuracy(rtol)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 99, np.nan, "high"])
def test_confidence(confidence):
    with pytest.raises(ArgumentError, match=r"confidence must be .*0\.99"):
        Accuracy(1e-3, confidence)


@pytest.mark.parametrize("max_matvecs", [0, -1, 1.5, True, "many"])
def test_max_matvecs(max_matvecs):
    with pytest.raises(ArgumentError, match="max_matvecs must be a whole number ≥ 1"):
        Accuracy(1e-3, max_matvecs=max_matvecs)


def test_a_replaced_field_is_checked_too():
    assert dataclasses.replace(Accuracy(1e-3, max_matvecs=1e5), rtol=0.1) == steppe.Accuracy(0.1, 0.99, 100_000)
    assert type(Accuracy(1e-3, max_matvecs=1e5).max_matvecs) is int
    with pytest.raises(ArgumentError, match="rtol"):
        dataclasses.replace(Accuracy(1e-3), rtol=0)
