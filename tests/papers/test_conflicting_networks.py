"""The part of conflicting-biases on networks: rows by name, tiny real sweeps, and checks that can fail."""

import json
import types
from collections import Counter
from dataclasses import replace

import jax
import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.cli.ends import ends_rows
from steppe.experiments._paper import paper
from steppe.experiments._verify import measure, specs_needed
from steppe.papers.conflicting_biases import networks_checks as checks
from steppe.papers.conflicting_biases import networks_claims, networks_figures
from steppe.papers.conflicting_biases.networks_ends import last
from steppe.papers.conflicting_biases.networks_report import row_summary
from steppe.papers.conflicting_biases.networks_scales import goals, spec
from steppe.papers.conflicting_biases.networks_setting import Setting
from steppe.papers.conflicting_biases.networks_specs import DescentRun, Swept
from steppe.papers.conflicting_biases.networks_table import row, rows, shown_in
from steppe.store import Store, address, canonical
from steppe.sweep._engine import execute

PAPER = paper("conflicting-biases")
MULTIPLES = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 40.0)


def test_every_row_of_table_1_is_there():
    """48 rows as printed, the nine further ones of figures 7, 8 and 17; each panel and figure once."""
    found = rows()
    assert len(found) == 57
    shown = [figure for r in found.values() for figure in r.figures]
    # Figures 9 and 10 have several rows each.
    assert sorted({f for f in shown if shown.count(f) > 1}) == ["10", "9"]
    numbered = {int(f) for f in shown if f.isdigit()}
    assert set(range(18, 80)) <= numbered
    base = row("fcn-relu-mnist-5k-mse-0.01")
    assert base.setting == Setting("fcn", "mnist", "half_mse", n=5000)
    assert (base.mark, base.goal) == ("✓", 0.01)
    assert row("fcn-relu-cifar-10-5k-mse-0.1-43-x5").setting.scale == 5
    assert row("fcn-relu-600x6-mnist-5k-mse-0.01").setting.width == 600
    assert shown_in("1c").setting.architecture == "vit"
    assert shown_in("7c").setting.parameterisation == "mup"
    with pytest.raises(ArgumentError, match="Did you mean"):
        row("fcn-relu-mnist-5k-mse")


def test_marks_as_printed():
    """As counted in table 1; one row, the CNN with batch normalisation, has none."""
    marks = [r.mark for r in rows().values()][:48]
    assert Counter(marks) == {"✓": 17, "(✓)": 6, "(×)": 6, "×": 18, "-": 1}


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_row_has_a_spec_at_every_scale(scale):
    specs = [spec(r, scale) for r in rows().values()]
    for r, s in zip(rows().values(), specs, strict=True):
        assert s.goals == tuple(sorted(s.goals, reverse=True))
        if scale == "paper":
            assert (s.setting, s.goals[-1]) == (r.setting, r.goal)
    assert len({address(s) for s in specs}) == (57 if scale == "paper" else len(set(specs)))
    assert goals(1.0) == (1.0,)


@pytest.mark.parametrize("name", ["cnn-bn-relu-cifar-10-5k-ce-0.01", "vit-relu-mnist-5k-ce-0.1",
                                  "transformer-relu-reversal-ce-0.1", "fcn-relu-housing-mse-0.1",
                                  "mup-relu-100x2-mnist-5k-mse-0.1"])  # fmt: skip
def test_rows_become_problems_at_smoke_scale(name):
    """Built from bundled data; network, data and loss fit together, for training and for testing."""
    setting = spec(row(name), "smoke").setting
    train, test = setting.problems()
    assert (train.loss_function.name, len(train)) == (setting.loss, setting.n)
    assert jax.eval_shape(train.loss, train.w0).shape == jax.eval_shape(test.loss, train.w0).shape == ()


@pytest.mark.parametrize("name", ["mup-relu-100x2-mnist-5k-mse-0.1", "fcn-relu-cifar-10-5k-mse-0.1-43-x5",
                                  "cnn-relu-mnist-5k-mse-0.1"])  # fmt: skip
