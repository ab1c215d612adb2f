"""The claims of mulayoff2021 on a small real experiment, and on stand-ins with which each check holds and fails."""

import dataclasses
import json
import types

import jax
import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError
from steppe.networks import OneHidden
from steppe.papers.mulayoff2021 import PAPER, figures, theorems, theory
from steppe.papers.mulayoff2021.descent import COLUMNS, Descent, merged, network, points
from steppe.papers.mulayoff2021.figures import FACTORS, LARGE
from steppe.store import Store

CLAIMS = {c.id: c for c in PAPER.claims}
NEEDS_NETS = {"flattest-gd", "lemma1-sgd"}
SETTLED = {"lemma1-limit", "thm2-bound"}


def stand_in(lr, sharpness, *, scale=30.0, factor=1.0, below=0.0, seed=0, **changes):
    """A finished run with these curves; the other columns follow from them as the theory predicts."""
    lr, sharpness = np.atleast_1d(lr), np.atleast_1d(sharpness)
    curves = {name: np.full(len(lr), np.nan) for name in COLUMNS} | {
        "lr": lr, "sharpness": sharpness, "slack": np.full(len(lr), 1.1), "flattest": sharpness / 2,
        "function": sharpness / 8, "weighted": sharpness / 16, "centre": sharpness / 4,
        "flattest_gap": np.full(len(lr), 1e-9), "top_gap": np.full(len(lr), 1e-9), "kinks": np.full(len(lr), 3.0),
        "upper_sharpness_most": 1.01 * sharpness, "theorem_2": 3 * sharpness, "excursion": np.ones(len(lr)),
        "counted": np.ones(len(lr), bool), "reached": np.ones(len(lr), bool), "warming": np.zeros(len(lr), bool),
        "diverged": np.zeros(len(lr), bool),
    } | changes  # fmt: skip
    spec = {"scale": scale, "factor": factor, "below": below, "seed": seed}
    return types.SimpleNamespace(curves=curves, spec=spec)


def experiments(*, edge=1.99, spoil=None):
    """Sharpness edge/η above the threshold; `spoil`, if given, damages every stand-in."""
    rates = np.geomspace(1e-3, 0.2, 30)
    fig1 = [
        stand_in(1e-4, value, scale=20.0, factor=factor, below=0.1, seed=seed)
        for seed in (1, 2)
        for factor, value in ((1.0, 8000.0), (3.0, 4000.0))
    ]
    init = [
        stand_in(rates, edge / rates if scale in LARGE else np.minimum(30.0 * scale, edge / rates), scale=scale)
        for scale in FACTORS
    ]
    fig3 = [stand_in(half, edge / half) for half in (rates[::2], rates[1::2])]
    runs = {"fig1": fig1, "fig3": fig3, "s-fig3": init}
    for run in (r for of_figure in runs.values() for r in of_figure):
        if spoil is not None:
            spoil(run)
    return runs


def find(id, runs):
    """What the check of a claim finds on these runs, given by figure."""
    return CLAIMS[id].check(*(runs[figure.id] for figure in CLAIMS[id].needs))


def change(name, function):
    def spoil(entry):
        entry.curves[name] = function(entry.curves)

    return spoil


def swap_factors(entry):
    entry.spec["factor"] = {1.0: 3.0, 3.0: 1.0}[entry.spec["factor"]] if entry.spec["below"] else 1.0


SPOILS = {
    "lemma1-limit": change("sharpness", lambda c: 1.02 * c["sharpness"]),
    "thm1-bound": change("weighted", lambda c: 1.1 / c["lr"]),
    "lemma4-chain": change("slack", lambda c: np.full(len(c["lr"]), 0.999)),
    "fig1-smoother": swap_factors,
    "fig1-flatter": swap_factors,
    "fig3-smoother": change("weighted", lambda c: np.sqrt(c["lr"])),
    "fig3-centre": change("centre", lambda c: np.sqrt(c["lr"])),
    "fig3-counts": change("counted", lambda c: np.arange(len(c["lr"])) % 2 == 0),
    "s-fig3-monotone": change("sharpness", lambda c: c["sharpness"] * (1 + (np.arange(len(c["lr"])) % 2))),
    "s-fig3-threshold": change("sharpness", lambda c: 1 / np.sqrt(c["lr"])),
    "s-fig3-counts": change("counted", lambda c: np.arange(len(c["lr"])) % 3 == 0),
    "flattest-certified": change("flattest_gap", lambda c: np.full(len(c["lr"]), 1e-5)),
    "flattest-s88": change("top_gap", lambda c: np.full(len(c["lr"]), 1e-5)),
    "flattest-between": change("flattest", lambda c: 1.1 * c["sharpness"]),
    "thm2-bound": change("theorem_2", lambda c: 0.9 * c["sharpness"]),
}


@pytest.mark.parametrize(("id", "function"), [("lemma1-limit", "settled_limit"), ("thm2-bound", "settled_bound")])
def test_runs_above_the_limit_are_judged_once_settled(id, function, monkeypatch):
    """Two percent above the limit where they stop: the verdict depends on where they settle."""
    spoiled = experiments(spoil=SPOILS[id])
    for ratio, holds in ((0.999, True), (1.001, False), (np.inf, False)):
        answer = (ratio, True) if function == "settled_limit" else ratio
        monkeypatch.setattr(theorems, function, lambda *run, answer=answer: answer)
        assert find(id, spoiled).holds is holds


@pytest.mark.parametrize("id", [c.id for c in PAPER.claims if c.needs and c.id not in NEEDS_NETS | SETTLED])
def test_a_check_can_hold_and_can_fail(id):
    assert find(id, experiments()).holds
    assert not find(id, experiments(spoil=SPOILS[id])).holds


