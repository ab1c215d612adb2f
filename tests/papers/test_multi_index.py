"""The claims of multi-index on tiny real runs, and on stand-ins with which each check holds and fails."""

import dataclasses
import json
import types

import numpy as np
import pytest

from steppe.activations import quadratic
from steppe.papers.multi_index import PAPER, inner_biases, lemmas
from steppe.papers.multi_index.beyond import alternating, approximated
from steppe.papers.multi_index.every_interpolator import ALL as EVERY
from steppe.papers.multi_index.figures_2_to_4 import FIG2, FIG3, FIG4
from steppe.papers.multi_index.interpolators import COLUMNS, groups, interpolators
from steppe.papers.multi_index.scaling_laws import scaling
from steppe.papers.multi_index.search import PLANTED, ends, in_proportion, searched
from steppe.papers.multi_index.setting import ACTIVATIONS, exponent
from steppe.papers.multi_index.theorem_3 import generalising
from steppe.store import Store

CLAIMS = {c.id: c for c in PAPER.claims}
ALL = (*EVERY, PAPER.find_figure("fig2-constant"), PAPER.find_figure("fig3-noise"))
NU = np.geomspace(0.01, 0.99, 8)


def find(id, runs):
    """What the check of a claim finds on these runs, given by figure."""
    return CLAIMS[id].check(*(runs[figure.id] for figure in CLAIMS[id].needs))


def stand_in(spec, seed):
    """Section 6 as the paper describes it: sharp and bad at small ν, flat and good at large ν, with exceptions."""
    noise = 1 + 0.01 * seed
    flatness, loss = 300 * NU**-0.3 * noise, 0.5 / (1 + (NU / 0.1) ** 2) * noise
    exists = np.ones(len(NU))
    if spec.noise:
        flatness = flatness + 1e4 * (NU > 0.9)
        if spec.activation != "quadratic":
            exists = (NU < 0.9).astype(float)
    if spec.noise == 1.0:
        flatness = np.full(len(NU), 500.0) + 300 * (NU > 0.2)
        if spec.activation == "leaky":
            loss = loss + 5.0 * (NU > 0.4)
    if spec.r == 5:
        loss = loss**1.5
    if spec.activation == "linear":
        flatness, loss = 25 / NU, np.full(len(NU), 1e-20)
    if spec.link == "quadratic-form":
        flatness, loss = (
            300 + np.array([3.0, 1, 4, 8, 5, 2, 6, 7]),
            np.array([1.2, 1.3, 1.25, 1.2, 1.35, 1.4, 1.2, 1.3]),
        )
    if spec.link.startswith("sum+"):
        flatness, loss = flatness + 400 * (NU > 0.5), loss + 1.0 * (NU > 0.5)
    if spec.r == 5 and spec.noise == 0.1:
        flatness, exists = 300 * NU**-0.3 * noise, np.ones(len(NU))
        flatness[-1] = 1.1 * flatness[-2]
    sampled = loss if spec.link == "quadratic-form" else 1.1 * loss
    columns = {name: np.ones(len(NU)) for name in COLUMNS} | {
        "nu": NU, "exists": exists, "flatness": flatness, "lower": flatness * (1 - 1e-6), "loss": loss,
        "lemma5": 0.6 * flatness, "pointwise": np.full(len(NU), 10.0), "sampled": sampled,
        "error": 0.1 * loss, "alignment": np.ones(len(NU)), "closest": np.full(len(NU), 0.9),
    }  # fmt: skip
    fields = dataclasses.asdict(spec) | {"seed": seed}
    return types.SimpleNamespace(spec=fields, curves=columns, result={"gap": 1e-6, "missing": 0})


def section_6(spoil=None):
    runs = {
        figure.id: [
            stand_in(spec, seed) for spec in figure.runs.get("smoke", figure.runs["paper"][::10]) for seed in (0, 1)
        ]
        for figure in ALL
    }
    for run in (r for of_figure in runs.values() for r in of_figure):
        if spoil is not None:
            spoil(run)
    return runs


def change(name, function):
    def spoil(entry):
        entry.curves[name] = function(entry.curves)

    return spoil


def spoil_gap(entry):
    entry.result["gap"] = 1e-3


