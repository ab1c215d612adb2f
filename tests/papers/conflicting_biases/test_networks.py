"""Networks: rows of table 1 by name, tiny sweeps, and checks that can fail."""

import json
import types
from collections import Counter
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
from finished_runs import Finished

from steppe.check import ArgumentError
from steppe.cli import main
from steppe.cli._critical import ends_rows
from steppe.experiments import measure
from steppe.experiments._verify import runs_needed
from steppe.papers.conflicting_biases import PAPER, figures_1_to_3, figures_5_to_17
from steppe.papers.conflicting_biases.network_ends import at_last_goal, row_summary
from steppe.papers.conflicting_biases.network_runs import DescentRun, NetworkSweep
from steppe.papers.conflicting_biases.network_scales import goals, spec
from steppe.papers.conflicting_biases.table_1 import Setting, row, rows, shown_in
from steppe.store import Store, address
from steppe.sweep import execute

CLAIMS = {claim.id: claim for claim in PAPER.claims if claim.id.startswith("net-")}
ROW_FIGURES = figures_5_to_17.ROW_FIGURES.values()
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
    return NetworkSweep(setting, last_goals, share=2.0, patience=4.0, steps=3000, rtol=3e-3, multiples=MULTIPLES)


def same(found, expected):
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


@pytest.fixture(scope="module")
def swept():
    return Finished(tiny())


def test_a_composed_sweep_is_the_same_sweep(swept, tmp_path):
    """The sweep is composed of runs in the store: the numbers are those of one call, in any process."""
    store, wanted = Store(tmp_path), replace(tiny(), steps=6000)
    assert wanted.split
    assert not tiny().split
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


def test_the_grids_of_a_composed_sweep(tmp_path):
    """The rates and numbers are those of one call of the library: the plan is replayed from what is in the store."""
    wanted = replace(tiny(), goals=(0.3,), share=0.3, steps=6000, multiples=())
    whole = Finished(wanted)
    (entry,) = execute([wanted], Store(tmp_path), workers=1)
    assert entry.result["runs"] == whole.result["runs"]
    same(entry.curves, whole.curves)
    assert set(whole.result["outcomes"]) > {"reached"}  # until runs diverge, so the plan was asked several times


def test_the_summary_of_a_row(swept):
    said = row_summary(swept)
    assert said["critical_rate"] == pytest.approx(2 / said["largest_sharpness"])
    assert said["u_shape"] in ("✓", "(✓)", "(×)", "×")
    ends = at_last_goal(swept)
    _, lines = ends_rows(ends.table, ends.rates, swept.result["outcomes"], ends.critical)
    assert len(lines) == len(MULTIPLES)
    assert lines[2][0] == "1.000"
    assert lines[-1][1:3] == ["diverged", ""]


def test_too_few_rates_for_a_corner(swept):
    """If only two rates reached the goal there is no corner, and no claim on it holds; the summary has the rest."""
    few = swept.changed(outcome=lambda outcome: np.where(np.arange(len(outcome)) < 4, 0, 2))
    said = row_summary(few)
    assert said["reached"] < 5
    assert "sharpness" not in said
    assert said["u_shape"] == "(×)"
    assert not CLAIMS["net-transition"].check([few]).holds
    assert not CLAIMS["net-goal"].check([few]).holds


def test_a_row_at_smoke_scale_is_run_by_its_name_only():
    assert len(ROW_FIGURES) == len(rows())
    assert all("smoke" in f.runs and not f.offered("smoke") for f in ROW_FIGURES)
    for scale, some in (("smoke", False), ("laptop", True)):
        needed = runs_needed(PAPER.claims, scale, figures=PAPER.figures)
        assert any("row-" in label for label, _ in needed) is some


def test_verdicts_need_no_figure_that_no_claim_looks_at():
    """At laptop scale the rest would take a day."""
    looked_at = {figure.name for claim in PAPER.claims for figure in claim.needs}
    for scale in ("smoke", "laptop", "paper"):
        needed = {label.partition(" ")[0] for label, _ in runs_needed(PAPER.claims, scale)}
        shown = {label.partition(" ")[0] for label, _ in runs_needed(PAPER.claims, scale, figures=PAPER.figures)}
        assert needed == looked_at & shown
        assert needed < shown


