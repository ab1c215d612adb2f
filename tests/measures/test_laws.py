"""Laws that hold for every problem of the family, or for all of a kind."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest
from dense_curvature import assert_close, matrices, problem
from families import two_layer

import steppe
from steppe import curvature as operators
from steppe import measures


@pytest.mark.parametrize("name", ["two-layer", "tanh-half-mse", "tanh-cross-entropy", "batch-statistics"])
def test_the_mean_eigenvalue_is_no_larger_than_the_largest(name):
    p = problem(name)
    sharpness, trace = measures.sharpness(p, p.w0), measures.trace(p, p.w0)
    assert sharpness.upper >= trace.value / p.w0.size
    assert measures.spectral_norm(p, p.w0).upper >= abs(sharpness.value) * (1 - 1e-12)


@pytest.mark.parametrize("name", ["least-squares", "batch-statistics"])
def test_the_trace_is_the_sum_of_all_eigenvalues(name):
    p = problem(name)
    everything = measures.top_eigenvalues(p, p.w0, p.w0.size)
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


@pytest.mark.parametrize("kind", ["average", "worst"])
def test_adaptive_sharpness_does_not_see_a_rescaling(kind):
    p = problem("two-layer")
    w = rescaled(p, np.linspace(0.3, 4.0, 7))
    np.testing.assert_allclose(p.predictions(w), p.predictions(p.w0), rtol=0, atol=1e-14)
    policy = {"kind": kind, "radius": 0.1, "rtol": 0.5, "key": 2}
    before, after = (measures.adaptive_sharpness(p, v, **policy).value for v in (p.w0, w))
    # The steps are the same up to rounding; an ascent of 50 steps may amplify it.
    assert after == pytest.approx(before, rel=1e-9)
    assert measures.sharpness(p, w).value != pytest.approx(measures.sharpness(p, p.w0).value, rel=0.1)


def test_half_of_the_loss_is_half_of_every_curvature():
    p, half = problem("two-layer"), two_layer(loss=steppe.losses.half_mse)
    assert_close(2 * np.asarray(operators.hessian(half, half.w0).dense()), matrices("two-layer").hessian)
    np.testing.assert_allclose(
        measures.fisher_trace(p, p.w0).value, 2 * measures.fisher_trace(half, half.w0).value, rtol=1e-13
    )


PUBLIC = {name: measure for name, measure in vars(measures).items() if inspect.isfunction(measure)}
ESTIMATES = {n: f for n, f in PUBLIC.items() if inspect.signature(f).return_annotation is steppe.Estimate}


@pytest.mark.parametrize("name", sorted(ESTIMATES))
def test_every_measure_is_a_record_function(name):
    """Called with (problem, w) alone each gives an estimate, and a run writes it down."""
    p = problem("two-layer")
    estimate = ESTIMATES[name](p, p.w0)
    assert isinstance(estimate, steppe.Estimate)
    assert estimate.lower <= estimate.value <= estimate.upper
    run = steppe.run(p, steppe.dynamics.GD(0.01), stop=steppe.until.steps(1), record={name: ESTIMATES[name]})
    assert run.records[name][0] == estimate.value
    ends = [run.records.get(f"{name}.{end}", run.records[name])[0] for end in ("lower", "upper")]
    assert ends == [estimate.lower, estimate.upper]


@pytest.mark.parametrize("name", ["loss", "accuracy", "zero_one_error", "margin", "norm", "distance"])
def test_a_run_that_diverged_can_be_recorded(name):
    """Divergence is a result: nothing is refused, and no number is claimed but that all is wrong."""
    p = problem("least-squares")
    estimate, known = ESTIMATES[name](p, p.w0 * jnp.nan), {"accuracy": 0.0, "zero_one_error": 1.0}
    np.testing.assert_equal(estimate.value, known.get(name, np.nan))
    assert estimate.converged == (name in known)


def test_the_measures_of_a_run_are_these():
    """And besides: top_eigenvalues takes k; layer_norms, density and kinks give more than a number."""
    assert set(PUBLIC) - set(ESTIMATES) == {"top_eigenvalues", "layer_norms", "density", "kinks"}


@pytest.mark.parametrize(
    "name", sorted(n for n, f in PUBLIC.items() if "statistics" in inspect.signature(f).parameters)
)
def test_the_result_says_how_batch_statistics_were_treated(name):
    p = problem("batch-statistics")
    numbers = {"top_eigenvalues": (2,)}.get(name, ())
    found = PUBLIC[name](p, p.w0, *numbers, statistics=measures.PerChunk(3))
    assert {e.statistics for e in (found if isinstance(found, tuple) else (found,))} == {"chunks of 3"}
