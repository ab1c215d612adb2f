"""Minima with kinks and SGD near minima: enumeration, Monte Carlo, and gradient descent on the net itself."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.networks import OneHidden
from steppe.papers.mulayoff2021.theory import (
    excursion,
    growth,
    largest_stable_lr,
    lower_sharpness,
    modes,
    rescaling,
    second_moment,
    theorem_2,
    theorem_2_as_printed,
    upper_sharpness,
)

ROUNDING = 1e-12  # of the sums of a step


def simulated_growth(K, lr, *, batch_size, steps, samples, key):
    """(E‖u_t‖²/‖u₀‖² after `steps` steps from a random direction, its standard error), by simulating SGD."""
    n, rng = len(K), np.random.default_rng(key)
    start = rng.standard_normal(n)
    u = np.repeat(start[None] / np.linalg.norm(start), samples, axis=0)
    for _ in range(steps):
        order = np.argsort(rng.random(u.shape), axis=1)
        chosen = np.zeros(u.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, :batch_size], True, axis=1)
        u = u - lr / batch_size * (np.where(chosen, u, 0.0) @ K)
    squares = np.sum(u**2, axis=1)
    return squares.mean(), squares.std(ddof=1) / np.sqrt(samples)


def kinked(seed, *, k=6, n=4, kinks=3, d=1):
    """A net with `kinks` neurons whose kink sits on a training point, up to rounding."""
    rng = np.random.default_rng(seed)
    params, x = OneHidden().init(d, k, rng, scale=2.0), rng.normal(size=(n, d))
    at = rng.integers(0, n, kinks)
    params["b1"][:kinks] = -np.sum(params["W1"][:kinks] * x[at], axis=1)
    return params, x, rng


def gradient_descent(params, x, theta, lr, steps):
    """Steps on (1/2n) Σ (f − f*)² of the net itself; θ holds (W₁, b₁) row by row, W₂, b₂, as `Modes` orders them."""
    m, d = params["W1"].shape
    rows = np.column_stack([x, np.ones(len(x))])

    def forward(theta):
        h = rows @ theta[: m * (d + 1)].reshape(m, d + 1).T
        return h, np.maximum(h, 0) @ theta[m * (d + 1) : -1] + theta[-1]

    y, path = forward(flat(params))[1], [theta]
    for _ in range(steps):
        h, f = forward(theta)
        r = lr / len(x) * (f - y)
        slopes = (h > 0) * theta[m * (d + 1) : -1] * r[:, None]
        theta = theta - np.concatenate([(slopes.T @ rows).ravel(), np.maximum(h, 0).T @ r, [r.sum()]])
        path.append(theta)
    return np.array(path)


def flat(params):
    inner = np.column_stack([params["W1"], params["b1"]]).ravel()
    return np.concatenate([inner, params["W2"], [params["b2"]]])


@given(st.integers(0, 10_000), st.integers(1, 2), st.integers(0, 4))
@settings(max_examples=25)
def test_all_kinks_are_found_and_all_modes_are_tried(seed, d, kinks):
    params, x, _ = kinked(seed, d=d, kinks=kinks)
    found = modes(params, x)
    assert found.count == 2 ** len(found.kinks) >= 2**kinks
    h = x @ params["W1"].T + params["b1"]
    np.testing.assert_allclose(h[tuple(found.kinks.T)], 0.0, atol=1e-14)
    assert found.crowd == max([0, *np.bincount(found.kinks[:, 0])])
    patterns = {active.tobytes() for active in found}
    assert len(patterns) == found.count
    exact = upper_sharpness(found)
    assert exact.lower == exact.upper == max(found.sharpness(active) for active in found)
    least = lower_sharpness(found)
    assert least.lower == least.upper == min(found.sharpness(active) for active in found)
    if found.count > 1:
        for between, truth in ((upper_sharpness(found, cap=1), exact), (lower_sharpness(found, cap=1), least)):
            assert between.lower * (1 - 1e-12) <= truth.lower <= between.upper * (1 + 1e-12)


def test_without_kinks_there_is_one_mode_and_it_is_the_hessian():
    params, x, _ = kinked(0, kinks=0)
    found = modes(params, x)
    form, _ = rescaling(params, x)
    assert found.count == 1
    assert found.sharpness(found.active) == pytest.approx(np.linalg.eigvalsh(form.gram(np.zeros(form.units)))[-1])


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_a_mode_is_the_curvature_on_its_side(seed):
    """After a small move into a mode the second difference of the loss is δᵀ H_m δ of that mode."""
    params, x, rng = kinked(seed)
    found = modes(params, x)
    delta = rng.normal(size=flat(params).size)
    inner = delta[: 2 * len(params["b1"])].reshape(-1, 2)
    rows = np.column_stack([x, np.ones(len(x))])
    active = found.pattern([rows[j] @ inner[i] > 0 for j, i in found.kinks])

    def loss(theta):
        h = rows @ theta[: 2 * len(params["b1"])].reshape(-1, 2).T
        return np.maximum(h, 0) @ theta[2 * len(params["b1"]) : -1] + theta[-1]

    h, star = 1e-6, flat(params)
    value = np.mean((loss(star + h * delta) - loss(star)) ** 2) / 2
    expected = np.sum((found.tangents(active) @ delta) ** 2) / len(x) / 2
    # The loss is quadratic in δ up to a relative h.
    assert value / h**2 == pytest.approx(expected, rel=1e-3, abs=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_lemma_5(seed):
    """‖H̃q − λq‖ ≤ √3 C (√λ_max(H) + √λ_max(H̃)) √(p_max/n) for any two modes."""
    params, x, _ = kinked(seed, kinks=3)
    found = modes(params, x)
    C, n = found.largest_entry(), len(x)
    hessians = [found.tangents(active).T @ found.tangents(active) / n for active in found]
    tops = [np.linalg.eigh(H) for H in hessians]
    for m, V in tops:
        for H, (other, _) in zip(hessians, tops, strict=True):
            bound = np.sqrt(3 * found.crowd / n) * C * (np.sqrt(m[-1]) + np.sqrt(other[-1]))
            assert np.linalg.norm(H @ V[:, -1] - m[-1] * V[:, -1]) <= bound * (1 + 1e-12) + 1e-12


@given(st.floats(1e-3, 2.0), st.floats(0.0, 50.0), st.integers(0, 9), st.integers(1, 20))
def test_theorem_2_is_the_root_and_the_print_is_not(lr, C, crowd, n):
    alpha, bound = 2 * np.sqrt(3 * crowd / n) * C, theorem_2(lr, C, crowd, n)
    # λ = 2/η + α√λ (S71 with equality), to the rounding of a square of a root.
    assert bound == pytest.approx(2 / lr + alpha * np.sqrt(bound), rel=1e-12)
    printed = theorem_2_as_printed(lr, C, crowd, n)
    assert printed - 2 / lr == pytest.approx((bound - 2 / lr) / 2, rel=1e-6, abs=1e-9 * bound)
    assert bound >= (2 / lr) * (1 - 1e-12)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_second_moment_is_the_mean_over_all_batches(batch_size):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 6))
    K, lr = A @ A.T, 0.1
    maps = []
    for batch in combinations(range(4), batch_size):
        S = np.diag([float(i in batch) for i in range(4)])
        step = np.eye(4) - lr / batch_size * K @ S
        maps.append(np.kron(step, step))
    U = rng.normal(size=(4, 4))
    U = U @ U.T
    expected = (np.mean(maps, axis=0) @ U.ravel()).reshape(4, 4)
    rows = np.triu_indices(4)
    np.testing.assert_allclose(second_moment(K, lr, batch_size=batch_size) @ U[rows], expected[rows], rtol=1e-12)
    radius = np.abs(np.linalg.eigvals(np.mean(maps, axis=0))).max()
    assert growth(K, lr, batch_size=batch_size) == pytest.approx(radius, rel=1e-10)


def test_full_batch_growth_is_that_of_gradient_descent():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(5, 9))
    K = A @ A.T
    eigenvalues = np.linalg.eigvalsh(K) / 5
    for lr in (0.1, 0.5, 1.5):
        assert growth(K, lr, batch_size=5) == pytest.approx(np.max((1 - lr * eigenvalues) ** 2), rel=1e-10)
    assert largest_stable_lr(K, batch_size=5) == pytest.approx(2 / eigenvalues[-1], rel=2e-6)
    limits = [largest_stable_lr(K, batch_size=b) for b in (1, 2, 3, 4, 5)]
    assert limits == sorted(limits)  # smaller batches are noisier, and λ_max ≤ 2/η for all of them (Lemma 1)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_simulation_agrees_with_the_operator(batch_size):
    rng = np.random.default_rng(2)
    A = rng.normal(size=(6, 8))
    K, lr, steps = A @ A.T, 0.15, 10
    mean, error = simulated_growth(K, lr, batch_size=batch_size, steps=steps, samples=40_000, key=3)
    start = np.random.default_rng(3).standard_normal(6)
    U = np.outer(start, start) / (start @ start)
    rows = np.triu_indices(6)
    moments = np.linalg.matrix_power(second_moment(K, lr, batch_size=batch_size), steps) @ U[rows]
    expected = moments[rows[0] == rows[1]].sum()
    assert abs(mean - expected) <= 4 * error
    assert error < 0.1 * expected


@pytest.mark.parametrize("seed", range(4))
def test_switching_system_is_gradient_descent_nearby(seed):
    """The net itself, from the first start: the top eigenvector of the first mode, at distance 1e-7."""
    params, x, _ = kinked(seed)
    found = modes(params, x)
    lr = 1.5 / upper_sharpness(found).upper
    tangents = found.tangents(next(iter(found)))
    top = np.linalg.eigh(tangents @ tangents.T)[1][:, -1] @ tangents
    eps, star = 1e-7, flat(params)
    path = gradient_descent(params, x, star + eps * top / np.linalg.norm(top), lr, 20)
    worst = np.linalg.norm(path[1:] - star, axis=1).max() / eps
    assert excursion(found, lr, starts=1, steps=20) == pytest.approx(worst, rel=1e-4)


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_lemma_3_and_its_converse_for_one_mode(seed):
    """λ_max(H_m) ≤ 2/η in every mode: strongly stable. Without kinks and λ_max > 2/η: not."""
    params, x, _ = kinked(seed, kinks=2)
    found = modes(params, x)
    top = upper_sharpness(found).upper
    assert excursion(found, 2 / top, starts=16, steps=50) <= 1 + 50 * ROUNDING
    smooth = modes(*kinked(seed, kinks=0)[:2])
    beyond = excursion(smooth, 2.02 / smooth.sharpness(smooth.active), starts=4, steps=50)
    # |1 − ηλ| = 1.02 along the top eigenvector, 50 times.
    assert beyond == pytest.approx(1.02**50, rel=1e-6)


def test_a_stable_minimum_of_gd_that_sgd_leaves():
    params, x, _ = kinked(5, kinks=1)
    found = modes(params, x)
    lr = 1.9 / upper_sharpness(found).upper
    assert excursion(found, lr) <= 1 + 200 * ROUNDING
    assert excursion(found, lr, batch_size=1) > 1.001


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: growth(np.zeros((2, 3)), 0.1, batch_size=1), "K must be a symmetric matrix"),
        (lambda: growth(np.eye(2), 0.1, batch_size=3), "batch_size must be at most the 2 examples"),
        (lambda: growth(np.eye(2), 0.0, batch_size=1), "lr must be"),
        (lambda: theorem_2(0.1, -1.0, 0, 1), "entry must be"),
        (lambda: modes({"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0]}, [[1.0]]), "one output"),
        (lambda: excursion(modes(*kinked(0)[:2]), -1.0), "lr must be"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