def test_a_claim_is_not_judged_on_what_is_run_by_name_only(tmp_path):
    (claim,) = (c for c in CLAIMS.values() if any(figure in ROW_FIGURES for figure in c.needs))
    found = measure(PAPER, claim, "smoke", Store(tmp_path))
    assert (found.verdict, found.detail) == ("not-run", f"{claim.needs[0].id} is not offered at smoke scale")


NETWORKS = [
    f for f in PAPER.figures if f.offered("smoke") and any(isinstance(run, NetworkSweep) for run in f.runs["smoke"])
]


@pytest.mark.parametrize("figure", NETWORKS, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, swept):
    entry = swept
    if figure.id == "fig10":
        entry = swept.changed()
        entry.curves = swept.curves | dict.fromkeys(figures_5_to_17.MEASURES, swept.curves["sharpness"])
    numbers = figure.show.numbers([entry])
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert figure.show.draw(numbers).axes


def drawn(run, entry):
    """What a figure shows of `entry` as if it were the finished `run`."""
    shown = entry.changed()
    shown.id = address(run)
    shown.spec = entry.spec | {"setting": asdict(run.setting)}
    shown.curves = entry.curves | dict.fromkeys(figures_5_to_17.MEASURES, entry.curves["sharpness"])
    return shown


def texts(numbers):
    """The title of the figure and those of its panels, as drawn."""
    panels = [panel["title"] for row in numbers["grid"] for panel in row if panel.get("title")]
    return numbers["title"], panels


SHOWN = [(f, scale) for f in PAPER.figures for scale in f.runs if isinstance(f.runs[scale][0], NetworkSweep)]


@pytest.mark.parametrize(("figure", "scale"), SHOWN, ids=lambda v: getattr(v, "id", v))
def test_a_stand_in_carries_its_own_name(figure, scale, swept):
    """Network, data and sizes that were used are in the titles; only the paper's own runs carry the bare name."""
    published = {run.setting for run in figure.runs["paper"]}
    used = [run.setting for run in figure.runs[scale]]
    title, panels = texts(figure.show.numbers([drawn(run, swept) for run in figure.runs[scale]]))
    assert title.startswith("Stand-in for ") is not (set(used) <= published)
    assert (scale == "paper") is (set(used) <= published)
    for setting in used:
        assert any(panel.startswith(f"{setting.name}\n") for panel in panels)
        assert scale == "paper" or setting.name in title
        for fact in (setting.architecture, setting.data, f"{setting.width}×{setting.depth}", setting.n):
            assert str(fact or "") in setting.name


def test_a_claim_names_stand_ins(swept):
    (run,) = figures_1_to_3.fig2.runs["smoke"]
    on_stand_in = CLAIMS["net-goal"].check([drawn(run, swept)])
    assert on_stand_in.detail.endswith("; stand-ins: fcn-tanh 16×2, digits-100")
    on_row = CLAIMS["net-goal"].check([drawn(figures_1_to_3.fig2.runs["paper"][0], swept)])
    assert "stand-in" not in on_row.detail
    assert on_row.measured == on_stand_in.measured


def test_critical_names_the_stand_in(tmp_path, capsys):
    """Asked for by the name of the row, at smoke scale: the table, and each object of the JSON, name what was used."""
    row, used = "fcn-relu-mnist-5k-mse-0.01", "fcn-relu 16×2, digits-100"
    said = []
    for form in ((), ("--json",)):
        with pytest.raises(SystemExit, match="0"):
            main(["critical", row, "--losses", "0.4", "--store", str(tmp_path), "--workers", "1", *form])
        said.append(capsys.readouterr().out)
    assert said[0].startswith(f"stand-in for {row}: {used}\n")
    (one,) = json.loads(said[1])
    assert (one["row"], one["setting"], one["stand_in"]) == (row, used, True)


