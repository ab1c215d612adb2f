"""Question 2 by experiment: each claim on planted runs that hold it, and on runs that must fail it."""

import types

import pytest

from steppe.papers.wen2023 import start_scale


def planted(accuracy, *, margin=lambda kind, scale: 1.0, norm=None, excess=0.01, widths=(100,), seeds=3, loss=1e-3):
    """Finished runs with these accuracies and margins of (architecture, start scale); the rest is equal."""
    return [
        types.SimpleNamespace(
            spec={"network": kind, "depth": 2, "width": width, "first_layer_scale": scale},
            result={
                "final": dict.fromkeys(start_scale.PROPERTIES, 1.0 + seed)
                | {"test_accuracy": accuracy(kind, scale), "normalised_margin": margin(kind, scale) + 1e-3 * seed}
                | {"train_loss": loss, "path_norm": norm(kind, scale) + seed if norm else 1.0 + seed},
                "trace_parts": {"gauss_newton": 1 + excess},
                "bound": 1.0,
            },
        )
        for width in widths
        for kind in ("bias", "sim-ln")
        for scale in (0.1, 1.0)
        for seed in range(seeds)
    ]


def start_matters(kind, scale):
    return 1.0 if scale < 1 else 0.65


def architecture_matters(kind, scale):
    return 1.0 if kind == "sim-ln" else 0.65


def test_the_start_decides():
    assert start_scale.start_decides(planted(start_matters)).holds
    assert not start_scale.start_decides(planted(architecture_matters)).holds  # the paper's reading
    assert not start_scale.start_decides(planted(start_matters, excess=0.5)).holds  # not the flattest
    one_width_fails = planted(start_matters) + planted(architecture_matters, widths=(500,))
    assert not start_scale.start_decides(one_width_fails).holds


def test_equal_from_a_small_start():
    assert start_scale.equal_from_a_small_start(planted(start_matters)).measured == 0
    assert not start_scale.equal_from_a_small_start(planted(architecture_matters)).holds


def test_a_property_that_separates_everywhere_fails_the_claim():
    assert start_scale.no_property_separates(planted(start_matters)).measured == 0
    separating = planted(start_matters, margin=lambda kind, scale: 2.0 if kind == "bias" else 1.0)
    finding = start_scale.no_property_separates(separating)
    assert finding.measured == 1
    assert not finding.holds
    # In opposite orders it separates half of the cells, not all.
    crossing = planted(start_matters, margin=lambda kind, scale: 2.0 if (kind == "bias") == (scale < 1) else 1.0)
    assert start_scale.no_property_separates(crossing).measured == pytest.approx(0.5)


def test_runs_that_do_not_fit_are_not_matched():
    assert len(start_scale.matched(planted(start_matters))) == 2
    assert start_scale.matched(planted(start_matters, loss=0.9)) == []


def test_path_norm_within_bias_nets():
    assert start_scale.path_norm_within_bias(planted(start_matters, norm=lambda kind, scale: 10 * scale)).measured == 1
    unrelated = start_scale.path_norm_within_bias(planted(start_matters, norm=lambda kind, scale: 3.0))
    assert unrelated.measured < 0.5
    assert not unrelated.holds
    # A norm that tells architectures apart, and nothing within bias nets.
    architecture = planted(architecture_matters, norm=lambda kind, scale: 10.0 if kind == "bias" else 3.0)
    assert not start_scale.path_norm_within_bias(architecture).holds