def test_flows_of_rows_reach_their_goals_at_smoke_scale(name):
    """Narrower networks of these rows stall above the goals or take minutes; about 10,000 gradients are seconds."""
    done = spec(row(name), "smoke").flow().compute(None, None)
    assert done.result["outcome"] == "reached"
    assert done.params["flow.counts"][-1, 0] < 10_000


def tiny(loss="half_mse", activation="tanh"):
    setting = Setting("fcn", "digits", loss, n=60, test=200, activation=activation, width=8, depth=1)
    last_goals = (0.3, 0.15) if loss == "half_mse" else (0.5, 0.2)
    return Swept(setting, last_goals, share=2.0, patience=4.0, steps=3000, rtol=3e-3, multiples=MULTIPLES)


class Finished:
    """A computed spec as the store would hand it over, without the disk."""

    def __init__(self, spec):
        done = spec.compute(None, None)
        self.spec, self.id = json.loads(json.dumps(canonical(spec))), address(spec)
        self.curves, self.params = dict(done.curves), dict(done.params)
        self.result = json.loads(json.dumps(done.result))

    def changed(self, **columns):
        other = types.SimpleNamespace(**self.__dict__)
        other.curves = self.curves | {name: np.asarray(change(self.curves[name])) for name, change in columns.items()}
        return other


def same(found, expected):
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


@pytest.fixture(scope="module")
def swept():
    return Finished(tiny())


def test_a_sweep_of_runs_of_their_own_is_the_same_sweep(swept, tmp_path, monkeypatch):
    """One run a rate in the store, put together; the numbers are those of one call, by another process too."""
    monkeypatch.setenv("JAX_ENABLE_X64", "true")  # the other process too is to round as this one does
    store, wanted = Store(tmp_path), replace(tiny(), steps=6000)
    assert wanted.apart
    assert not tiny().apart
    (entry,) = execute([wanted], store, workers=1)
    ids = store.ids()
    assert len(ids) == 1 + 1 + len(MULTIPLES)  # the flow, the sweep, the runs
    assert entry.result["outcomes"] == swept.result["outcomes"]
    one = next(id for id in ids if store.open(id).spec["kind"] == DescentRun.KIND)
    here, together = store.open(one).curves, entry.curves
    for id in (one, entry.id):
        store.remove(id)
    (again,) = execute([wanted], store, workers=2)
    assert store.ids() == ids
    same(store.open(one).curves, here)
    assert again.result["outcomes"] == swept.result["outcomes"]
    for curves in (together, again.curves):
        same(curves, swept.curves)


def test_the_grids_of_runs_of_their_own(tmp_path):
    """The rates and numbers of one call of the library: the plan is gone through again, from what is in the store."""
    wanted = replace(tiny(), goals=(0.3,), share=0.3, steps=6000, multiples=())
    whole = Finished(wanted)
    (entry,) = execute([wanted], Store(tmp_path), workers=1)
    assert entry.result["runs"] == whole.result["runs"]
    same(entry.curves, whole.curves)
    assert set(whole.result["outcomes"]) > {"reached"}  # on until it is lost, so that the plan was asked several times


def test_what_a_row_comes_to_in_words(swept):
    said = row_summary(swept)
    assert said["critical_rate"] == pytest.approx(2 / said["largest_sharpness"])
    assert said["u_shape"] in ("✓", "(✓)", "(×)", "×")
    ends = last(swept)
    _, lines = ends_rows(ends.table, ends.rates, swept.result["outcomes"], ends.critical)
    assert len(lines) == len(MULTIPLES)
    assert lines[2][0] == "1.000"
    assert lines[-1][1:3] == ["diverged", ""]


def test_too_few_rates_for_a_corner(swept):
    """Two rates that reached the goal: no corner is told, and no claim holds on it; the rest is told all the same."""
    few = swept.changed(outcome=lambda outcome: np.where(np.arange(len(outcome)) < 4, 0, 2))
    said = row_summary(few)
    assert said["reached"] < 5
    assert "sharpness" not in said
    assert said["u_shape"] == "(×)"
    assert not checks.at_the_critical_rate({"fig3": [few]}).holds
    assert not checks.moves_with_the_goal({"fig2": [few]}).holds