def test_the_panels_of_a_row(swept):
    figure = figures_5_to_17.ROW_FIGURES["fcn-relu-mnist-5k-mse-0.01"]
    numbers = figure.show.numbers([swept])
    assert [len(r) for r in numbers["grid"]] == [3, 3]
    fine, coarse = (r[0]["series"][0]["x"] for r in numbers["grid"])
    assert max(fine) <= 3.001 * at_last_goal(swept).critical
    assert set(fine) <= set(coarse)
    assert figure.show.draw(numbers).axes


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
    both = [planted(), planted(loss="cross_entropy", sharpness=lambda s: 0.4 * s)]
    for claim in CLAIMS.values():
        if not claim.needs or claim.id in ("net-goal", "net-measures"):
            continue
        found = claim.check(*[both] * len(claim.needs))
        assert found.holds, (claim.id, found)
    assert CLAIMS["net-measures"].check([planted()]).holds


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("net-transition", {"sharpness": lambda s: np.minimum(s, 1.0)}),  # leaves its plateau at 2 η_c
        ("net-transition", {"sharpness": np.ones_like}),
        ("net-flow-aligned", {"l2": lambda v: v * np.linspace(1, 2, 11)}),
        ("net-flow-aligned", {"nuclear": lambda v: 1.1 * v}),  # constant, but not the flow's
        ("net-edge", {"sharpness": lambda s: 0.6 * s}),
        ("net-norms-grow", {"l1": lambda v: -v + 30}),
        ("net-least-norm", {"test_loss": lambda v: np.arange(11) + 1.0}),
        ("net-u-shape", {"test_loss": lambda v: np.arange(11) + 1.0}),
        ("net-speed", {"steps": lambda v: np.full(11, 100.0)}),
        ("net-speed-past", {"steps": lambda v: 400 / np.array(planted().curves["lr"]) ** 2}),
        ("net-norms-agree", {"l2": lambda v: -v}),
        ("net-distance", {"from_flow_l1": lambda v: np.ones(11)}),
        ("net-layers", {"l2[1]['W']": lambda v: -v + 30}),
    ],
)
def test_a_check_can_fail(id, wrong):
    assert CLAIMS[id].check([planted()]).holds
    assert not CLAIMS[id].check([planted(**wrong)]).holds


def test_other_checks_can_fail():
    ce = planted(loss="cross_entropy")
    assert not CLAIMS["net-ce-falls"].check([ce, planted()]).holds
    fallen = planted(loss="cross_entropy", sharpness=lambda s: 0.4 * s)
    assert CLAIMS["net-ce-falls"].check([fallen, planted()]).holds
    # Beyond 2/s₀ the largest sharpness is that of the start: it shows no fall from the edge.
    above = planted(smoothed_sharpness=lambda s: np.where(planted().curves["lr"] > 1.6, 9.0, s))
    assert not CLAIMS["net-ce-falls"].check([fallen, above]).holds
    above.result["flow"]["initial_sharpness"] = [2 / 1.6]
    assert CLAIMS["net-ce-falls"].check([fallen, above]).holds
    above.result["flow"]["initial_sharpness"] = [3.0]  # no rate between η_c and 2/s₀
    assert not CLAIMS["net-ce-falls"].check([fallen, above]).holds
    flat = planted(loss="cross_entropy", smoothed_sharpness=0.3 * np.ones(11))
    assert not CLAIMS["net-ce-edge"].check([flat]).holds
    assert not CLAIMS["net-measures"].check([planted(trace=lambda v: -v)]).holds


def test_the_transition_moves_with_the_goal(swept):
    found = CLAIMS["net-goal"].check([swept])
    assert 0 < found.measured <= 1
    later = swept.changed()
    later.result = json.loads(json.dumps(swept.result))
    later.result["flow"]["critical"].reverse()
    assert not CLAIMS["net-goal"].check([later]).holds or found.measured == 1


def test_another_seed_is_another_sweep():
    one = tiny()
    assert address(one) != address(replace(one, setting=replace(one.setting, seed=44)))
