"""Networks: rows of table 1 by name, tiny sweeps, and checks that can fail."""

import json
import types
from collections import Counter
from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.finished_runs import Finished

import steppe
from steppe.check import ArgumentError
from steppe.cli import main
from steppe.cli._critical import ends_rows
from steppe.experiments import NotJudgedError, measure, write
from steppe.experiments._verify import runs_needed
from steppe.papers.conflicting_biases import PAPER, figures_of_networks, network_measures
from steppe.papers.conflicting_biases.judged import cases
from steppe.papers.conflicting_biases.network_ends import at_last_goal, row_summary
from steppe.papers.conflicting_biases.network_measures import (
    MEASURES,
    SCALE_FREE,
    MeasuredEnds,
    adaptive_linf,
    scale_free,
)
from steppe.papers.conflicting_biases.network_runs import DescentRun, NetworkSweep
from steppe.papers.conflicting_biases.network_scales import goals, served_by, spec, sweeps
from steppe.papers.conflicting_biases.table_1 import Setting, row, rows, shown_in
from steppe.store import Store, address
from steppe.sweep import execute

CLAIMS = {claim.id: claim for claim in PAPER.claims if claim.id.startswith("net-")}
ROW_FIGURES = figures_of_networks.ROW_FIGURES.values()
MULTIPLES = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 40.0)


def test_every_row_of_table_1_is_there():
    """48 rows as printed, the nine of figures 7, 8 and 17, three beyond; each panel and figure once."""
    found = rows()
    assert len(found) == 60
    assert [bool(r.figures) for r in found.values()] == [True] * 57 + [False] * 3
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
    """Rows that differ in their goal share a sweep that has all these goals; other rows have their own."""
    for r in rows().values():
        s = spec(r, scale)
        assert s.goals == tuple(sorted(s.goals, reverse=True))
        if scale != "smoke":
            assert r.goal in s.goals
            assert (r, r.setting.seed) in served_by(types.SimpleNamespace(id=address(s), spec={}))
        if scale == "paper":  # of all images of CIFAR-10 a part, and the titles say so
            part = (r.setting.data, r.setting.n) == ("cifar10", 0)
            assert s.setting == (replace(r.setting, n=10_000) if part else r.setting)
    assert len({spec(r, "laptop") for r in rows().values()}) == len({r.setting for r in rows().values()}) == 50
    assert goals(1.0) == (1.0,)


def test_seeds_at_laptop_scale():
    one, other = (row(name) for name in ("fcn-tanh-mnist-5k-mse-0.1", "fcn-relu-cifar-10-5k-mse-0.01-44"))
    assert [s.setting.seed for s in sweeps(one, "laptop")] == [43, 44, 45]
    assert [s.setting.seed for s in sweeps(other, "laptop")] == [44]
    assert sweeps(one, "paper") == (spec(one, "paper"),)


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
    said = row_summary(at_last_goal(swept))
    assert said["gradients"] >= sum(swept.result["runs"]["gradients"])
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
    said = row_summary(at_last_goal(few))
    assert said["reached"] < 5
    assert "sharpness" not in said
    assert said["u_shape"] == "(×)"
    for id in ("net-transition", "net-goal"):
        with pytest.raises(NotJudgedError, match="too few rates to judge"):
            CLAIMS[id].check([few])


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
    claim = CLAIMS["net-least-norm"]
    found = measure(PAPER, claim, "smoke", Store(tmp_path))
    assert found.verdict == "not-run"
    assert found.detail.startswith(claim.needs[0].id)
    assert f"and {len(claim.needs) - 3} more is not offered at smoke scale" in found.detail


NETWORKS = [
    f for f in PAPER.figures if f.offered("smoke") and any(isinstance(run, NetworkSweep) for run in f.runs["smoke"])
]


@pytest.mark.parametrize("figure", NETWORKS, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, swept):
    numbers = figure.show.numbers([swept])
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert figure.show.draw(numbers).axes


def drawn(run, entry):
    """What a figure shows of `entry` as if it were the finished `run`."""
    shown = entry.changed()
    shown.id = address(run)
    shown.spec = entry.spec | {"setting": asdict(run.setting)}
    shown.curves = entry.curves | dict.fromkeys((*MEASURES, *SCALE_FREE), entry.curves["sharpness"])
    return shown