OURS = [f for f in networks_figures.FIGURES if f.offered("smoke")]


def test_a_row_at_smoke_scale_is_run_by_its_name_only():
    ours = [f for f in networks_figures.FIGURES if f.id.startswith("row-")]
    assert len(ours) == len(rows())
    assert all("smoke" in f.specs and f.seconds["smoke"] > 0 and not f.offered("smoke") for f in ours)
    assert not [label for label, _ in specs_needed([PAPER], "smoke", figures=True) if "row-" in label]
    assert [label for label, _ in specs_needed([PAPER], "laptop", figures=True) if "row-" in label]


def test_verdicts_need_no_figure_that_no_claim_looks_at():
    """At laptop scale the rest would take a day."""
    looked_at = {f"{PAPER.id}/{id}" for claim in PAPER.claims for id in claim.needs}
    for scale in ("smoke", "laptop", "paper"):
        needed = {label.partition(" ")[0] for label, _ in specs_needed([PAPER], scale, figures=False)}
        shown = {label.partition(" ")[0] for label, _ in specs_needed([PAPER], scale, figures=True)}
        assert needed == looked_at & shown
        assert needed < shown


def test_a_claim_is_not_judged_on_what_is_run_by_name_only(tmp_path):
    claim = next(c for c in PAPER.claims if any(id.startswith("row-") for id in c.needs))
    found = measure(PAPER, claim, "smoke", Store(tmp_path))
    assert (found.verdict, found.detail) == ("not-run", f"{claim.needs[0]} is not offered at smoke scale")


@pytest.mark.parametrize("figure", OURS, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, swept):
    entry = swept
    if figure.id == "fig10":
        entry = swept.changed()
        entry.curves = swept.curves | dict.fromkeys(networks_figures.SHARPNESS, swept.curves["sharpness"])
    numbers = figure.numbers([entry])
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert figure.draw(numbers).axes


def test_the_panels_of_a_row(swept):
    figure = next(f for f in networks_figures.FIGURES if f.id == "row-fcn-relu-mnist-5k-mse-0.01")
    numbers = figure.numbers([swept])
    assert [len(r) for r in numbers["grid"]] == [3, 3]
    fine, coarse = (r[0]["series"][0]["x"] for r in numbers["grid"])
    assert max(fine) <= 3.001 * last(swept).critical
    assert set(fine) <= set(coarse)
    assert figure.draw(numbers).axes


def planted(**columns):
    """Ends of a sweep as the paper describes them, nothing computed."""
    m = np.array([0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0])
    past = np.maximum(1.0, m)
    ends = {
        "lr": m, "goal": np.full(11, 0.1), "outcome": np.zeros(11), "limit": 2 / m, "steps": 400 / m * past**0.3,
        "sharpness": 2 / past, "largest_sharpness": 2.1 / past, "smoothed_sharpness": 2.0 / past, "l1": 9 + past,
        "l2": 3 + past, "nuclear": 5 + past, "test_loss": 1 + (m - 2) ** 2, "test_accuracy": np.ones(11),
        "from_flow_l1": 0.1 + 9 * (past - 1), "from_start_l1": past, "l2[0]['W']": 4 + past, "l2[1]['W']": 5 + past,
        "trace": 9 / past, "adaptive_average": 1 / past, "adaptive_worst": 1 / past, "fisher": 2 / past,
        "fisher_trace": 9 / past,
    }  # fmt: skip
    flow = {"goal": [0.1], "critical": [1.0], "largest_sharpness": [2.0], "initial_sharpness": [0.5],
            "sharpness": [2.0], "l1": [10.0], "l2": [4.0], "nuclear": [6.0]}  # fmt: skip
    setting = {"loss": columns.pop("loss", "half_mse"), "architecture": "fcn", "activation": "relu", "width": 1,
               "depth": 1, "parameterisation": "standard", "scale": 1, "seed": 43, "n": 0, "data": "x"}  # fmt: skip
    known = {name: np.asarray(value(ends[name]) if callable(value) else value) for name, value in columns.items()}
    return types.SimpleNamespace(
        id=setting["loss"], spec={"setting": setting, "goals": [0.1]}, curves=ends | known,
        result={"flow": flow, "runs": {"lr": m.tolist()}, "outcomes": ["reached"] * 11}, params={},
    )  # fmt: skip


