"""Eigenvalues with intervals: they hold the truth, and say when they stopped early."""

import numpy as np
import pytest
from cases.problems import FAMILY
from oracles.dense_curvature import in_float32, matrices, problem

import steppe
from steppe import Accuracy, measures
from steppe import curvature as operators
from steppe.check import ArgumentError


@pytest.mark.parametrize("name", FAMILY)
def test_intervals_hold_the_eigenvalues_of_the_dense_hessian(name):
    p = problem(name)
    spectrum = np.linalg.eigvalsh(matrices(name).hessian)[::-1]
    sharpness, norm = measures.sharpness(p, p.w0), measures.spectral_norm(p, p.w0)
    assert sharpness.lower <= spectrum[0] <= sharpness.upper
    assert norm.lower <= np.abs(spectrum).max() <= norm.upper
    for estimate, value in zip(measures.top_eigenvalues(p, k=3), spectrum, strict=False):
        assert estimate.lower <= value <= estimate.upper
    assert sharpness.converged
    assert sharpness.upper - sharpness.lower <= 1e-3 * sharpness.value
    assert sharpness.matvecs <= p.w0.size


def wide(*, d=150, n=200, key=0):
    """Least squares with a spectrum that is planted, and too many directions to span."""
    rng = np.random.default_rng(key)
    U, V = (np.linalg.qr(rng.normal(size=(m, d)))[0] for m in (n, d))
    spectrum = np.concatenate([[10.0, 9.9, 9.0], np.linspace(3, 0, d - 3)])
    X = U * np.sqrt(n * spectrum)[None] @ V.T
    return steppe.Problem(lambda w, x: x @ w, np.zeros(d), X, np.zeros(n), steppe.losses.half_mse)


def test_coverage_at_the_stated_confidence():
    """At confidence 0.9 the interval may miss in one case of ten: 60 cases, four standard deviations allowed."""
    p = wide()
    found = [measures.sharpness(p, accuracy=Accuracy(1e-3, 0.9), key=key) for key in range(60)]
    held = sum(e.lower <= 10.0 * (1 + 1e-12) and e.upper >= 10.0 * (1 - 1e-12) for e in found)
    assert held >= 60 * 0.9 - 4 * np.sqrt(60 * 0.9 * 0.1)
    assert all(e.converged and e.matvecs < 60 for e in found)


def test_too_few_products_are_admitted():
    e = measures.sharpness(wide(), accuracy=Accuracy(1e-3, max_matvecs=6))
    assert not e.converged
    assert e.matvecs == 6
    assert e.lower <= 10.0 <= e.upper


def test_the_same_key_gives_the_same_estimate():
    p = wide()
    assert measures.sharpness(p, p.w0, key=4) == measures.sharpness(p, p.w0, key=4)
    assert measures.sharpness(p, p.w0, key=4) != measures.sharpness(p, p.w0, key=5)


def test_float32_rounding_is_in_the_interval():
    p = in_float32(wide())
    e = measures.sharpness(p, p.w0)
    assert e.lower <= 10.0 * (1 + 1e-6)  # X itself was rounded to float32
    assert e.upper >= 10.0 * (1 - 1e-6)
    assert e.upper - e.lower >= 10.0 * float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("name", ["two-layer-logistic", "tanh-cross-entropy"])
def test_fisher(name):
    p, expected = problem(name), matrices(name)
    for empirical, A in ((False, expected.gauss_newton), (True, expected.empirical_fisher)):
        e = measures.fisher_sharpness(p, p.w0, empirical=empirical)
        assert e.lower <= np.linalg.eigvalsh(A)[-1] <= e.upper
        trace = measures.fisher_trace(p, p.w0, empirical=empirical)
        assert trace.is_exact
        np.testing.assert_allclose(trace.value, np.trace(A), rtol=1e-13)


def test_fisher_trace_where_examples_see_each_other():
    p, expected = problem("batch-statistics"), matrices("batch-statistics")
    np.testing.assert_allclose(measures.fisher_trace(p, p.w0).value, np.trace(expected.gauss_newton), rtol=1e-13)


def test_eigenvalues_beyond_the_rank_are_zero():
    p = problem("two-layer")  # 9 outputs, 56 parameters
    found = measures.top_eigenvalues(p, k=11, curvature=operators.gauss_newton)
    expected = np.linalg.eigvalsh(matrices("two-layer").gauss_newton)[::-1]
    np.testing.assert_allclose([e.value for e in found], expected[:11], atol=1e-13 * expected[0], rtol=0)
    assert [e.value for e in found[9:]] == [0.0, 0.0]


def test_density_has_the_mass_of_one_and_the_mean_of_the_trace():
    p = problem("tanh-half-mse")
    H = matrices("tanh-half-mse").hessian
    found = measures.density(p, p.w0, probes=16, steps=len(H))
    assert np.trapezoid(found.density, found.grid) == pytest.approx(1.0, abs=1e-9)
    # A probe's mean is zᵀHz/p with z on the sphere: variance 2/(p + 2) · (mean of λ² − mean²).
    spectrum = np.linalg.eigvalsh(H)
    error = np.sqrt(2 / (len(H) + 2) * spectrum.var() / 16)
    assert abs(found.mean() - spectrum.mean()) <= 4 * error
    assert found.nodes.max() == pytest.approx(spectrum[-1], rel=1e-9)


def test_a_negative_key_is_refused():
    with pytest.raises(ArgumentError, match="key must be a whole number ≥ 0; got -1"):
        measures.sharpness(problem("two-layer"), key=-1)


def test_more_eigenvalues_than_parameters_are_refused():
    p = problem("least-squares")
    with pytest.raises(ArgumentError, match="k must be at most the number of parameters, 5; got 6"):
        measures.top_eigenvalues(p, k=6)
