"""Laws of all measures, found by reflection, and relations between them on every kind of problem."""

import inspect
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import two_layer
from oracles.dense_curvature import assert_close, matrices, problem

import steppe
from steppe import curvature as operators
from steppe import measures

PUBLIC = {name: f for name in dir(measures) if inspect.isfunction(f := getattr(measures, name))}
# A measure that needs more than (problem, w).
NEEDED = {"top_eigenvalues": {"k": 3}}
# These return more than one number: a tuple, a dictionary, a density, a list of kinks.
SEVERAL = {"top_eigenvalues", "layer_norms", "density", "kinks"}
ESTIMATES = sorted(set(PUBLIC) - SEVERAL)
# Computed from the function or the parameters, without products.
EXACT = {"accuracy", "zero_one_error", "loss", "margin", "norm", "layer_norms", "distance"}


def measure(name):
    return partial(PUBLIC[name], **NEEDED.get(name, {}))


def estimates(found):
    """The estimates in a result."""
    if isinstance(found, dict):
        return list(found.values())
    return [found] if isinstance(found, steppe.Estimate) else list(found)


def test_the_room_shows_measures_and_their_types_only():
    types = {"Frozen", "FullBatch", "KinkWarning", "KinkedLayer", "Kinks", "Measured", "PerChunk", "Tracker"}
    assert {name for name in dir(measures) if not name.startswith("_")} == {*PUBLIC, *types}
    assert all(PUBLIC[name].__doc__ for name in PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_grammar_of_signatures(name):
    """NAME(problem, w=None, *, ...): w is problem.w0 by default, everything else is a keyword."""
    first, w, *options = inspect.signature(PUBLIC[name]).parameters.values()
    assert (first.name, first.default) == ("problem", inspect.Parameter.empty)
    assert (w.name, w.default) == ("w", None)
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
    assert not {"confidence", "max_matvecs", "max_evaluations"} & {option.name for option in options}


@pytest.mark.parametrize("kind", ["two-layer", "tanh-cross-entropy"])
@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {"density", "kinks"}))
def test_an_interval_holds_its_value_and_w0_is_the_default(name, kind):
    if name.startswith("invariant") and kind != "two-layer":
        pytest.skip("the network has no neurons that can be rescaled")
    p = problem(kind)
    found = measure(name)(p)
    assert found == measure(name)(p, p.w0)
    for e in estimates(found):
        assert isinstance(e, steppe.Estimate)
        assert e.lower <= e.value <= e.upper
        assert 0 < e.confidence <= 1
        if name in EXACT:
            assert (e.lower, e.upper, e.confidence, e.matvecs) == (e.value, e.value, 1.0, 0)


def test_w0_is_the_default_of_the_others():
    p = problem("two-layer")
    default, given = measures.density(p), measures.density(p, p.w0)
    np.testing.assert_array_equal(default.nodes, given.nodes)
    assert len(measures.kinks(p)) == len(measures.kinks(p, p.w0)) == 0
    assert measures.Tracker()(p) == measures.Tracker()(p, p.w0)
    for curvature in (operators.hessian, operators.gauss_newton):
        np.testing.assert_array_equal(curvature(p).matvec(p.w0), curvature(p, p.w0).matvec(p.w0))


@pytest.mark.parametrize("name", ESTIMATES)
def test_every_measure_is_a_record_function(name):
    """A run records a measure that is called with (problem, w) alone."""
    p = problem("two-layer")
    estimate = PUBLIC[name](p, p.w0)
    run = steppe.run(p, steppe.dynamics.GD(0.01), stop=steppe.until.steps(1), record={name: PUBLIC[name]})
    assert run.records[name][0] == estimate.value
    ends = [run.records.get(f"{name}.{end}", run.records[name])[0] for end in ("lower", "upper")]
    assert ends == [estimate.lower, estimate.upper]


@pytest.mark.parametrize("name", ["loss", "accuracy", "zero_one_error", "margin", "norm", "distance"])
def test_a_run_that_diverged_can_be_recorded(name):
    """Divergence is a result: nothing is refused, and only what is known has converged."""
    p = problem("least-squares")
    estimate, known = PUBLIC[name](p, p.w0 * jnp.nan), {"accuracy": 0.0, "zero_one_error": 1.0}
    np.testing.assert_equal(estimate.value, known.get(name, np.nan))
    assert estimate.converged == (name in known)