def texts(numbers):
    """The title of the figure and those of its panels, as drawn."""
    panels = [panel["title"] for row in numbers["grid"] for panel in row if panel.get("title")]
    return numbers["title"], panels


SHOWN = [
    (f, scale) for f in PAPER.figures for scale in f.runs if isinstance(f.runs[scale][0], (NetworkSweep, MeasuredEnds))
]


@pytest.mark.parametrize(("figure", "scale"), SHOWN, ids=lambda v: getattr(v, "id", v))
def test_a_stand_in_carries_its_own_name(figure, scale, swept):
    """Network, data and sizes that were used are in the titles; only the paper's own runs carry the bare name."""
    published = {run.setting for run in figure.runs["paper"]} & {r.setting for r in rows().values()}
    used = [run.setting for run in figure.runs[scale]]
    title, panels = texts(figure.show.numbers([drawn(run, swept) for run in figure.runs[scale]]))
    assert title.startswith("Stand-in for ") is not (set(used) <= published)
    part = figure.id == "row-fcn-relu-cifar-10-ce-0.1"  # on a part of its images at paper scale
    assert (scale == "paper" and not part) is (set(used) <= published)
    for setting in used:
        assert any(panel.startswith(f"{setting.name}\n") for panel in panels)
        assert setting.name in title or (scale == "paper" and not part)
        for fact in (setting.architecture, setting.data, f"{setting.width}×{setting.depth}", setting.n):
            assert str(fact or "") in setting.name


def test_a_claim_names_stand_ins(swept):
    (run,) = figures_of_networks.fig2.runs["smoke"]
    on_stand_in = CLAIMS["net-goal"].check([drawn(run, swept)])
    assert on_stand_in.detail.endswith("; stand-ins: fcn-tanh 16×2, digits-100")
    on_row = CLAIMS["net-goal"].check([drawn(figures_of_networks.fig2.runs["paper"][0], swept)])
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
    """The grids of the paper as two rows of panels; a few rates as one; further seeds below, in units of η_c."""
    figure = figures_of_networks.ROW_FIGURES["fcn-relu-mnist-5k-mse-0.01"]
    grids = swept.changed()
    grids.spec = swept.spec | {"multiples": []}
    numbers = figure.show.numbers([grids])
    assert [len(r) for r in numbers["grid"]] == [3, 3]
    fine, coarse = (r[0]["series"][0]["x"] for r in numbers["grid"])
    assert max(fine) <= 3.001 * at_last_goal(swept).critical
    assert set(fine) <= set(coarse)
    thinned = figure.show.numbers([swept])
    assert len(thinned["grid"]) == 1
    assert "7 rates in place of the grids" in thinned["title"]
    seeds = figure.show.numbers([swept, swept])
    assert [one["printed"] for one in seeds["rows"]] == ["✓", "✓"]
    in_units = seeds["grid"][1][1]["series"][0]["x"]
    np.testing.assert_allclose(in_units, [m for m in MULTIPLES if m < 40][: len(in_units)])
    assert figure.show.draw(seeds).axes


def test_the_table_of_rows(swept, tmp_path, capsys):
    """Read from the files of figures: three rows of one sweep here, with the printed mark beside ours."""
    figure = figures_of_networks.ROW_FIGURES["fcn-relu-mnist-5k-mse-0.01"]
    write(figure, "laptop", [swept, swept], tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["critical", "--results", str(tmp_path / PAPER.id)])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2 + 57
    assert {len(line) for line in lines} == {10}
    (there,) = [line for line in lines[2:] if line[1] != "not run"]
    said = row_summary(at_last_goal(swept))
    assert there[:4] == ["| fcn-relu-mnist-5k-mse-0.01", "laptop", "fcn-tanh 8×1, digits-60", "43, 43"]
    assert there[4] == f"{said['critical_rate']:.3g}, {said['critical_rate']:.3g}"
    assert there[6:8] == ["✓", f"{said['u_shape']}, {said['u_shape']}"]
    assert there[8] == ", ".join(["yes" if "✓" in said["u_shape"] else "no"] * 2)
    with pytest.raises(SystemExit, match="2"):
        main(["critical", "--results", str(tmp_path)])


