"""The claims of wen2023 measured on small real runs, and the checks shown to be able to fail."""

import dataclasses
import json
import math
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.text import Text

import steppe
from steppe.data import xor
from steppe.experiments import Finding
from steppe.networks import SimBN, SimLN, TwoLayer
from steppe.papers.wen2023 import PAPER, explicit, lemmas, recorded, table_1
from steppe.papers.wen2023._paper import curves, split
from steppe.papers.wen2023.figures_1_to_6 import longest_neurons
from steppe.papers.wen2023.theory import generalising, printed
from steppe.papers.wen2023.training import Row, Training
from steppe.problem import Problem
from steppe.store import Store

TRAINED = [figure for figure in PAPER.figures if re.fullmatch(r"fig\d+[ab](-printed)?", figure.id)]


def stand_in(accuracy, trace, least=None, **given):
    """A finished run with these curves."""
    least = trace if least is None else least
    columns = {"test_accuracy": accuracy, "trace": trace, "least_trace": least, "test_loss": 1 - np.array(accuracy)}
    epochs = np.array([0.0, 4_000.0, 100_000.0])
    columns |= {"epoch": epochs, "train_loss": given.get("loss", 1.0) / (1 + epochs)}
    columns |= {name: np.full(3, given.get(name, 1.0)) for name in recorded.PROPERTIES}
    curves = {name: np.array(column, dtype=float) for name, column in columns.items()}
    final = {name: column[-1].item() for name, column in curves.items()}
    spec = {"network": "bias", "data": "xor", "d": 30, "n": 100, "width": 500, "seed": 0,
            "stages": [{"epochs": 2, "bias_decay": 0.0}, {"epochs": 1}]} | given.get("spec", {})  # fmt: skip
    result = {
        "final": final,
        "bound": given.get("bound", float(least[-1])),
        "trace_parts": {"gauss_newton": trace[-1]},
        "outcome": "exhausted",
    }
    params = {"W1": np.array(given.get("W1", np.eye(4)))}
    return types.SimpleNamespace(curves=curves, result=result, spec=spec, params=params, id="x")


FEATURES = np.array([[3, -3, 0.1], [-2, -2, 0.0], [1.5, 1.5, 0.1], [-1, 1, 0.0], [0, 0, 0.3]])
FINE, SHARP, FLAT = [0.5, 0.9, 1.0], [60.0, 190.0, 70.0], [60.0, 30.0, 22.3]
POOR, FLATTEST = [0.5, 0.8, 0.7], [20.0, 22.0, 22.2]
BASELINE, SAM_FAILS = stand_in(FINE, SHARP, [20.0, 20.0, 20.0]), stand_in(POOR, FLAT, FLATTEST)
NORMALISED = stand_in(FINE, [60.0, 3.0, 2.0], W1=FEATURES, bound=2.0)


def sizes(*by_network):
    """Runs of nets without bias and with it, whose test losses are given by n."""
    return [
        stand_in([0, 0, 1 - v], SHARP, spec={"network": network, "n": n})
        for network, losses in zip(("no-bias", "bias"), by_network, strict=True)
        for n, v in losses.items()
    ]


def penalties(accuracies):
    return [
        stand_in([0.5, 0.5, a], SHARP, spec={"stages": [{"epochs": 1, "bias_decay": decay}]})
        for decay, a in accuracies.items()
    ]


GOOD = {
    "fig1a": [BASELINE] * 3, "fig1b": [stand_in(FINE, FLAT, FLATTEST)] * 3, "fig2a": [NORMALISED] * 3,
    "fig2a-printed": [NORMALISED] * 3,
    "fig4a": [BASELINE] * 3, "fig4b": [SAM_FAILS] * 3, "fig5a": [BASELINE] * 3, "fig5b": [SAM_FAILS] * 3,
    "fig6a": [NORMALISED] * 3, "fig6b": [NORMALISED] * 3, "fig7a": [stand_in([0, 0.5, 0.99], FLAT, FLATTEST)] * 3,
    "fig7b": [SAM_FAILS] * 3, "fig8a": [BASELINE] * 3, "fig8b": [NORMALISED] * 3, "fig9a": [BASELINE] * 3,
    "fig9b": [SAM_FAILS] * 3, "fig10a": [NORMALISED] * 3, "fig10b": [NORMALISED] * 3, "fig11a": [BASELINE] * 3,
    "fig11b": [SAM_FAILS] * 3,
    "sample-complexity": sizes({50: 0.9, 100: 0.1, 200: 0.02}, {50: 0.9, 100: 0.9, 200: 0.02}),
    "bias-penalty": penalties({0.0: 0.6, 0.1: 0.9}),
}  # fmt: skip
LOW = stand_in([0.5, 0.6, 0.7], [60.0, 65.0, 70.0], [61.0, 20.0, 20.0], W1=np.eye(5), bound=20.0,
               loss=1e6)  # fmt: skip