upside_down = change("loss", lambda c: c["loss"][::-1])
SPOILS = {
    "fig2-linked": upside_down,
    "fig2-flattest": upside_down,
    "fig2-large-nu": change("flatness", lambda c: 300 * NU**-0.3),
    "fig2-large-nu-loss": change("loss", lambda c: 1 - NU),
    "fig2-large-nu-noise": change("loss", lambda c: NU),
    "fig2-relu-breaks": change("flatness", lambda c: 300 * NU**-0.3),
    "fig2-relu-quiet": upside_down,
    "fig3-linked": upside_down,
    "fig3-falling": change("flatness", lambda c: NU),
    "fig3-turns-up": change("flatness", lambda c: 300 * NU**-0.3),
    "fig3-stronger": change("loss", lambda c: 0.5 - 0.4 * NU),
    "fig4a-linked": upside_down,
    "fig4b-law": change("flatness", lambda c: 25 / NU**2),
    "fig4b-loss": change("loss", lambda c: 1e-3 + 0 * NU),
    "fig4c-no-link": change("sampled", lambda c: c["flatness"] / 300),
    "eq3-certified": spoil_gap,
    "b1-closed-form": change("sampled", lambda c: 1.5 * c["loss"]),
    "lemma5-bound": change("lemma5", lambda c: 1.01 * c["flatness"]),
    "thm1-any": change("pointwise", lambda c: 1.01 * c["flatness"]),
}


def large_nu_everywhere(entry):
    """An interpolator exists for every ν, so that the claim cannot hold because there is none."""
    entry.curves["exists"] = np.ones(len(NU))
    entry.curves["flatness"] = 300 * NU**-0.3


SPOILS["fig2-large-nu"] = large_nu_everywhere


@pytest.mark.parametrize("id", SPOILS)
def test_a_check_on_section_6_can_hold_and_can_fail(id):
    if id == "b1-closed-form":  # every one of them is one standard error away
        assert find(id, section_6()).measured == pytest.approx(1.0, rel=1e-9)
    assert find(id, section_6()).holds
    assert not find(id, section_6(SPOILS[id])).holds


def test_one_flatness_for_most_interpolators_can_hold_and_fail():
    """Its figure has runs at paper scale only."""
    figure = PAPER.find_figure("fig4-linear")
    runs = [stand_in(spec, seed) for seed, spec in enumerate(figure.runs["paper"])]
    assert not find("fig4b-flatness", {"fig4-linear": runs}).holds
    for run in runs:
        run.curves["flatness"] = 25 + NU
    assert find("fig4b-flatness", {"fig4-linear": runs}).holds


def law(activation, **columns):
    """A finished run in which every column is the power of the size that the theory predicts, except `columns`."""
    c = 2 if activation == "quadratic" else 1
    size = np.repeat([16.0, 32.0, 64.0, 128.0], 3)
    wiggle = 1 + 0.01 * np.tile([-1.0, 0.0, 1.0], 4)
    exponents = {
        "d": 1, "n": 1, "m": 1, "exists": 0, "bad": 1, "teacher": 1 / (c + 1), "pointwise": 1 / (c + 1),
        "bad_loss": 0, "q_low": c / (c + 1), "q_high": c / (c + 1), "bad_norm": 0, "singular_1": 1,
        "singular_2": 0.5, "singular_n": 0.5,
        "loss": -1, "spoiled_loss": -0.8, "patched": 0.3, "largest": -1, "alone": 0.4 + 1 / 3 if c == 2 else 0.3,
        "alone_largest": 0,
    } | columns  # fmt: skip
    sizes = ("d", "n", "m", "exists")
    curves = {name: size**b * (1 if name in sizes else wiggle) for name, b in exponents.items()}
    curves["pointwise"] = 0.8 * curves["pointwise"]
    curves["bad_loss"] = 4 * curves["bad_loss"]
    for q in ("q_low", "q_high"):
        curves[q] = curves[q] * (2 if c == 1 else 3 * 96 ** (1 / 3))
    if "alone" not in columns and c == 1:
        curves["alone"] = curves["teacher"] * 1.0
    return types.SimpleNamespace(spec={"activation": activation}, curves=curves)


def sweeps(activations=("relu", "quadratic"), **columns):
    every = [law(a, **columns) for a in activations]
    alone = [law(a, **{"teacher": 0.3 if a == "relu" else 0.4} | columns) for a in activations]
    share = {"relu": 1 / 2, "quadratic": 2 / 3}
    one_d = [law(a, **{"teacher": share[a], "pointwise": share[a]} | columns) for a in activations]
    return {"thm2-all": every, "thm2-n": every, "thm1-d": one_d, "thm3": alone}


LAW_SPOILS = {
    "thm1-dimension": {"teacher": 1.5},
    "thm1-dimension-bound": {"pointwise": 1.5},
    "lemma2-least": {"singular_n": 0.1},
    "lemma6": {"bad_norm": -1.0},
    "thm1-all": {"teacher": 1.5},
    "thm1-sandwich": {"pointwise": -1.0},
    "thm2-ratio": {"bad": 0.5},
    "thm2-sample": {"bad": 0.05},
    "thm2-bad": {"bad_loss": -1.0},
    "lemma2-values": {"singular_1": 0.5},
    "lemma4": {"q_high": 1.5},
    "thm3-rate": {"loss": -0.3},
    "thm3-worst": {"spoiled_loss": -0.3},
    "lemma13": {"patched": 1.5},
    "prop2-balanced": {"largest": 0.0},
    "prop2-necessary": {"alone": 0.3},
    "prop2-one-neuron": {"alone": 1.0},
}