def test_equal_axes(swept):
    """The panels of figure 2 in one row have the same limits, so that columns compare by eye."""
    show = figures_of_networks.fig2.show
    axes = show.draw(show.numbers([swept])).axes
    for one, other in ((axes[0], axes[1]), (axes[2], axes[3])):
        assert (one.get_xlim(), one.get_ylim()) == (other.get_xlim(), other.get_ylim())


def planted(name="fcn-relu-cifar-10-5k-mse-0.01-44", seed=None, start=0.5, **columns):
    """Ends of the laptop sweep of a row as the paper describes them, nothing computed; `start` is s₀."""
    of = row(name)
    m = np.array([0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0])
    past = np.maximum(1.0, m)
    low = 0.4 if of.setting.loss == "cross_entropy" else 1.0
    ends = {
        "lr": m, "goal": np.full(11, of.goal), "outcome": np.zeros(11), "limit": 2 / m, "steps": 400 / m * past**0.3,
        "sharpness": 2 / past * low, "largest_sharpness": 2.1 / past, "smoothed_sharpness": 2.0 / past,
        "l1": 9 + past, "l2": 3 + past, "nuclear": 5 + past,
        "test_loss": 1 + (m - (2.0 if "✓" in of.mark else 5.0)) ** 2, "test_accuracy": np.ones(11),
        "from_flow_l1": 0.1 + 9 * (past - 1), "from_start_l1": past, "l1[0]['W']": 4 + past, "l1[1]['W']": 5 + past,
        "trace": 9 / past, "adaptive_average": 1 / past, "adaptive_worst": 1 / past, "fisher": 2 / past,
        "fisher_trace": 9 / past,
    }  # fmt: skip
    flow = {"goal": [of.goal], "critical": [1.0], "largest_sharpness": [2.0], "initial_sharpness": [start],
            "sharpness": [2.0 * low], "l1": [10.0], "l2": [4.0], "nuclear": [6.0]}  # fmt: skip
    run = next(s for s in sweeps(of, "laptop") if s.setting.seed == (seed or of.setting.seed))
    known = {k: np.asarray(value(ends[k]) if callable(value) else value) for k, value in columns.items()}
    return types.SimpleNamespace(
        id=address(run), spec={"setting": asdict(run.setting), "goals": [of.goal]}, curves=ends | known,
        result={"flow": flow, "runs": {"lr": m.tolist()}, "outcomes": ["reached"] * 11}, params={},
    )  # fmt: skip