HIGH = stand_in([0.9, 0.9, 1.0], [60.0, 80.0, 90.0], [61.0, 20.0, 20.0], bound=20.0)
BAD = {id: [LOW] * 3 for id in GOOD} | {
    "fig1b": [stand_in([0.5, 0.9, 0.6], [60.0, 80.0, 90.0], [61.0, 20.0, 20.0])] * 3,
    "fig8b": [LOW] * 3, "fig7a": [LOW] * 3, "fig7b": [HIGH] * 3,
    "fig4b": [HIGH] * 3, "fig5b": [HIGH] * 3, "fig9b": [HIGH] * 3, "fig11b": [HIGH] * 3,
"sample-complexity": sizes({50: 0.9, 100: 0.9, 200: 0.3}, {50: 0.9, 100: 0.1, 200: 0.1}),
    "bias-penalty": penalties({0.0: 0.6, 0.1: 0.5}),
}  # fmt: skip


# Statements that say the opposite of what the runs show.
REVERSED = ("section4-title-printed", "section5-title-printed")


# The runs of these figures are planted in files of their own in wen2023/.
ELSEWHERE = ("start-scale", "minimisers", "question3", "escape", "deep-no-bias-gd")
ON_RUNS = [c for c in PAPER.claims if c.needs and c.needs[0].id not in ELSEWHERE]


@pytest.mark.parametrize("claim", ON_RUNS, ids=lambda c: c.id)
def test_a_check_can_hold_and_can_fail(claim):
    as_found = (BAD, GOOD) if claim.id in REVERSED else (GOOD, BAD)
    good, bad = ([runs[figure.id] for figure in claim.needs] for runs in as_found)
    assert claim.check(*good).holds
    assert not claim.check(*bad).holds


NUMBERED = {
    "Theorem": ["3.1", "3.2", "4.1", "5.1", "A.1", "A.2", "A.3"],
    "Proposition": ["4.1", "4.2", "5.1", "5.2", "A.1", "A.2"],
    "Lemma": ["3.1", "4.1", *(f"A.{k}" for k in range(1, 28))],
    "Corollary": ["A.1"],
    "Figure": [str(k) for k in range(1, 12)],
}


def sources(claims):
    """Every (kind, number) that a claim names; "Lemmas 3.1, A.5 and A.11" names three, "A.1 to A.3" too."""
    for claim in claims:
        kinds = "|".join(NUMBERED)
        for kind, listed in re.findall(rf"({kinds})s? ((?:[A\d.]+[ab]?(?:, | and | to )?)+)", claim.source):
            numbers = [number.rstrip("ab") for number in re.findall(r"A\.\d+|\d+(?:\.\d+)?[ab]?", listed)]
            if " to " in listed:
                first, last = (int(number.split(".")[1]) for number in numbers)
                numbers = [f"A.{k}" for k in range(first, last + 1)]
            yield from ((kind, number) for number in numbers)


def test_every_numbered_statement_and_every_cell_of_table_1_has_a_claim():
    claims = PAPER.claims
    found = set(sources(claims))
    assert [(kind, n) for kind, numbers in NUMBERED.items() for n in numbers if (kind, n) not in found] == []
    cells = [c.source for c in claims if c.id.startswith("table1-")]
    for name, _, theorem, *_ in table_1.ROWS:
        assert {f"Table 1, {name}", f"Table 1, {name}, {theorem}"} <= set(cells)
    assert len({c.id for c in claims}) == len(claims)


