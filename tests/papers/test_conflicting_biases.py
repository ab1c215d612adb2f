"""The part of conflicting-biases on diagonal networks and two points: small real runs, and checks that can fail."""

import json
import types

import numpy as np
import pytest

from steppe.experiments._paper import figures, paper
from steppe.papers.conflicting_biases import (
    beyond_checks,
    dynamics_claims,
    figure_checks,
    geometry_claims,
    networks_figures,
    risk_claims,
    theorem_b_checks,
    two_points_claims,
)
from steppe.papers.conflicting_biases.diagonal_setting import Example
from steppe.papers.conflicting_biases.diagonal_sweep import Sweep, even
from steppe.papers.conflicting_biases.divergence import Divergence
from steppe.papers.conflicting_biases.stability import Stability
from steppe.store import canonical

PAPER = paper("conflicting-biases")
PARTS = (geometry_claims, risk_claims, two_points_claims, dynamics_claims)
OURS = {claim.id: claim for part in PARTS for claim in part.CLAIMS}


class Finished:
    """A computed spec as the store would hand it over, without the disk."""

    def __init__(self, spec):
        done = spec.compute(None, None)
        self.spec, self.id = canonical(spec), "x"
        self.curves, self.params, self.result = dict(done.curves), dict(done.params), dict(done.result)

    def changed(self, **columns):
        other = types.SimpleNamespace(**self.__dict__)
        other.curves = self.curves | {name: np.asarray(change(self.curves[name])) for name, change in columns.items()}
        return other


@pytest.fixture(scope="module")
def evidence():
    """Every figure of this part at smoke scale, each spec computed once."""
    done = {}
    found = {}
    ids = {need for claim in OURS.values() for need in claim.needs}
    for id in sorted(ids):
        specs = PAPER.figure(id).specs["smoke"]
        found[id] = [done.setdefault(json.dumps(canonical(s), sort_keys=True), None) or Finished(s) for s in specs]
        for spec, entry in zip(specs, found[id], strict=True):
            done[json.dumps(canonical(spec), sort_keys=True)] = entry
    return found


def test_the_name_on_the_command_line_is_the_papers():
    assert [f.id for _, f in figures("conflicting-biases/fig4")] == ["fig4"]
    assert paper("wen2023").id == "wen2023"


@pytest.mark.parametrize("claim", [c for c in OURS.values() if not c.needs], ids=lambda c: c.id)
def test_claims_of_theory(claim):
    found = claim.check({})
    assert found.holds is not claim.misprint
    assert isinstance(found.measured, float)


@pytest.mark.parametrize("claim", [c for c in OURS.values() if c.needs], ids=lambda c: c.id)
def test_claims_on_runs(claim, evidence):
    found = claim.check(evidence)
    assert found.holds is not claim.misprint, found
    assert isinstance(found.measured, float)


def test_every_misprint_has_its_correction():
    for id, claim in OURS.items():
        if claim.misprint:
            stem = id.removesuffix("-printed").removesuffix("-integral")
            assert not OURS[f"{stem}-corrected"].misprint


BREAK = {
    theorem_b_checks.flow_bias: ("thmB1", {"excess": lambda v: v**0.5}),
    theorem_b_checks.stability: ("thmB2", {"sharpness": lambda v: 1.1 * v}),
    figure_checks.flow_aligned: ("fig15", {"norm": lambda v: v * np.linspace(1, 2, len(v))}),
    figure_checks.critical: ("fig15", {"rate": lambda v: 1.2 * v}),
    figure_checks.tracks: ("fig15", {"sharpness": lambda v: 1.1 * v}),
    figure_checks.norm_predicted: ("fig15", {"norm": lambda v: 1.2 * v}),
    figure_checks.diverges_early: ("fig15", {"outcome": np.zeros_like}),
    beyond_checks.diverges_at_two: ("divergence", {"all_below": lambda v: 0.5 * v, "last": lambda v: 0.9 * v}),
    figure_checks.better_than_norm: ("fig16", {"risk": lambda v: 2 * v}),
    beyond_checks.momentum: ("edges", {"sharpness": lambda v: 1.05 * v}),
    beyond_checks.to_the_flattest: ("algorithms", {"sharpness": lambda v: 1.05 * v}),
    beyond_checks.triangle: ("triangle", {"sharpness": lambda v: 1.05 * v}),
}