@pytest.mark.parametrize("claim", [c for c in PAPER.claims if not c.needs], ids=lambda c: c.id)
def test_claims_of_theory(claim):
    assert claim.check().holds is not claim.misprint


TINY = Descent(scale=5.0, low=0.01, high=0.08, count=4, parts=2, warmup=2_000, max_steps=200_000, width=24, n=5)


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """Two parts of a tiny experiment, from the store."""
    store = Store(tmp_path_factory.mktemp("store"))
    specs = [dataclasses.replace(TINY, part=k) for k in range(2)]
    return [store.compute(s, lambda checkpoint, s=s: s.compute(checkpoint, None)) for s in specs]


def test_a_small_experiment(entries):
    runs = merged(entries)
    np.testing.assert_allclose(runs["lr"], np.geomspace(0.01, 0.08, 4), rtol=1e-14)
    assert runs["counted"].all()
    assert (runs["flattest_gap"] <= 1e-6).all()
    assert (runs["slack"] >= 1 - 1e-10).all()
    assert all(np.isfinite(runs[name]).all() for name in COLUMNS)


def test_sharpness_is_that_of_the_net_by_autodiff(entries):
    e = entries[0]
    params = network(e.params, 0)
    p = steppe.Problem(OneHidden(), params, e.params["x"][:, None], e.params["y"], steppe.losses.half_mse)
    top = np.linalg.eigvalsh(jax.jit(jax.hessian(p.loss))(p.w0))[-1]
    # The residuals, at most √(2n · 1e-8) = 3e-4, times the second derivatives of f, at most about 2 here.
    assert e.curves["sharpness"][0] == pytest.approx(top, abs=1e-3)
    assert float(p.loss(p.w0)) == pytest.approx(float(e.curves["loss"][0]), rel=1e-6)


def test_claims_that_look_into_the_nets(entries, monkeypatch):
    for id in NEEDS_NETS:
        assert find(id, {"fig3": entries}).holds
    # A stable step size that is half as large again is not stable.
    with monkeypatch.context() as patched:
        stable = theory.largest_stable_lr
        patched.setattr(theory, "largest_stable_lr", lambda K, **rest: 1.5 * stable(K, **rest))
        assert not find("lemma1-sgd", {"fig3": entries}).holds
    # Gradient descent ends below a flattest implementation that is not the minimum.
    wrong = types.SimpleNamespace(
        curves=entries[0].curves | {"flattest": 1.1 * entries[0].curves["flattest"]}, params=entries[0].params
    )
    assert not find("flattest-gd", {"fig3": [wrong]}).holds


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, entries):
    if figure.id == "s-fig3":
        entries = [types.SimpleNamespace(curves=e.curves, spec=e.spec | {"scale": f}) for f in FACTORS for e in entries]
    numbers = json.loads(json.dumps(figure.show.numbers(entries), allow_nan=False))
    assert figure.show.draw(numbers).axes


def test_a_run_settles_below_the_limit_or_says_that_it_does_not(entries):
    """With a step size of 1000 it does not stay."""
    e, lr = entries[0], float(entries[0].curves["lr"][0])
    ratio, _ = theorems.settled_limit(e, 0, lr)
    assert ratio <= 1
    assert theorems.settled_bound(e, 0, lr) <= 1
    modes = theorems.settled_modes(e, 0, lr)
    assert abs(modes.sharpness(modes.active) / e.curves["sharpness"][0] - 1) < 0.05  # it is the same minimum
    assert theorems.settled_limit(e, 0, 1e3) == (np.inf, False)


def test_interpolants_go_through_the_points(entries):
    numbers = PAPER.find_figure("s-fig1").show.numbers(entries)
    # Runs stop at (1/2n) Σ (f − y)² = 1e-8 with n = 10: no point is missed by more than √(2n · 1e-8) = 4.5e-4.
    for f in numbers["functions"]:
        np.testing.assert_allclose(np.interp(numbers["x"], f["at"], f["value"]), numbers["y"], atol=4.5e-4)


def test_data_are_apart_and_the_same_every_time():
    x, y = points(10, reach=2.0, gap=0.2, spread=0.5, seed=0)
    assert np.diff(x).min() >= 0.2 - 1e-12
    assert np.abs(x).max() <= 2.0
    np.testing.assert_array_equal(y, points(10, reach=2.0, gap=0.2, spread=0.5, seed=0)[1])
    with pytest.raises(ArgumentError, match="gap must be below"):
        points(10, reach=1.0, gap=0.3, spread=1.0, seed=0)


def test_the_sizes_are_the_papers():
    """Supplement I: n 10, k 80, loss 1e-8; 200 step sizes on [1e-4, 0.5], warm-up 5e5; six factors, 100 each."""
    fig1, fig3, init = (figure.runs["paper"] for figure in (figures.fig1, figures.fig3, figures.s_fig3))
    assert all((s.n, s.width, s.loss) == (10, 80, 1e-8) for s in (*fig1, *fig3, *init))
    rates = np.sort(np.concatenate([s.rates() for s in fig3]))
    np.testing.assert_allclose(rates, np.geomspace(1e-4, 0.5, 200), rtol=1e-12)
    assert {s.warmup for s in fig3} == {500_000}
    for factor in (15, 10, 5, 3, 1, 0.75):
        rates = np.sort(np.concatenate([s.rates() for s in init if s.scale == factor]))
        np.testing.assert_allclose(rates, np.geomspace(1e-3, 1.5, 100), rtol=1e-12)
    assert {(s.low, s.below, s.factor, s.warmup) for s in fig1} == {(1e-4, 0.1, 1.0, 0), (1e-4, 0.1, 3.0, 0)}