def test_misprints_come_in_pairs():
    ids = {c.id: c for c in PAPER.claims}
    for id, claim in ids.items():
        assert claim.misprint == id.endswith("-printed")
        if claim.misprint:
            assert not ids[id.replace("-printed", "-corrected")].misprint


@pytest.mark.parametrize("claim", [c for c in PAPER.claims if not c.needs], ids=lambda c: c.id)
def test_what_needs_no_runs_holds_unless_it_is_a_misprint(claim):
    assert claim.check().holds is not claim.misprint


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 2), (5, 2), (5, 3)])
def test_dichotomies_are_as_many_as_cover_counted(n, d):
    """2 Σ_{k<d} (n − 1 choose k) for points in general position (Cover 1965)."""
    found = lemmas.dichotomies(np.random.default_rng(0).normal(size=(n, d)))
    assert len(found) == 2 * sum(math.comb(n - 1, k) for k in range(d))


def test_complexity_of_all_and_of_one():
    assert lemmas.complexity(explicit.cube(4) / 2 + 0.5) == pytest.approx(0.5)  # Σ max(σᵢ, 0)/n
    assert lemmas.complexity(np.ones((1, 4))) == 0


def test_smaller_nets_may_stay_farther_above_the_bound():
    claim = PAPER.find_claim("fig11b-attains-bound")
    for width, excess, holds in ((500, 1.029, True), (500, 1.031, False), (200, 1.29, True), (200, 1.31, False)):
        run = stand_in(POOR, [1.0, 1.0, excess], [1.0, 1.0, 1.0], spec={"width": width})
        assert claim.check([run]).holds is holds


@pytest.mark.parametrize("d", [2, 30])
def test_eq_5_in_closed_form(d):
    """trace = 2((d+1)/r² + r²), which r² = √(d+1) makes equal to the bound."""
    data = xor(d, 16, key=0)
    for build, r2 in ((printed.xor, np.sqrt(d**2 + 1)), (generalising.xor, np.sqrt(d + 1))):
        assert explicit.measured(build(d), data.x, data.y)[0] == pytest.approx(2 * ((d + 1) / r2 + r2), rel=1e-13)


@pytest.mark.parametrize("figure", TRAINED, ids=lambda f: f.id)
def test_smaller_runs_are_named_in_the_title(figure):
    """At smoke scale nets are narrower and trained for a shorter time: only the paper's own runs carry its name."""
    titles = {}
    for scale in ("smoke", "paper"):
        run = stand_in(FINE, SHARP, spec=dataclasses.asdict(figure.runs[scale][0]))
        titles[scale] = figure.show.numbers([run])["title"]
    assert titles["smoke"].startswith(f"Stand-in for {titles['paper']}\nwidth {figure.runs['smoke'][0].width}, ")
    assert titles["paper"].startswith("Fig. ")


def test_numbers_of_a_figure():
    shown = curves("title", GOOD["fig4b"])
    assert shown["stages"] == [2]
    assert shown["bound"] == 22.2
    assert [r["trace"] for r in shown["runs"]] == [FLAT] * 3
    ball = stand_in(FINE, FLAT, spec={"data": "ball", "network": "no-bias"})
    assert "test_loss" in curves("title", [ball])["runs"][0]
    assert curves("title", [ball])["bound"] is None


@pytest.mark.parametrize("figure", [f for f in PAPER.figures if f.id != "fig3"], ids=lambda f: f.id)
def test_every_figure_is_drawn_from_its_numbers(figure):
    """With stand-ins for the runs, at both scales: numbers are JSON, ink comes out."""
    for scale in ("smoke", "paper"):
        entries = []
        for spec in figure.runs[scale]:
            plain = dataclasses.asdict(spec)
            entries.append(stand_in(FINE, FLAT, FLATTEST, spec=plain, W1=FEATURES, bound=20.0))
        numbers = figure.show.numbers(entries)
        json.dumps(numbers, allow_nan=False)
    assert figure.show.draw(numbers).axes


