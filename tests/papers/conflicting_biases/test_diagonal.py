"""The diagonal network and two points: claims at smoke scale, checks that can fail, the runs themselves."""

import json
from functools import cache

import numpy as np
import pytest
from cases.finished_runs import Finished

from steppe.papers import paper
from steppe.papers.conflicting_biases import PAPER
from steppe.papers.conflicting_biases.beyond_algorithms import diverging_rates
from steppe.papers.conflicting_biases.diagonal_runs import DiagonalSweep, Example
from steppe.papers.conflicting_biases.network_measures import MeasuredEnds
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.theorems_b import random_starts, staying
from steppe.store import address

CLAIMS = {claim.id: claim for claim in PAPER.claims if not claim.id.startswith("net-")}
OF_NETWORKS = (NetworkSweep, MeasuredEnds)
NETWORKS = {figure.id for figure in PAPER.figures if any(isinstance(run, OF_NETWORKS) for run in figure.runs["paper"])}


@cache
def computed(id):
    """The runs of a figure at smoke scale, each spec computed once."""
    return [finished(spec) for spec in PAPER.find_figure(id).runs["smoke"]]


FINISHED = {}


def finished(spec):
    if (id := address(spec)) not in FINISHED:
        FINISHED[id] = Finished(spec)
    return FINISHED[id]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.id)
def test_claims(claim):
    found = claim.check(*(computed(figure.id) for figure in claim.needs))
    assert found.holds is not (claim.misprint or "smoke" in claim.fails_at), found
    assert isinstance(found.measured, float)


def test_the_paper_is_found_by_its_name_on_the_command_line():
    assert paper("conflicting-biases") is PAPER


def test_every_misprint_has_its_correction():
    for id, claim in CLAIMS.items():
        if claim.misprint:
            stem = id.removesuffix("-printed").removesuffix("-integral")
            assert not CLAIMS[f"{stem}-corrected"].misprint


# Claims with columns of one of their figures that refute them.
BREAK = {
    "thmB.1": ("thmB1", {"excess": lambda v: v**0.5}),
    "thmB.2": ("thmB2", {"sharpness": lambda v: 1.1 * v}),
    "fig15-flow-aligned": ("fig15", {"norm": lambda v: v * np.linspace(1, 2, len(v))}),
    "fig15-critical": ("fig15", {"rate": lambda v: 1.2 * v}),
    "fig15-tracks": ("fig15", {"sharpness": lambda v: 1.1 * v}),
    "fig15-norm": ("fig15", {"norm": lambda v: 1.2 * v}),
    "figH13-divergence": ("fig15", {"outcome": np.zeros_like}),
    "beyond-divergence": ("divergence", {"all_below": lambda v: 0.5 * v, "last": lambda v: 0.9 * v}),
    "beyond-momentum": ("edges", {"sharpness": lambda v: 1.05 * v}),
    "beyond-sam-noise": ("algorithms", {"sharpness": lambda v: 1.05 * v}),
    "beyond-triangle": ("triangle", {"sharpness": lambda v: 1.05 * v}),
}


@pytest.mark.parametrize("id", BREAK)
def test_a_check_on_runs_can_fail(id):
    figure, changes = BREAK[id]
    needs = [need.id for need in CLAIMS[id].needs]
    runs = [[e.changed(**changes) if need == figure else e for e in computed(need)] for need in needs]
    assert not CLAIMS[id].check(*runs).holds


def test_a_stable_point_keeps_its_neighbours():
    """Below 2/S the same check fails: then the starts that stay are no set of measure zero."""
    found = staying(0.9 * 2 / 4.0)
    assert (found.measured, found.holds) == (1.0, False)
    assert staying(1.1 * 2 / 4.0, steps=200).holds


def test_what_would_make_every_trajectory_better():
    """The statement holds on examples where it is true, and one rate of figure 16 alone refutes it."""
    (drawn,), grid, twelve = (computed(id) for id in ("draws", "fig15", "fig16"))
    good = [drawn.changed(better=lambda v: drawn.curves["converged"])]
    low = [e.changed(risk=lambda v: 0.5 * v) for e in grid]
    check = CLAIMS["fig16-better"].check
    assert check(good, low, twelve).holds
    assert not check(good, low, [e.changed(risk=lambda v: 2 * v) for e in twelve]).holds
    assert not check([drawn], low, twelve).holds


def test_other_checks_on_runs_can_fail():
    planes, sweep = computed("fig4")
    assert not CLAIMS["fig4-u-shape"].check([planes, sweep.changed(risk=np.ones_like)]).holds
    (moved,) = [e.changed() for e in computed("fig16")]
    moved.params = {"w": moved.params["w"] + 0.2}
    assert not CLAIMS["fig16-kkt"].check([moved]).holds
    flatter = [e.changed() for e in computed("factors")]
    for entry in flatter:
        entry.result = entry.result | {"trace": 1.1 * entry.result["trace"]}
    assert not CLAIMS["beyond-factors"].check(flatter).holds
    (noisy,) = [e.changed() for e in computed("bifurcation")]
    noisy.params = {"z": noisy.params["z"] + 1e-3}
    assert not CLAIMS["beyond-doubling"].check([noisy]).holds


@pytest.mark.parametrize("figure", [f for f in PAPER.figures if f.id not in NETWORKS], ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure):
    numbers = figure.show.numbers(computed(figure.id))
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert figure.show.draw(numbers).axes


def test_the_example_shows_what_the_paper_observes():
    e = Example()
    risks = e.risks()
    assert risks["optimal"] < risks["norm"] < risks["sharpness"]
    assert 1 < e.critical() < 1.02
    assert e.critical() < e.best_rate() < e.limit
    # At the extreme sharpness the point of M is the one of least norm or of least sharpness.
    ends = e.at_sharpness([1.0, e.limit])
    np.testing.assert_allclose(ends[1], [0, np.sqrt(e.y / min(e.x))], atol=1e-7)
    np.testing.assert_allclose(e.manifold().sharpness(e.at_sharpness([1.5, 2.0])) * np.array([1.5, 2.0]) * e.unit, 2)


def test_a_sweep_measures_its_ends():
    spec = DiagonalSweep((0.5, 1.3, 4.0), iterates=5, steps=5000)
    done = spec.compute(None, None)
    assert done.curves["outcome"].tolist() == [0, 0, 2]
    w, e = done.params["w"], spec.example
    np.testing.assert_allclose(done.curves["sharpness"][:2], e.manifold().sharpness(w[:2]), rtol=1e-9)
    np.testing.assert_allclose(done.curves["norm"][:2], np.sum(w[:2] ** 2, axis=1), rtol=1e-9)
    assert np.isnan(done.curves["risk"][2])
    assert done.params["path"].shape == (3, 6, 2)
    assert done.result["outcomes"] == {"reached": 2, "exhausted": 0, "diverged": 1, "stalled": 0}


def test_the_seed_decides_a_stability_run():
    a, b, c = (random_starts(examples=1, runs=8, steps=200, seed=s).compute(None, None).curves for s in (1, 1, 2))
    np.testing.assert_array_equal(a["limit"], b["limit"])
    assert not np.array_equal(a["limit"], c["limit"])


def test_divergence_names_rates_of_its_grid():
    done = diverging_rates(limits=(1.5,), count=26, steps=3000).compute(None, None)
    assert done.curves["last"][0] <= 1.5
    assert done.curves["diverges_from"][0] > done.curves["last"][0]