@pytest.mark.parametrize("id", LAW_SPOILS)
def test_a_check_on_a_law_can_hold_and_can_fail(id):
    assert find(id, sweeps()).holds
    assert not find(id, sweeps(**LAW_SPOILS[id])).holds


def test_exponents_have_honest_intervals():
    rng = np.random.default_rng(0)
    x = np.repeat([10.0, 20.0, 40.0, 80.0], 5)
    inside = [
        low <= 0.7 <= high
        for _, low, high in (exponent(x, x**0.7 * np.exp(0.2 * rng.normal(size=20))) for _ in range(400))
    ]
    # 95% of 400, within four standard errors.
    assert abs(np.mean(inside) - 0.95) <= 4 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("claim", [c for c in PAPER.claims if not c.needs], ids=lambda c: c.id)
def test_claims_of_theory(claim):
    assert claim.check().holds is not claim.misprint


def test_the_trace_of_the_theory_is_that_of_the_gradients():
    """Σ (A_k + a_k² B_k) for the quadratic activation, A and B by their definitions."""
    x, W, a = lemmas.network(0)
    h = x @ W.T
    by_hand = 2 / len(x) * sum(np.sum(h[i] ** 4) + np.sum((a * 2 * h[i]) ** 2) * x[i] @ x[i] for i in range(len(x)))
    assert lemmas.trace(x, W, a, quadratic) == pytest.approx(by_hand, rel=1e-12)


def test_memorising_is_flatter_than_the_teacher():
    teacher, memorising, least, loss = inner_biases.teacher_and_memorising(0)
    assert least == pytest.approx(memorising, rel=1e-9)
    assert memorising < teacher
    assert loss > 0.25


TINY = {
    "section 6": [
        interpolators(activation=a, noise=noise, d=6, n=12, m=48, count=4, seed=seed, fresh=50)
        for noise in (0.0, 0.1) for a in ACTIVATIONS for seed in (0, 1)
    ],
    "fig4": [
        dataclasses.replace(s, d=8, n=12, m=40, count=3, fresh=50, r=min(s.r, 2)) for s in FIG4.runs["smoke"]
    ],
    "scaling": [scaling(activation=a, d=(8, 12), n=(12, 16), m=(36, 48), seeds=2) for a in ("relu", "quadratic")],
    "rate": [generalising(activation=a, d=(8, 12), n=(12, 16), m=(48, 64), seeds=2) for a in ("relu", "quadratic")],
    "map": [
        searched(activation=a, d=d, n=n, m=4 * n, blocks=1, steps=3, seeds=2, rtol=1e-3)
        for a in ("relu", "quadratic") for d, n in ((5, 10), (7, 14), (5, 14))
    ],
    "approximate": [
        approximated(activation=a, shares=(0.0, 1.0), d=8, n=12, m=48, seeds=2) for a in ("relu", "quadratic")
    ],
    "alternating": [
        alternating(activation=a, bias=bias, d=6, n=10, m=40, rounds=2, steps=3, fresh=50, rtol=1e-3)
        for a in ("relu", "quadratic") for bias in (False, True)
    ],
}  # fmt: skip
OF_FIGURE = {
    "fig2": "section 6", "fig2-constant": "section 6", "fig4-linear": "fig4", "fig3-noise": "section 6",
    "map": "map", "search-rate": "map",
    "fig2-loud": "section 6", "fig3": "section 6", "fig3-loud": "section 6", "fig4": "fig4",
    "thm2-all": "scaling", "thm1-d": "scaling", "thm2-n": "scaling", "lemma2": "scaling", "lemma5": "section 6",
    "thm3": "rate", "approximate": "approximate", "flattest": "alternating",
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    return {
        name: [store.compute(s, lambda checkpoint, s=s: s.compute(checkpoint, None)) for s in specs]
        for name, specs in TINY.items()
    }


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, tiny):
    numbers = json.loads(json.dumps(figure.show.numbers(tiny[OF_FIGURE[figure.id]]), allow_nan=False))
    assert figure.show.draw(numbers).axes


def test_a_run_is_what_the_theory_computes(tiny):
    e = tiny["section 6"][0]
    c = e.curves
    np.testing.assert_allclose(c["nu"], np.geomspace(0.01, 0.99, 4), rtol=1e-14)
    found = c["exists"] > 0
    assert (c["lower"][found] <= c["flatness"][found]).all()
    assert (c["lemma5"][found] <= c["flatness"][found] * (1 + 1e-5)).all()
    assert (c["pointwise"][found] <= c["lower"][found]).all()
    assert [g.columns["nu"].shape for g in groups(tiny["section 6"])] == [(2, 4)] * 6