def test_figure_3_shows_the_memorising_net():
    figure = PAPER.find_figure("fig3")
    numbers = figure.show.numbers([])
    x, W1 = np.array(numbers["x"]), np.array(numbers["W1"])
    firing = x @ W1.T + np.array(numbers["b1"]) > 0
    assert (firing == np.eye(len(x))).all()
    # The title's number, by the angle at which a neuron begins to fire: W₁·v + b₁ = 0.
    angles = np.arccos(-np.array(numbers["b1"]) / np.linalg.norm(W1, axis=1))
    assert numbers["silent"] == pytest.approx(1 - angles.sum() / np.pi, abs=1e-4)
    assert f"{numbers['silent']:.0%}" in numbers["title"]
    drawn = figure.show.draw(numbers)
    drawn.draw_without_rendering()
    renderer = drawn.canvas.get_renderer()
    title = next(t for t in drawn.findobj(Text) if t.get_text() == numbers["title"])
    assert all(not title.get_window_extent(renderer).overlaps(a.get_window_extent(renderer)) for a in drawn.axes)


@pytest.mark.parametrize("figure", TRAINED, ids=lambda f: f.id)
def test_smoke_scale_is_the_same_training_but_smaller(figure):
    small, large = figure.runs["smoke"], figure.runs["paper"]
    assert len({s.seed for s in large}) == len(large) >= len(small)
    stages = len(small[0].stages)
    shorter = [dataclasses.replace(row, epochs=0) for row in large[0].stages[:stages]]
    assert [dataclasses.replace(row, epochs=0) for row in small[0].stages] == shorter
    sizes = {name: getattr(large[0], name) for name in ("stages", "width", "test", "per_decade")}
    assert dataclasses.replace(small[0], **sizes) == large[0]


def test_a_joint_figure_finds_the_runs_of_each_figure_again():
    figures = [PAPER.find_figure(id) for id in ("fig4b", "fig11b", "fig2a")]
    for scale in ("smoke", "paper"):
        runs = [spec for figure in figures for spec in figure.runs[scale]]
        assert split(figures, runs) == [list(figure.runs[scale]) for figure in figures]


def test_the_longest_neurons_and_the_columns():
    found = longest_neurons(FEATURES)
    assert found["rows"] == [[3, -3, 0.1], [-2, -2, 0.0], [1.5, 1.5, 0.1], [-1, 1, 0.0]]
    np.testing.assert_allclose(found["columns"], np.linalg.norm(FEATURES, axis=0))


@pytest.mark.parametrize("row", table_1.ROWS, ids=lambda row: row[1].id)
def test_theory_of_table_1(row):
    """Generalising where the theorem says all flattest ones do, else wrong on every unseen point at the least trace."""
    _, figure, _, all_generalise, _ = row
    error, where = table_1.worst_flattest(figure.runs["paper"][0].network)
    assert error == (0 if all_generalise else 1)
    assert "of all flattest nets" in where or where.endswith(" at the least trace")


def test_the_table_says_where_a_flattest_net_errs(monkeypatch):
    monkeypatch.setattr(table_1, "theorem_3_1", lambda: Finding(-1.0, False))
    assert table_1.worst_flattest("no-bias")[0] == 1
    assert not PAPER.find_claim("table1-theory-no-bias").check().holds
    monkeypatch.setattr(explicit, "worst_flattest", lambda network: (0.1, 1.0))
    assert not PAPER.find_claim("table1-theory-bias").check().holds  # a memorising net that is not flattest