@pytest.mark.parametrize("check", BREAK, ids=lambda c: c.__name__)
def test_a_check_on_runs_can_fail(check, evidence):
    figure, changes = BREAK[check]
    broken = evidence | {figure: [entry.changed(**changes) for entry in evidence[figure]]}
    assert not check(broken).holds


def test_other_checks_on_runs_can_fail(evidence):
    planes, sweep = evidence["fig4"]
    flat = evidence | {"fig4": [planes, sweep.changed(risk=np.ones_like)]}
    assert not figure_checks.u_shape(flat).holds
    (moved,) = [e.changed() for e in evidence["fig16"]]
    moved.params = {"w": moved.params["w"] + 0.2}
    assert not figure_checks.near_kkt(evidence | {"fig16": [moved]}).holds
    sharper = [e.changed() for e in evidence["factors"]]
    for entry in sharper:
        entry.result = entry.result | {"trace": 1.1 * entry.result["trace"]}
    assert not beyond_checks.factors(evidence | {"factors": sharper}).holds
    (noisy,) = [e.changed() for e in evidence["bifurcation"]]
    noisy.params = {"z": noisy.params["z"] + 1e-3}
    assert not beyond_checks.doubling(evidence | {"bifurcation": [noisy]}).holds


HERE = [f for f in PAPER.figures if f not in networks_figures.FIGURES]


@pytest.mark.parametrize("figure", HERE, ids=lambda f: f.id)
def test_figures_are_drawn_from_plain_numbers(figure, evidence):
    numbers = figure.numbers(evidence[figure.id])
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    drawn = figure.draw(numbers)
    assert drawn.axes


def test_the_example_shows_what_the_paper_observes():
    e = Example()
    risks = e.risks()
    assert risks["optimal"] < risks["norm"] < risks["sharpness"]
    assert 1 < e.critical() < 1.02
    assert e.critical() < e.best_rate() < e.limit
    # At the ends of M the point of a given sharpness is that of least norm and of least sharpness.
    ends = e.at_sharpness([1.0, e.limit])
    np.testing.assert_allclose(ends[1], [0, np.sqrt(e.y / min(e.x))], atol=1e-7)
    np.testing.assert_allclose(e.manifold().sharpness(e.at_sharpness([1.5, 2.0])) * np.array([1.5, 2.0]) * e.unit, 2)


def test_a_sweep_reads_off_what_it_says():
    spec = Sweep((0.5, 1.3, 4.0), iterates=5, steps=5000)
    done = spec.compute(None, None)
    assert done.curves["outcome"].tolist() == [0, 0, 2]
    w, e = done.params["w"], spec.example
    np.testing.assert_allclose(done.curves["sharpness"][:2], e.manifold().sharpness(w[:2]), rtol=1e-9)
    np.testing.assert_allclose(done.curves["norm"][:2], np.sum(w[:2] ** 2, axis=1), rtol=1e-9)
    assert np.isnan(done.curves["risk"][2])
    assert done.params["path"].shape == (3, 6, 2)
    assert done.result["outcomes"] == {"reached": 2, "exhausted": 0, "diverged": 1, "stalled": 0}
    assert even(0.0, 1.0, 5) == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_the_seed_decides_a_stability_run():
    a, b, c = (Stability(examples=1, runs=8, steps=200, seed=s).compute(None, None).curves for s in (1, 1, 2))
    np.testing.assert_array_equal(a["limit"], b["limit"])
    assert not np.array_equal(a["limit"], c["limit"])


def test_divergence_names_rates_of_its_grid():
    done = Divergence(limits=(1.5,), count=26, steps=3000).compute(None, None)
    assert done.curves["last"][0] <= 1.5
    assert done.curves["diverges_from"][0] > done.curves["last"][0]
