"""The claims of wen2023 measured on small real runs, and the checks shown to be able to fail."""

import dataclasses
import types

import numpy as np
import pytest

from steppe.papers.catalogue import paper
from steppe.papers.wen2023 import theory
from steppe.papers.wen2023.figures import lower_bound, numbers
from steppe.papers.wen2023.training import Row, Training
from steppe.store import Store


def stand_in(accuracy, trace, least=None, network="bias", d=30):
    """A finished run with these curves."""
    least = trace if least is None else least
    epochs = np.arange(float(len(trace)))
    curves = {"epoch": epochs, "test_accuracy": np.array(accuracy), "trace": np.array(trace),
              "train_loss": 1 / (1 + epochs), "least_trace": np.array(least)}  # fmt: skip
    final = {name: column[-1].item() for name, column in curves.items()}
    spec = {"network": network, "d": d, "seed": 0, "stages": [{"epochs": 2}, {"epochs": 1}]}
    return types.SimpleNamespace(curves=curves, result={"final": final}, spec=spec, id="x")


GOOD = {
    "fig1a": [stand_in([0.5, 0.9, 1.0], [60.0, 90.0, 70.0])] * 3,
    "fig1b": [stand_in([0.5, 0.9, 1.0], [60.0, 30.0, 26.0])] * 3,
    "fig4a": [stand_in([0.5, 0.9, 1.0], [60.0, 90.0, 70.0], [20.0, 20.0, 20.0])] * 3,
    "fig4b": [stand_in([0.5, 0.8, 0.7], [60.0, 25.0, 22.3], [20.0, 22.0, 22.2])] * 3,
}
BAD = {
    "fig1a": [stand_in([0.5, 0.9, 0.9], [60.0, 20.0, 70.0])] * 3,
    "fig1b": [stand_in([0.5, 0.9, 0.8], [60.0, 30.0, 80.0])] * 3,
    "fig4a": [stand_in([0.5, 0.9, 0.7], [60.0, 20.0, 21.0], [61.0, 20.0, 20.0])] * 3,
    "fig4b": [stand_in([0.5, 0.8, 1.0], [60.0, 25.0, 24.0], [20.0, 22.0, 22.2])] * 3,
}


@pytest.mark.parametrize("claim", [c for c in paper("wen2023").claims if c.needs], ids=lambda c: c.id)
def test_a_check_can_hold_and_can_fail(claim):
    assert claim.check(GOOD).holds
    assert not claim.check(BAD).holds


@pytest.mark.parametrize("claim", [c for c in paper("wen2023").claims if not c.needs], ids=lambda c: c.id)
def test_claims_of_theory(claim):
    assert claim.check({}).holds is not claim.misprint


@pytest.mark.parametrize("d", [2, 5, 30])
def test_eq_5_in_closed_form(d):
    """trace = 2((d+1)/r² + r²), which r² = √(d+1) makes equal to the bound."""
    for printed, r2 in ((True, np.sqrt(d**2 + 1)), (False, np.sqrt(d + 1))):
        trace, bound = theory.four_neuron_trace(d, printed=printed)
        assert trace == pytest.approx(2 * ((d + 1) / r2 + r2), rel=1e-13)
        assert bound == pytest.approx(4 * np.sqrt(d + 1), rel=1e-14)


def test_numbers_of_a_figure():
    shown = numbers("fig4b", GOOD["fig4b"])
    assert shown["bound"] == pytest.approx(4 * np.sqrt(31))
    assert shown["stages"] == [2]
    assert [r["trace"] for r in shown["runs"]] == [[60.0, 25.0, 22.3]] * 3
    assert lower_bound(GOOD["fig4b"]) == pytest.approx(22.2711, abs=5e-5)


SMALL = Training("bias", (Row(0.01, 0.05, 1, 0.0, 200),), d=8, n=20, width=30, test=100)


def test_a_training_records_what_the_figure_shows(tmp_path):
    entry = Store(tmp_path).compute(SMALL, lambda c: SMALL.compute(c, None))
    assert set(entry.curves) == {
        "step", "epoch", "train_loss", "test_loss", "test_accuracy", "trace", "norm", "least_trace",
    }  # fmt: skip
    assert entry.result["outcome"] == "exhausted"
    assert entry.result["steps"] == 200 * 20
    assert entry.result["final"]["trace"] == entry.curves["trace"][-1]
    assert entry.curves["epoch"][0] == 0
    assert entry.curves["epoch"][-1] == 200
    assert entry.params["W1"].shape == (30, 8)
    assert entry.params["W1"].dtype == np.float32
    assert (entry.curves["trace"] >= entry.curves["least_trace"] * (1 - 1e-5)).all()


def test_the_seed_decides_data_start_and_order():
    a, b, c = (dataclasses.replace(SMALL, seed=s).compute(None, None) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.params["W1"], b.params["W1"])
    assert not np.array_equal(a.params["W1"], c.params["W1"])


def test_width_does_not_change_the_data():
    a, b = (dataclasses.replace(SMALL, width=w).problems()[0] for w in (10, 20))
    np.testing.assert_array_equal(a.x, b.x)