@pytest.mark.parametrize(
    "name", [name for name, f in PUBLIC.items() if "statistics" in inspect.signature(f).parameters]
)
def test_the_result_says_how_batch_statistics_were_treated(name):
    found = measure(name)(problem("batch-statistics"), statistics=measures.PerChunk(3))
    assert {e.statistics for e in (found if isinstance(found, tuple) else (found,))} == {"chunks of 3"}


# Relations between measures.


@pytest.mark.parametrize("name", ["two-layer", "tanh-half-mse", "tanh-cross-entropy", "batch-statistics"])
def test_the_mean_eigenvalue_is_no_larger_than_the_largest(name):
    p = problem(name)
    sharpness, trace = measures.sharpness(p, p.w0), measures.trace(p, p.w0)
    assert sharpness.upper >= trace.value / p.w0.size
    assert measures.spectral_norm(p, p.w0).upper >= abs(sharpness.value) * (1 - 1e-12)


@pytest.mark.parametrize("name", ["least-squares", "batch-statistics"])
def test_the_trace_is_the_sum_of_all_eigenvalues(name):
    p = problem(name)
    everything = measures.top_eigenvalues(p, k=p.w0.size)
    size = sum(abs(e.value) for e in everything)
    assert sum(e.value for e in everything) == pytest.approx(measures.trace(p, p.w0).value, abs=1e-13 * size)


@pytest.mark.parametrize("name", ["two-layer", "tanh-half-mse"])
def test_gauss_newton_is_the_hessian_at_an_interpolator(name):
    p = problem(name)
    fitted = p.on(p.x, p.predictions(p.w0))
    # Predictions come out a rounding away when they are computed in another order, and R is that large.
    G = np.asarray(operators.gauss_newton(fitted, p.w0).dense())
    assert_close(operators.hessian(fitted, p.w0).dense(), G)
    assert np.abs(operators.residual(fitted, p.w0).matvec(p.w0)).max() <= 1e-13 * np.abs(G).max()


@pytest.mark.parametrize("name", ["two-layer", "two-layer-no-bias", "two-layer-logistic"])
def test_a_piecewise_linear_net_is_linear_in_each_layer(name):
    """R = ∇²L − G has only blocks between the layers: those of a layer with itself vanish."""
    p = problem(name)
    R = np.asarray(operators.residual(p, p.w0).dense())
    last = np.concatenate([np.full(np.size(a), name == "W2") for name, a in sorted(p.unravel(p.w0).items())])
    assert np.abs(R[~last][:, ~last]).max() == np.abs(R[last][:, last]).max() == 0
    assert np.abs(R[~last][:, last]).max() > 0


def rescaled(p, scales):
    """Neuron j with its incoming weights times s_j and its outgoing one divided by it: the same function."""
    params = p.unravel(np.asarray(p.w0))
    params = params | {
        "W1": params["W1"] * scales[:, None],
        "b1": params["b1"] * scales,
        "W2": params["W2"] / scales,
    }
    return jnp.asarray(np.concatenate([params[k].ravel() for k in sorted(params)]))


@pytest.mark.parametrize(
    "measure",
    [partial(measures.adaptive_sharpness, accuracy=steppe.Accuracy(0.5)), measures.worst_adaptive_sharpness],
    ids=["average", "worst"],
)
def test_adaptive_sharpness_does_not_see_a_rescaling(measure):
    p = problem("two-layer")
    w = rescaled(p, np.linspace(0.3, 4.0, 7))
    np.testing.assert_allclose(p.predictions(w), p.predictions(p.w0), rtol=0, atol=1e-14)
    before, after = (measure(p, v, radius=0.1, key=2).value for v in (p.w0, w))
    # The steps are the same up to rounding; an ascent of 50 steps can amplify it.
    assert after == pytest.approx(before, rel=1e-9)
    assert measures.sharpness(p, w).value != pytest.approx(measures.sharpness(p, p.w0).value, rel=0.1)


def test_half_of_the_loss_is_half_of_every_curvature():
    p, half = problem("two-layer"), two_layer(loss=steppe.losses.half_mse)
    assert_close(2 * np.asarray(operators.hessian(half, half.w0).dense()), matrices("two-layer").hessian)
    np.testing.assert_allclose(
        measures.fisher_trace(p, p.w0).value, 2 * measures.fisher_trace(half, half.w0).value, rtol=1e-13
    )