M = planted().curves["lr"]
FALLS, RISES = -np.maximum(1.0, M) + 30, np.maximum(1.0, M) + 9
LARGE = {"lr": M / 5, "l1": -M + 30}
# A row that each claim speaks of, where it is not the default one, and what of it differs from the others.
ABOUT = {
    "net-ce-transition": ("fcn-relu-mnist-ce-0.01", {}), "net-ce-edge": ("fcn-relu-mnist-ce-0.01", {}),
    "net-ce-falls": ("fcn-relu-mnist-ce-0.01", {}), "net-dataset-size": ("fcn-relu-mnist-ce-0.01", {}),
    "net-architectures": ("cnn-relu-mnist-5k-ce-0.01", {}), "net-activation": ("fcn-tanh-mnist-5k-mse-0.1", {}),
    "net-width-depth": ("fcn-relu-200x4-mnist-5k-mse-0.01", {}), "net-tables": ("fcn-relu-housing-mse-0.1", {}),
    "net-wide-mnist": ("fcn-relu-400x2-mnist-5k-mse-0.01", {"l1": np.minimum(FALLS, 29 - 0.0 * M)}),
    "net-wide-deep-mnist": ("fcn-relu-400x4-mnist-5k-mse-0.01", {"l1": 9 + (np.maximum(1, M) - 2) ** 2}),
    "net-u-shape": ("fcn-relu-mnist-ce-0.01", {}), "net-measures": ("fcn-relu-cifar-10-5k-mse-0.1-43-x5", {}),
    "net-large-start": ("fcn-relu-cifar-10-5k-mse-0.1-43-x5", {"start": 2.0}),
    "net-larger-start": ("fcn-relu-cifar-10-5k-ce-0.01-43-x10", LARGE),
    "net-kernel": ("kernel-relu-200x2-mnist-5k-mse-0.1", {"start": 2.0}),
    "net-tables-rising": ("fcn-relu-housing-mse-0.1", {"sharpness": 2 / M}),
}  # fmt: skip
# What refutes each claim on its row.
WRONG = {
    "net-transition": [{"sharpness": np.minimum(2 / np.maximum(1, M), 1.0)}, {"sharpness": np.ones(11)}],
    "net-ce-transition": [{"smoothed_sharpness": np.minimum(2 / np.maximum(1, M), 1.0)}],
    "net-flow-aligned": [{"l2": lambda v: v * np.linspace(1, 2, 11)}, {"nuclear": lambda v: 1.1 * v}],
    "net-edge": [{"sharpness": lambda s: 0.6 * s}],
    "net-ce-edge": [{"smoothed_sharpness": 0.3 * np.ones(11)}],
    "net-ce-falls": [{"sharpness": lambda s: 2 * s}],
    "net-norms-grow": [{"l1": FALLS}, {"nuclear": FALLS}],
    "net-least-norm": [{"test_loss": M}, {"test_loss": FALLS, "l1": FALLS}],
    "net-u-shape": [{"test_loss": M}],
    "net-extreme": [{"test_loss": M}],
    "net-speed": [{"steps": np.full(11, 100.0)}],
    "net-speed-past": [{"steps": 400 / M * np.maximum(1, M) ** -0.5}],
    "net-norms-agree": [{"l2": lambda v: -v}],
    "net-measures": [{"trace": lambda v: -v}, {"adaptive_worst": lambda v: -v}],
    "net-distance": [{"from_flow_l1": np.ones(11)}],
    "net-layers": [{"l1[1]['W']": FALLS}],
    "net-dataset-size": [{"l1": FALLS}],
    "net-architectures": [{"smoothed_sharpness": np.ones(11)}],
    "net-width-depth": [{"l1": FALLS}],
    "net-activation": [{"sharpness": np.ones(11)}],
    "net-wide-mnist": [{"l1": RISES}],
    "net-wide-deep-mnist": [{"l1": RISES}, {"l1": FALLS}],
    "net-seeds": [{"sharpness": lambda s: 0.6 * s}],
    "net-large-start": [{"start": 1.0}],
    "net-larger-start": [{"lr": M}, {"l1": M}],
    "net-kernel": [{"start": 1.0}],
    "net-tables": [{"l1": FALLS}],
    "net-tables-rising": [{"sharpness": 2 / np.maximum(1, M)}],
}  # fmt: skip
ON_ROWS = [claim for claim in CLAIMS.values() if claim.needs and claim.id != "net-goal"]


def test_every_claim_on_rows_has_a_negative_control():
    assert set(WRONG) == {claim.id for claim in ON_ROWS}


@pytest.mark.parametrize("claim", ON_ROWS, ids=lambda claim: claim.id)
def test_a_claim_holds_where_the_paper_is_right_and_fails_where_it_is_not(claim):
    """A planted row as the paper describes it, then with one thing changed: "0 of 1 rows", and the row is named."""
    name, differs = ABOUT.get(claim.id, ("fcn-relu-cifar-10-5k-mse-0.01-44", {}))
    good = claim.check([planted(name, **differs)])
    assert (good.holds, good.measured) == (True, 1.0), good
    assert good.detail.startswith("1 of 1 rows")
    for wrong in WRONG[claim.id]:
        bad = claim.check([planted(name, **differs | wrong)])
        assert (bad.holds, bad.measured) == (False, 0.0), (wrong, bad)
        assert f"against: {name} (" in bad.detail
        # One row against it among two: it fails as stated, except where the paper says "most".
        both = claim.check([planted(name, **differs | wrong), planted(name, **differs)])
        assert not both.holds


def test_a_row_counts_once_for_each_seed_and_the_goals_of_a_sweep_are_rows():
    """The sweep of MNIST with squares serves four rows; a measured copy of a sweep is the same row."""
    name = "fcn-relu-mnist-5k-mse-0.1"
    entry, seed = planted(name), planted(name, seed=44)
    entry.spec["goals"] = seed.spec["goals"] = [0.1, 0.01, 0.001, 0.0001]
    again = types.SimpleNamespace(**vars(entry))
    run = spec(row(name), "laptop")
    again.id, again.spec = address(MeasuredEnds(run)), {"sweep": json.loads(json.dumps(asdict(run)))}
    found = cases([entry, seed, again, entry], lambda r: True)
    assert len(found) == 8
    assert sorted(case.ends.goal for case in found) == [1e-4, 1e-4, 1e-3, 1e-3, 1e-2, 1e-2, 0.1, 0.1]
    assert sum(case.name.endswith(", seed 44") for case in found) == 4
    assert cases([entry], lambda r: r.setting.seed == 44) == []


