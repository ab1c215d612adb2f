"""The least trace and the least sharpness are the same for every rescaling of a network."""

import numpy as np
import pytest
from cases.flatten_nets import LAYERS, dense, predictions, problem, rescaled

import steppe
from steppe.measures import invariant_sharpness, invariant_trace

MEASURES = {"trace": invariant_trace, "sharpness": invariant_sharpness}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", ["no_bias", "mlp", "stack", "cnn", "residual", "cubic"])
def test_rescaling_changes_nothing(name, measure):
    """Factors from 1e-3 to 1e3: the measure keeps six digits where the plain one changes by orders of magnitude."""
    p = problem(name, seed=2)
    at = MEASURES[measure]
    first = at(p, p.w0, layers=LAYERS.get(name))
    layers = steppe.flatten(p, p.w0, layers=LAYERS.get(name)).layers
    assert first.lower <= first.value <= first.upper
    assert first.upper - first.lower <= 1e-7 * first.value
    assert (first.confidence, first.converged) == (1.0, True)
    plain = [dense(p, p.w0)[measure]]
    for seed in (1, 2, 3):
        w = rescaled(p, layers, p.w0, seed)
        # Products of numbers up to 1e9 apart: a few hundred ulp of the largest sum.
        np.testing.assert_allclose(predictions(p, w), p.y, rtol=0, atol=1e-12 * np.max(np.abs(p.y)))
        plain.append(dense(p, w)[measure])
        assert at(p, w, layers=LAYERS.get(name)).value == pytest.approx(first.value, rel=1e-6)
    assert max(plain) > 1e2 * min(plain)
    assert first.value <= min(plain)


def test_public_helper_rescales_as_the_layers_say():
    p = problem("cubic")
    best = steppe.flatten(p, p.w0)
    w = steppe.flattening.rescaled(p, p.w0, best.layers, best.scales)
    np.testing.assert_allclose(w, best.w, rtol=1e-12)
    with pytest.raises(steppe.check.ArgumentError, match="scales must be"):
        steppe.flattening.rescaled(p, p.w0, best.layers, best.scales[:1])
    with pytest.raises(steppe.check.ArgumentError, match="scales must be"):
        steppe.flattening.rescaled(p, p.w0, best.layers, [-s for s in best.scales])
