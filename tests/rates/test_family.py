"""Sweeps over other dynamics: the same ends as by hand, and each dynamics at its own edge."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases.rate_nets import factorisation

import steppe
from steppe import rates, until
from steppe.check import ArgumentError
from steppe.dynamics import GD, SAM, Flow, HeavyBall, Optax
from steppe.rates._family import Family, sam_edge


def test_gradient_descent_as_any_dynamics_ends_as_itself():
    p, tried = factorisation(), [0.2, 0.6]
    own = rates.sweep(p, tried, goals=[1e-2, 1e-6])
    other = rates.sweep(p, tried, goals=[1e-2, 1e-6], dynamics=GD)
    for name in ("steps", "sharpness", "limit", "l1", "centre_l1", "outcome"):
        np.testing.assert_allclose(own.ends[name], other.ends[name], rtol=1e-9, err_msg=name)
    assert own.convention == other.convention


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_heavy_ball_is_stable_up_to_its_limit(beta):
    """½λw²: it falls just below 2(1 + β)/η and diverges just above."""
    p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    edge = 2 * (1 + beta)  # λ = 1: the rate at which the limit is λ
    found = rates.sweep(p, [0.9 * edge, 1.1 * edge], goals=[1e-8], steps=400, dynamics=lambda lr: HeavyBall(lr, beta))
    assert found.descents[0].outcome == "reached"
    assert found.descents[1].outcome != "reached"
    np.testing.assert_allclose(found.at(1e-8)["limit"][0], 1 / 0.9)


def test_sam_stops_to_fall_at_its_edge():
    """On ½λw² a step of SAM multiplies w by 1 − ηλ(1 + ρ/|w|): by −1 where λ(1 + ρλ/‖∇L‖) = 2/η."""
    lr, rho, w = 0.5, 0.3, 0.7
    edge = sam_edge(lr, rho, 1.0)
    assert edge * (1 + rho * edge) == pytest.approx(2 / lr)
    lam = 2.0
    scale = np.sqrt(lam)
    p = steppe.Problem(lambda w, x: scale * w * x, jnp.array([w]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    at_edge = 2 / (lam * (1 + rho / w))  # the η at which w ← −w
    assert sam_edge(at_edge, rho, lam * w) == pytest.approx(lam)
    moved = steppe.run(p, SAM(at_edge, rho, batch_size=None), stop=until.steps(1)).w
    assert float(moved[0]) == pytest.approx(-w)


def test_adam_and_its_preconditioner():
    """The stable sharpness against the dense matrix, with ν̂ summed by hand."""
    b2, p, lr = 0.9, factorisation(), 0.01
    found = rates.sweep(p, [lr], goals=[1e-2], dynamics=rates.Family.adam(b2=b2))
    (descent,) = found.descents
    w, nu, mu = np.array(p.w0), np.zeros(2), np.zeros(2)
    for t in range(1, descent.steps + 1):
        g = np.array([w[1], w[0]]) * (w[0] * w[1] - 1)
        mu, nu = 0.9 * mu + 0.1 * g, b2 * nu + (1 - b2) * g**2
        w = w - lr * (mu / (1 - 0.9**t)) / (np.sqrt(nu / (1 - b2**t)) + 1e-8)
    S = np.diag(1 / np.sqrt(np.sqrt(nu / (1 - b2**descent.steps)) + 1e-8))
    H = np.array([[w[1] ** 2, 2 * w[0] * w[1] - 1], [2 * w[0] * w[1] - 1, w[0] ** 2]])
    row = found.at(1e-2)
    assert row["stable_sharpness"][0] == pytest.approx(np.linalg.eigvalsh(S @ H @ S)[-1], rel=1e-3)
    assert row["limit"][0] == pytest.approx(38 / lr)
    assert "P = √ν̂ + ε" in found.convention


def test_sgd_and_any_other_optimiser():
    x = np.linspace(-1, 1, 8)
    p = steppe.Problem(lambda w, x: w[0] * x + w[1], np.zeros(2), x, 2 * x + 1, steppe.losses.half_mse)
    found = rates.sweep(p, [0.3], goals=[1e-4], dynamics=lambda lr: GD(lr, batch_size=2))
    assert found.descents[0].outcome == "reached"
    assert "batches of 2" in found.convention
    other = rates.sweep(p, [0.1], goals=[1e-4], dynamics=lambda lr: Optax(optax.adagrad(lr)))
    assert "gradient descent only" in other.convention


def test_how_much_of_the_growth_of_a_norm_is_oscillation():
    """An iterate jumps between ±2 around a centre: control, without a jump nothing is taken away."""
    ends = {"lr": np.array([0.5, 1.0, 3.0]), "outcome": np.zeros(3), "centre_l1": np.array([4.0, 4.0, 5.0])}
    assert rates.growth(ends | {"l1": np.array([4.0, 4.0, 7.0])}, 1.0)["oscillation"] == pytest.approx(1 - 0.25 / 0.75)
    assert rates.growth(ends | {"l1": ends["centre_l1"]}, 1.0)["oscillation"] == 0
    assert rates.growth(ends | {"l1": ends["centre_l1"]}, 9.0) is None


@pytest.mark.parametrize("wrong", [GD(0.1), lambda lr: lr, lambda lr: Flow(1e-3), "adam"])
def test_bad_input(wrong):
    with pytest.raises(ArgumentError):
        Family.of(wrong)
