"""Both contenders minimise one function: at small sizes they end at one value."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from bench import flatten


def test_every_contender_is_measured(monkeypatch):
    monkeypatch.setattr(flatten, "TRACE", ((3, 4, 4, 2), 6))
    monkeypatch.setattr(flatten, "SHARPNESS", ((3, 4, 4, 2), 4))
    monkeypatch.setattr(flatten, "EPOCHS", 2_000)
    for name, small in (("RESNET", (2, 3)), ("IMAGES", 2)):
        monkeypatch.setattr(flatten, name, small)
    *found, resnet = flatten.measure()
    assert resnet.subject.startswith("ResNet")
    assert [r.subject for r in found].count("least trace") == 2
    for r in found:
        assert r.ratio == pytest.approx(r.theirs / r.ours)
        assert np.isfinite([r.ours, r.theirs]).all()
        gap, excess = (float(n) for n in re.findall(r"(?:gap|by) (-?\d+e[+-]\d+)", r.note))
        assert gap <= 1e-6
        # After so few steps of a first-order method, and with Adam at a kink of λ_max, the value is not exact.
        assert -1e-7 <= excess <= (1e-2 if "λ" in r.subject else 1e-4)


def test_adam_and_sgd_descend():
    """Both reach the minimum of a parabola, 3 in every coordinate."""
    for method, rate in ((flatten._sgd, 0.1), (flatten._adam, 0.1)):
        value, _ = flatten._descended(lambda t: 1.0 + jnp.sum((t - 3.0) ** 2), 2, method, rate)
        assert value == pytest.approx(1.0, abs=1e-6)
