"""Claims on trained networks fail for runs that are plausible and show nothing."""

import types

import numpy as np
import pytest

from steppe.papers.wen2023 import PAPER

EPOCHS = np.concatenate([[0.0], np.geomspace(1, 1e5, 100)])


def run(seed=0, *, accuracy=1.0, trace=30.0, least=29.5, width=500, noise=0.01, curve=None, network="bias", n=100):
    """Curves that fluctuate around their values; `curve` replaces the accuracy's."""
    rng = np.random.default_rng(seed)
    wobble = 1 + noise * rng.uniform(-1, 1, len(EPOCHS))
    shape = np.full(len(EPOCHS), accuracy) if curve is None else np.asarray(curve(EPOCHS), float)
    curves = {"epoch": EPOCHS, "test_accuracy": shape * np.minimum(wobble, 1), "trace": trace * wobble,
              "test_loss": 1 - shape * np.minimum(wobble, 1) + 1e-3}  # fmt: skip
    final = {name: float(column[-1]) for name, column in curves.items()} | {"least_trace": least, "train_loss": 1e-4}
    result = {"final": final, "bound": least, "trace_parts": {"gauss_newton": final["trace"]}}
    spec = {"width": width, "seed": seed, "network": network, "n": n, "d": 30}
    return types.SimpleNamespace(curves=curves, result=result, spec=spec)


def seeds(**rest):
    return [run(seed, **rest) for seed in range(5)]


def claims(ending):
    return [c for c in PAPER.claims if c.needs and c.id.endswith(ending)]


@pytest.mark.parametrize("claim", claims("-flattens"), ids=lambda c: c.id)
def test_a_trace_that_fluctuates_does_not_fall(claim):
    assert not claim.check(seeds(noise=0.1)).holds


@pytest.mark.parametrize("claim", claims("-accuracy-falls"), ids=lambda c: c.id)
def test_an_accuracy_that_fluctuates_does_not_fall(claim):
    """As at the end of figures 9a and 11b, which end up to 0.007 below their peaks."""
    assert not claim.check(seeds(accuracy=0.93, noise=0.02)).holds


@pytest.mark.parametrize("claim", [*claims("-flatter"), PAPER.find_claim("fig1-sam-flatter")], ids=lambda c: c.id)
def test_a_baseline_is_not_flatter_than_itself(claim):
    """Two sets of seeds of one algorithm, the second by chance always a little flatter."""
    assert not claim.check(seeds(trace=31.0), [run(seed + 9, trace=30.0) for seed in range(5)]).holds
    assert claim.check(seeds(trace=90.0), seeds(trace=30.0)).holds


@pytest.mark.parametrize("claim", claims("-generalises-worse"), ids=lambda c: c.id)
def test_a_baseline_is_not_worse_than_itself(claim):
    assert not claim.check(
        seeds(accuracy=0.9, noise=0.05), [run(s + 9, accuracy=0.9, noise=0.05) for s in range(5)]
    ).holds


@pytest.mark.parametrize("claim", claims("-fails-to-generalise"), ids=lambda c: c.id)
def test_a_net_that_generalises_does_not_fail(claim):
    assert not claim.check(seeds(accuracy=0.97)).holds


@pytest.mark.parametrize(
    "claim", [c for c in claims("-generalises") if not c.id.startswith("deep")], ids=lambda c: c.id
)
def test_the_bias_net_does_not_generalise(claim):
    """As many seeds as not below 0.9, and their number is in the row."""
    finding = claim.check(seeds(accuracy=0.62))
    assert not finding.holds
    assert "5 of 5 below 0.9" in finding.detail


@pytest.mark.parametrize("claim", claims("-peak"), ids=lambda c: c.id)
def test_an_accuracy_that_rises_has_no_early_peak(claim):
    assert not claim.check(seeds(curve=lambda e: e / (e + 1e3), noise=0)).holds
    assert "the curve of medians peaks at epoch" in claim.check(seeds()).detail


@pytest.mark.parametrize("claim", claims("-attains-bound"), ids=lambda c: c.id)
def test_a_net_below_or_above_the_bound_fails(claim):
    assert claim.check(seeds(trace=1.01, least=1.0, noise=0)).holds
    assert not claim.check(seeds(trace=1.2, least=1.0, noise=0)).holds
    assert not claim.check(seeds(trace=0.9, least=1.0, noise=0)).holds


def test_the_bias_net_fails_the_claim_on_the_rate():
    """Its loss falls like d/n and faster too, but not from fewer examples on."""
    losses = {50: 0.9, 100: 0.9, 200: 0.02, 400: 0.002}
    found = [run(accuracy=1 - loss, noise=0, network=network, n=n) for network in ("no-bias", "bias")
             for n, loss in losses.items()]  # fmt: skip
    assert not PAPER.find_claim("thm3.1-rate").check(found).holds