def test_falling_is_judged_up_to_the_rates_that_start_below_the_edge():
    """Beyond 2/s₀ the largest sharpness is that of the start: it shows no fall from the edge."""
    name, check = "fcn-relu-mnist-ce-0.01", CLAIMS["net-ce-falls"].check
    above = {"smoothed_sharpness": lambda s: np.where(M > 1.6, s / 9, s)}
    assert not check([planted(name, **above)]).holds
    assert check([planted(name, start=2 / 1.6, **above)]).holds
    with pytest.raises(NotJudgedError, match="too few rates"):
        check([planted(name, start=3.0)])
    with pytest.raises(NotJudgedError, match="no run of a row"):
        check([planted()])


def test_measures_at_the_ends_of_a_sweep(swept, monkeypatch):
    """Where a rate reached the goal its stored w is measured; elsewhere the columns are NaN."""
    monkeypatch.setattr(network_measures, "measured", lambda problem, w, *, invariant: {"trace": float(jnp.sum(w))})
    wanted = MeasuredEnds(tiny())
    assert wanted.missing({}.get) == [tiny()]
    done = wanted.compose({tiny(): swept}.get)
    last = np.isclose(swept.curves["goal"], tiny().goals[-1])
    known = np.flatnonzero(swept.curves["outcome"][last] == 0)
    assert 0 < len(known) < len(MULTIPLES)
    assert np.flatnonzero(np.isfinite(done.curves["trace"])).tolist() == known.tolist()
    assert done.curves["trace"][known[0]] == np.float32(swept.params[f"w/{known[0]}"].sum(dtype=np.float32))
    same(done.curves, {"lr": swept.curves["lr"][last]})


def test_measures_without_scale_against_dense_matrices():
    setting = replace(tiny().setting, n=20, width=3)
    problem, _ = setting.problems()
    w = problem.w0
    found = scale_free(problem, w, invariant=False)
    H, size = np.asarray(jax.hessian(problem.loss)(w)), np.abs(np.asarray(w))
    assert found["weighted"] == pytest.approx(np.linalg.eigvalsh(size[:, None] * H * size)[-1], rel=0.02)
    slope = jax.jit(jax.grad(problem.example_loss))
    slopes = np.array([slope(w, i) for i in range(len(problem))])
    top = np.linalg.eigvalsh(slopes @ slopes.T / len(problem))[-1]
    assert found["empirical_fisher"] == pytest.approx(top, rel=0.02)
    # The trace is an estimate with an error of about 10%.
    assert found["empirical_fisher_trace"] == pytest.approx(np.sum(slopes**2) / len(problem), rel=0.3)


def test_the_largest_increase_in_a_box():
    """L = ½ Σ hᵢ (wᵢ − 1)² at w = (2, 3) has its maximum over the box at the corner away from 1."""
    h, w, radius = jnp.array([1.0, 4.0]), jnp.array([2.0, 3.0]), 0.05
    problem = steppe.Problem(lambda w, x: x * w[None], w, jnp.sqrt(h)[None], jnp.sqrt(h)[None], steppe.losses.half_mse)
    corner = 0.5 * np.sum(np.asarray(h) * ((np.asarray(w) * (1 + radius) - 1) ** 2 - (np.asarray(w) - 1) ** 2))
    assert adaptive_linf(problem, w, radius=radius) == pytest.approx(corner, rel=1e-6)


def test_the_transition_moves_with_the_goal(swept):
    """η_c must fall from the first goal to the last, and the corner must not rise."""
    check = CLAIMS["net-goal"].check
    first, last = swept.result["flow"]["critical"]
    for critical, holds in (((1.1 * last, last), True), ((last, 1.1 * last), False)):
        planted_rates = swept.changed()
        planted_rates.result = swept.result | {"flow": swept.result["flow"] | {"critical": list(critical)}}
        assert check([planted_rates]).holds is holds
    assert first == pytest.approx(last, rel=0.01)


def test_another_seed_is_another_sweep():
    one = tiny()
    assert address(one) != address(replace(one, setting=replace(one.setting, seed=44)))
