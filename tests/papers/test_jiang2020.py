"""Kendall's τ with hyper-parameters controlled, by scipy and by planted tables; the claims hold and fail on them."""

import json
import types

import numpy as np
import pytest
from scipy.stats import kendalltau

import steppe
from steppe.networks import FCN
from steppe.papers import jiang2020
from steppe.papers.jiang2020 import COLUMNS, MEASURES, PAPER, Grid, concordance, controlled, over_all

CLAIMS = {c.id: c for c in PAPER.claims}
SHAPE = (4, 2, 2, 2, 3)  # seeds, depths, widths, batches, rates


def table(measures, error, reached=1.0):
    """A finished run with these measures (others: the first) and test errors, over the grid of SHAPE."""
    first = next(iter(measures.values()))
    columns = dict.fromkeys(COLUMNS, first) | measures | {"test_error": error}
    columns |= {"reached": np.full(SHAPE, reached), "train_error": np.zeros(SHAPE)}
    spec = {"data": "digits", "loss": "half_mse", "seeds": SHAPE[0]}
    spec |= {name: tuple(range(k)) for name, k in zip(("depths", "widths", "batches", "rates"), SHAPE[1:], strict=True)}
    return types.SimpleNamespace(spec=spec, curves={k: np.ravel(v) for k, v in columns.items()})


def test_kendalls_tau_is_scipys():
    rng = np.random.default_rng(0)
    m, e = rng.normal(size=(3, 9)), rng.normal(size=(3, 9))
    expected = np.mean([kendalltau(a, b).statistic for a, b in zip(m, e, strict=True)])
    assert concordance(m, e, 1) == pytest.approx(expected, abs=1e-12)
    assert over_all(m, e) == pytest.approx(expected, abs=1e-12)
    assert concordance(m.T, e.T, 0) == pytest.approx(expected, abs=1e-12)
    m[0] = np.nan  # a training that diverged counts in no pair
    assert concordance(m, e, 1) == pytest.approx(
        np.mean([kendalltau(a, b).statistic for a, b in zip(m[1:], e[1:], strict=True)]), abs=1e-12
    )


def test_controlling_finds_what_the_mixture_hides():
    """Simpson: width raises both numbers, and at equal width they disagree."""
    rng = np.random.default_rng(1)
    width = np.arange(2)[None, None, :, None, None]
    rate = np.arange(3)[None, None, None, None, :]
    depth, batch = np.arange(2)[None, :, None, None, None], np.arange(2)[None, None, None, :, None]
    measure = 100.0 * width + rate + 0.1 * depth + 0.01 * batch + 1e-4 * rng.normal(size=SHAPE)
    error = 100.0 * width - rate - 0.1 * depth - 0.01 * batch + 1e-4 * rng.normal(size=SHAPE)
    assert over_all(measure, error) > 0
    assert controlled(measure, error) == pytest.approx((1 - 3) / 4)  # one axis agrees, three do not


def test_the_interval_covers():
    """Of means over seeds the jackknife is Student's interval; it covers 95% of 300 within four standard errors."""
    rng, inside = np.random.default_rng(2), 0
    for _ in range(300):
        found = jiang2020.jackknife(lambda a: float(a.mean()), rng.normal(size=(5, 3)))
        inside += found.low <= 0 <= found.high
    assert abs(inside / 300 - 0.95) <= 4 * np.sqrt(0.95 * 0.05 / 300)


def planted(*, invariant_too=True, seed=0):
    """The invariant trace orders the errors; the trace does too, with much noise, or not at all."""
    rng = np.random.default_rng(seed)
    error = rng.normal(size=SHAPE)
    noisy = error + 0.8 * rng.normal(size=SHAPE)
    clean = error + 0.01 * rng.normal(size=SHAPE)
    return [table({"trace": noisy, "invariant_trace": clean if invariant_too else -noisy}, error)]


@pytest.mark.parametrize("id", ["trace", "invariant-trace", "invariant-better"])
def test_a_claim_can_hold_and_can_fail(id):
    assert CLAIMS[id].check(planted()).holds
    assert not CLAIMS[id].check(planted(invariant_too=False)).holds or id == "trace"
    rng = np.random.default_rng(3)
    unrelated = [
        table({"trace": rng.normal(size=SHAPE), "invariant_trace": rng.normal(size=SHAPE)}, rng.normal(size=SHAPE))
    ]
    assert not CLAIMS[id].check(unrelated).holds


def test_a_network_that_misses_the_goal_is_told():
    assert CLAIMS["fit"].check(planted()).holds
    missed = table({"trace": np.ones(SHAPE)}, np.ones(SHAPE), reached=0.0)
    assert not CLAIMS["fit"].check([missed]).holds


def test_a_network_is_measured_as_steppe_measures_it(monkeypatch):
    spec = Grid(loss="cross_entropy", n=20, depths=(1,), widths=(6,), batches=(10,), rates=(0.3,), goal=0.3, seeds=1)
    kept = []
    run = steppe.run
    monkeypatch.setattr(steppe, "run", lambda *a, **k: kept.append((a[0], run(*a, **k))) or kept[-1][1])
    row = spec.compute().curves
    (problem, trained), x_test, y_test = kept[0], *spec.images(0)[2:]
    net = FCN(widths=(6,))
    wrong = np.asarray(net(problem.unravel(trained.w), x_test)).argmax(axis=1) != y_test
    assert row["test_error"][0] == pytest.approx(float(np.mean(wrong)), abs=1e-12)
    assert len(y_test) == 1797 - 20
    assert row["trace"][0] == pytest.approx(steppe.measures.trace(problem, trained.w).value, rel=1e-3)
    assert row["invariant_trace"][0] <= row["trace"][0]
    assert row["invariant_sharpness"][0] <= row["sharpness"][0] * 1.0001


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure):
    numbers = json.loads(json.dumps(figure.show.numbers(planted()), allow_nan=False))
    assert figure.show.draw(numbers).axes
    if figure.id == "kendall":
        assert numbers["panels"][0]["rows"] == list(MEASURES.values())