def test_infeasible_systems_are_data():
    """Linear activations span d dimensions: none fits noise."""
    spec = interpolators(link="linear", activation="linear", noise=0.1, d=4, n=10, m=20, count=2, fresh=50)
    computed = spec.compute(None, None)
    assert computed.result["missing"] == 2
    assert not computed.curves["exists"].any()
    assert np.isnan(computed.curves["flatness"]).all()
    assert (computed.curves["rank"] == 4).all()


def test_a_killed_run_goes_on(tmp_path):
    """It continues from the rows of its checkpoint, to the same bits."""
    spec = interpolators(d=5, n=8, m=24, count=4, fresh=50)

    class KilledError(Exception):
        pass

    class Stops:
        def __init__(self, saved=None):
            self.saved = saved

        def load(self):
            return self.saved

        def due(self):
            return True

        def save(self, arrays):
            self.saved = arrays
            if len(arrays["rows"]) == 2:
                raise KilledError

    first = Stops()
    with pytest.raises(KilledError):
        spec.compute(first, None)
    resumed, whole = spec.compute(Stops(first.saved), None), spec.compute(None, None)
    for name in COLUMNS:
        np.testing.assert_array_equal(resumed.curves[name], whole.curves[name])


def test_the_sizes_are_those_of_the_page():
    fig2, fig3, fig4 = (figure.runs["paper"] for figure in (FIG2, FIG3, FIG4))
    every = [s for figure in EVERY for s in figure.runs["paper"]]
    assert {(s.d, s.n, s.m, s.count, s.low, s.high) for s in every} == {(50, 250, 1000, 20, 0.01, 0.99)}
    assert {s.seed for s in every} == set(range(10))
    assert {(s.activation, s.noise) for s in fig2} == {(a, e) for a in ACTIVATIONS for e in (0.0, 0.1)}
    assert {s.r for s in fig2} == {1}
    assert {s.r for s in fig3} == {5}
    assert [(s.link, s.activation) for s in fig4 if s.seed == 0] == [
        ("linear", "relu"), ("linear", "linear"), ("quadratic-form", "relu"),
    ]  # fmt: skip


def searches(*, ratio=2, free=(0.7, 0.01), loss=0.0, away=(2.0, 0.6)):
    """Ends of searches along n = 2d: flatness over the planted start's; loss over that of predicting 0."""
    runs = []
    for activation, power in (("relu", 0.5), ("quadratic", 3.0)):
        for d in (16, 32, 64):
            rows = []
            for seed in range(3):
                wiggle = 1 + 0.01 * seed
                rows += [(seed, 0.3, 0, away[0] * free[0], 0.5, away[1] * power * wiggle)]
                rows += [(seed, 1.0, 0, free[0], 0.5, free[1] * d**loss * wiggle)]
                rows += [(seed, PLANTED, 0, 1.0, 0.5, 0.01), (seed, PLANTED, 20, 0.9, 0.5, 0.01)]
            names = ("seed", "search", "step", "flatness", "bound", "loss")
            spec = {"activation": activation, "d": d, "n": ratio * d, "m": 4 * ratio * d, "level": 0.1, "seeds": 3,
                    "searches": (0.3, 1.0, PLANTED)}  # fmt: skip
            runs.append(types.SimpleNamespace(spec=spec, curves=dict(zip(names, np.array(rows).T, strict=True))))
    return runs


@pytest.mark.parametrize(
    ("id", "spoiled"),
    [
        ("search-flatter", {"free": (1.2, 0.01)}),
        ("search-loss", {"loss": -0.6}),
        ("search-adversary", {"away": (4.0, 0.6)}),
        ("search-adversary", {"away": (2.0, 0.1)}),
        ("search-enough", {"free": (0.7, 1.4)}),
    ],
)
def test_a_check_on_the_search_can_hold_and_can_fail(id, spoiled):
    for how, holds in (({}, True), (spoiled, False)):
        runs = searches(**how) + searches(ratio=8, **how)
        assert find(id, {"map": runs, "search-rate": runs}).holds is holds


def test_a_search_keeps_its_cap_and_only_falls(tiny):
    for run in in_proportion(tiny["map"]):
        c = run.curves
        for search in run.spec["searches"]:
            for seed in range(run.spec["seeds"]):
                path = c["flatness"][(c["seed"] == seed) & (c["search"] == search)]
                assert (np.diff(path) <= 0).all()
            e = ends(run, search)
            assert (e["flatness"] >= e["bound"]).all()
            assert (e["correlation"] <= min(search, 1.0) + 1e-9).all()
