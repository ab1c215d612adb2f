"""The picture of a sweep: what is drawn is what was measured, with or without a flow."""

import json

import numpy as np
import pytest
from cases.rate_nets import digits, factorisation

from steppe import figures, rates
from steppe.check import ArgumentError
from steppe.rates import _draw as panels


def drawn(paths):
    """Panels by their y label."""
    numbers = json.loads(next(path for path in paths if path.suffix == ".json").read_text())
    return {panel["y"]: panel for row in numbers["grid"] for panel in row}


def points(panel, label):
    (series,) = [s for s in panel["series"] if s["label"] == label]
    return series["x"], series["y"]


def test_what_was_measured_is_drawn(tmp_path):
    problem, test = digits()
    critical = rates.critical_rate(problem, losses=[0.3, 0.2])
    multiples = (0.5, 1.5, 2.0, 400.0)
    found = rates.sweep(problem, [m * critical[-1].rate for m in multiples], goals=[0.3, 0.2], test=test,
                        critical=critical, steps=3000)  # fmt: skip
    paths = rates.draw(found, tmp_path / "sweep")
    assert [path.name for path in paths] == ["sweep.png", "sweep.pdf", "sweep.json"]
    shown, ends = drawn(paths), found.at(0.2)
    assert list(shown) == ["sharpness λ_max", "ℓ1 norm", "test loss", "iterations"]
    reached = ends["outcome"] == 0
    assert reached.tolist() == [True, True, True, False]
    for label, name in (("sharpness λ_max", "sharpness"), ("test loss", "test_loss"), ("iterations", "steps")):
        x, y = points(shown[label], "end of gradient descent")
        assert x == ends["lr"][reached].tolist()
        assert y == ends[name][reached].tolist()
    edge = np.array(points(shown["sharpness λ_max"], "2/η"))
    np.testing.assert_allclose(edge[0] * edge[1], 2)
    at = {line["label"]: line["at"] for panel in shown.values() for line in panel["levels"] + panel["places"]}
    assert at["critical rate $\\eta_c$"] == critical[-1].rate
    assert at["largest along the flow"] == critical[-1].largest_sharpness
    first = drawn(rates.draw(found, tmp_path / "first", goal=0.3))
    assert points(first["iterations"], "end of gradient descent")[1] == found.at(0.3)["steps"][reached].tolist()
    with pytest.raises(ArgumentError, match="goal"):
        rates.draw(found, tmp_path / "none", goal=0.1)


def test_rates_of_ones_own_without_a_flow(tmp_path):
    """No critical rate is known, and there is no test data: what there is is drawn."""
    shown = drawn(rates.draw(rates.sweep(factorisation(), [0.05, 0.3], goals=[1e-4]), tmp_path / "sweep"))
    assert list(shown) == ["sharpness λ_max", "ℓ1 norm", "iterations"]
    assert not any(panel["levels"] or panel["places"] for panel in shown.values())


def test_a_sweep_of_which_nothing_reached_its_goal(tmp_path):
    found = rates.sweep(factorisation(), [0.01], goals=[1e-9], steps=2)
    shown = drawn(rates.draw(found, tmp_path / "sweep"))
    assert not shown["iterations"]["series"][0]["x"]


def test_no_place_for_an_infinite_critical_rate():
    table = {"lr": np.array([0.1]), "l1": np.array([1.0])}
    flow = {"critical": np.inf, "initial_sharpness": -1.0, "l1": 1.0}
    numbers = {"title": "", "grid": [[panels.panel(table, flow, "l1", smoothed=False)]]}
    assert not numbers["grid"][0][0]["places"]
    (axis,) = figures.rates(numbers).axes
    assert [line.get_label() for line in axis.lines] == ["end of gradient descent", "end of the flow"]
