"""A sweep from a base and axes to a table and a figure."""

import numpy as np
import pytest
from cases import own_functions

from steppe import until
from steppe.check import ArgumentError
from steppe.experiments import own, planned, sweep
from steppe.papers import paper
from steppe.store import Store, address
from steppe.sweep import Limits, axis, log

LR = log(0.1, 3, 4)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    base = own("cases.own_functions:quadratic", stop=until.steps(6), measures=["sharpness", "trace"], curvature=1.5)
    return sweep(base, axis(lr=LR) * axis(seed=range(3)), store=Store(tmp_path_factory.mktemp("runs")), workers=2)


def test_a_problem_of_ones_own(swept):
    """loss(k) = ½ λ w₀² (1 − ηλ)²ᵏ; the sharpness and the trace are λ = 1.5."""
    table = swept.table()
    starts = np.array([np.random.default_rng(seed).normal(size=1)[0] for seed in table["seed"]])
    np.testing.assert_allclose(table["loss"], 0.75 * starts**2 * (1 - 1.5 * table["lr"]) ** 12, rtol=1e-12)
    np.testing.assert_allclose(table["sharpness"], 1.5, rtol=1e-3)
    np.testing.assert_allclose(table["trace"], 1.5, rtol=1e-12)
    assert set(table["outcome"]) == {"exhausted"}
    assert len(set(table["run"])) == 12


def test_the_figure_has_bands_over_the_seeds(swept):
    """Least, median and largest of the seeds at each rate, and the line 2/η for sharpness."""
    numbers, table = swept.numbers("loss", "lr"), swept.table()
    (line,) = numbers["panels"][0]["series"]
    rows = table["loss"].reshape(4, 3)
    assert line["x"] == LR
    assert (line["low"], line["y"], line["high"]) == tuple(
        f(rows, axis=1).tolist() for f in (np.min, np.median, np.max)
    )
    assert "3 seeds" in numbers["panels"][0]["title"]
    limit = swept.numbers("sharpness", "lr")["panels"][0]["series"][-1]
    assert limit["y"] == pytest.approx([2 / lr for lr in LR])
    assert swept.draw("loss", "lr") is not None
    with pytest.raises(ArgumentError, match="los"):
        swept.draw("los", "lr")


def test_failures_end_no_other_run(tmp_path):
    """They are told, remembered, and tried again; a stored run is not computed again."""
    store, axes = Store(tmp_path), axis(a=[1.0, 13.0, 3.0])
    found = sweep(own("cases.own_functions:numbers"), axes, store=store, workers=1)
    assert found.table()["outcome"].tolist() == ["reached", "failed", "reached"]
    assert found.table()["product"][[0, 2]].tolist() == [2.0, 6.0]
    assert np.isnan(found.table()["product"][1])
    ((id, why),) = found.failures.items()
    assert "thirteen" in why
    assert store.failures() == {id: why}
    before = {e.id: e.about["finished"] for e in found.entries if e}
    again = sweep(own("cases.own_functions:numbers"), axes, store=store, workers=1)
    assert {e.id: e.about["finished"] for e in again.entries if e} == before


def test_memory_and_time_are_limited(tmp_path):
    """A run beyond a limit is ended; the others are computed."""
    runs = planned(own("cases.own_functions:endless"), axis(seed=[0])).specs
    runs += planned(own("cases.own_functions:greedy"), axis(seed=[0])).specs
    runs += planned(own("cases.own_functions:slow"), axis(seed=[3])).specs
    base = planned(runs, axis(seed=[3]))
    limits = Limits(memory=300 * 2**20, seconds=6.0)
    found = base.run(Store(tmp_path), workers=2, limits=limits)
    assert found.table()["outcome"].tolist() == ["failed", "failed", "reached"]
    whys = [found.failures[id] for id in found.ids[:2]]
    assert "6 s" in whys[0]
    assert "memory" in whys[1]


def test_an_axis_on_a_paper(tmp_path):
    spec = paper("wen2023").find_figure("fig4b").runs["smoke"][0]
    plan = planned(spec, axis(width=[50, 60]) * axis(seed=[0, 1]))
    assert [(one.width, one.seed) for one in plan.specs] == [(50, 0), (50, 1), (60, 0), (60, 1)]
    with pytest.raises(ArgumentError, match="widht"):
        planned(spec, axis(widht=[1]))


def test_refused():
    with pytest.raises(ArgumentError, match=r"lrr.*Did you mean 'lr'"):
        own("cases.own_functions:quadratic", lrr=0.1)
    with pytest.raises(ArgumentError, match="sharpnes"):
        own("cases.own_functions:quadratic", measures=["sharpnes"])
    with pytest.raises(ArgumentError, match="no_such"):
        own("no_such:function")


def test_changed_code_makes_new_runs(monkeypatch):
    one = own("cases.own_functions:numbers", a=1.0)
    monkeypatch.setattr("steppe.experiments._own.code_of", lambda function: "other")
    assert address(own("cases.own_functions:numbers", a=1.0)) != address(one)
    with pytest.raises(ArgumentError, match="changed"):
        one.compute(None, None)
    assert own_functions.numbers(1.0)["product"] == 2