def test_checks_hold_where_the_paper_is_right():
    both = {"fig3": [planted(), planted(loss="cross_entropy", sharpness=lambda s: 0.4 * s)]}
    for claim in networks_claims.CLAIMS:
        if not claim.needs or claim.id in ("net-goal", "net-measures"):
            continue
        found = claim.check(both)
        assert found.holds, (claim.id, found)
    assert checks.measures_fall({"fig10": [planted()]}).holds


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (checks.at_the_critical_rate, {"sharpness": lambda s: np.minimum(s, 1.0)}),  # leaves its plateau at 2 η_c
        (checks.at_the_critical_rate, {"sharpness": np.ones_like}),
        (checks.constant_below, {"l2": lambda v: v * np.linspace(1, 2, 11)}),
        (checks.constant_below, {"nuclear": lambda v: 1.1 * v}),  # constant, but not the flow's
        (checks.follows, {"sharpness": lambda s: 0.6 * s}),
        (checks.norms_grow, {"l1": lambda v: -v + 30}),
        (checks.least_norm_is_not_best, {"test_loss": lambda v: np.arange(11) + 1.0}),
        (checks.marks, {"test_loss": lambda v: np.arange(11) + 1.0}),
        (checks.speed, {"steps": lambda v: np.full(11, 100.0)}),
        (checks.slower_past_it, {"steps": lambda v: 400 / np.array(planted().curves["lr"]) ** 2}),
        (checks.norms_agree, {"l2": lambda v: -v}),
        (checks.away_from_the_flow, {"from_flow_l1": lambda v: np.ones(11)}),
        (checks.layers_grow, {"l2[1]['W']": lambda v: -v + 30}),
    ],
)
def test_a_check_can_fail(check, wrong):
    assert check({"fig3": [planted()]}).holds
    assert not check({"fig3": [planted(**wrong)]}).holds


def test_other_checks_can_fail():
    ce = planted(loss="cross_entropy")
    assert not checks.cross_entropy_falls_again({"fig13": [ce, planted()]}).holds
    fallen = planted(loss="cross_entropy", sharpness=lambda s: 0.4 * s)
    assert checks.cross_entropy_falls_again({"fig13": [fallen, planted()]}).holds
    # Beyond 2/s₀ the largest sharpness is that of the start: this says nothing of a fall from the edge.
    above = planted(smoothed_sharpness=lambda s: np.where(planted().curves["lr"] > 1.6, 9.0, s))
    assert not checks.cross_entropy_falls_again({"fig13": [fallen, above]}).holds
    above.result["flow"]["initial_sharpness"] = [2 / 1.6]
    assert checks.cross_entropy_falls_again({"fig13": [fallen, above]}).holds
    above.result["flow"]["initial_sharpness"] = [3.0]  # no rate between η_c and 2/s₀
    assert not checks.cross_entropy_falls_again({"fig13": [fallen, above]}).holds
    flat = planted(loss="cross_entropy", smoothed_sharpness=0.3 * np.ones(11))
    assert not checks.rises_to_the_edge({"fig13": [flat]}).holds
    assert not checks.measures_fall({"fig10": [planted(trace=lambda v: -v)]}).holds


def test_the_transition_moves_with_the_goal(swept):
    found = checks.moves_with_the_goal({"fig2": [swept]})
    assert 0 < found.measured <= 1
    later = swept.changed()
    later.result = json.loads(json.dumps(swept.result))
    later.result["flow"]["critical"].reverse()
    assert not checks.moves_with_the_goal({"fig2": [later]}).holds or found.measured == 1


def test_another_seed_is_another_sweep():
    one = tiny()
    assert address(one) != address(replace(one, setting=replace(one.setting, seed=44)))