class TestProperties:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def problem(self, network, params):
        return Problem(network, params, self.x, np.array([1.0, -1.0, 1.0]), steppe.losses.mse)

    def test_contributions_add_up_to_the_output(self):
        rng = np.random.default_rng(0)
        for network in (TwoLayer(), TwoLayer(bias=False), SimLN(0.1), SimBN(self.x)):
            p = self.problem(network, network.init(2, 5, rng, np.float64))
            found = recorded.contributions(p, p.w0).sum(axis=1)
            np.testing.assert_allclose(found, p.predictions(p.w0), rtol=1e-12)

    def test_a_neuron_for_each_example(self):
        """W₁ = 10 I − …: neurons that fire on one example each, with equal contributions."""
        params = {"W1": np.array([[2.0, -4.0], [-4.0, 2.0], [2.0, 2.0]]), "b1": np.array([-1.0, -1.0, -3.0]),
                  "W2": np.array([1.0, -1.0, 1.0])}  # fmt: skip
        p = self.problem(TwoLayer(), params)
        assert p.predictions(p.w0).tolist() == [1.0, -1.0, 1.0]
        assert recorded.sharing(p, p.w0) == pytest.approx(1 / 3)
        assert recorded.feature_rank(p, p.w0) == pytest.approx(3)
        assert recorded.active_neurons(p, p.w0) == pytest.approx(3)
        lengths = np.linalg.norm(np.column_stack([params["W1"], params["b1"]]), axis=1)
        assert recorded.path_norm(p, p.w0) == pytest.approx(lengths.sum())
        assert recorded.normalised_margin(p, p.w0) == pytest.approx(1 / lengths.sum())

    @pytest.mark.parametrize("name", recorded.PROPERTIES)
    def test_rescaling_a_neuron_changes_nothing(self, name):
        rng = np.random.default_rng(1)
        params = TwoLayer().init(2, 4, rng, np.float64)
        scaled = {"W1": 3 * params["W1"], "b1": 3 * params["b1"], "W2": params["W2"] / 3}
        values = [recorded.PROPERTIES[name](self.problem(TwoLayer(), q), jnp.concatenate(
            [jnp.asarray(q[k]).ravel() for k in sorted(q)])) for q in (params, scaled)]  # fmt: skip
        assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("loss", ["mse", "logistic:0.2"])
@pytest.mark.parametrize("depth", [2, 3])
def test_the_bound_at_the_nets_own_outputs_holds_and_is_eq_3_at_interpolation(loss, depth):
    sizes = {"d": 4, "n": 6, "width": 7, "test": 1}
    spec = Training("bias", (Row(0.1, 0.0, 1, 0.0, 1),), depth=depth, loss=loss, precision="float64", **sizes)
    with jax.enable_x64(True):
        problem, _ = spec.problems()
        for scale in (0.1, 1.0, 3.0):
            w = scale * problem.w0
            least = recorded.least_trace(problem, w)
            assert steppe.measures.trace(problem, w).value >= least
            # Labels moved to where the net is: there the bound is the theorem's.
            if loss == "mse":
                fitted = problem.on(problem.x, problem.predictions(w))
                assert least == pytest.approx(recorded.least_trace_at_interpolation(spec, fitted), rel=1e-12)


def test_bounds_that_are_not_known_are_not_invented():
    softplus, layer_norm = (PAPER.find_figure(id).runs["paper"][0] for id in ("fig5b", "fig6a"))
    assert not recorded.least_trace_is_known(softplus)
    assert recorded.least_trace_at_interpolation(softplus, None) is None
    assert not recorded.least_trace_is_known(layer_norm)


SMALL = Training("bias", (Row(0.01, 0.05, 1, 0.0, 200),), d=8, n=20, width=30, test=100)


def test_a_training_records_what_the_figure_shows(tmp_path):
    entry = Store(tmp_path).compute(SMALL, SMALL.compute)
    losses = {"train_loss", "test_loss", "test_accuracy"}
    assert set(entry.curves) == {"step", "epoch", "trace", "norm", "least_trace", *losses, *recorded.PROPERTIES}
    assert entry.result["outcome"] == "exhausted"
    assert entry.result["steps"] == 200 * 20
    assert entry.result["final"]["trace"] == entry.curves["trace"][-1]
    assert entry.curves["epoch"][0] == 0
    assert entry.curves["epoch"][-1] == 200
    assert entry.params["W1"].shape == (30, 8)
    assert entry.params["W1"].dtype == np.float32
    assert (entry.curves["trace"] >= entry.curves["least_trace"] * (1 - 1e-5)).all()


def test_the_seed_decides_data_start_and_order():
    a, b, c = (dataclasses.replace(SMALL, seed=s, per_decade=1).compute() for s in (1, 1, 2))
    np.testing.assert_array_equal(a.params["W1"], b.params["W1"])
    assert not np.array_equal(a.params["W1"], c.params["W1"])


def test_width_does_not_change_the_data():
    a, b = (dataclasses.replace(SMALL, width=w).problems()[0] for w in (10, 20))
    np.testing.assert_array_equal(a.x, b.x)
