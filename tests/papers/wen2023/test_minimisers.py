"""Other minimisers, the modified SAM and escape: each claim on planted runs that hold it and on runs that fail it."""

import types

import numpy as np
import pytest

from steppe.papers.wen2023 import PAPER, escape, minimisers
from steppe.papers.wen2023.theory import generalising

LONG = {"n": 100, "d": 30, "data": "xor"}


def trained(network, row, accuracy, *, excess=0.01, epochs=20_000, stages=1, scale=1.0, **sizes):
    rows = [{"rho": 0.0, "label_noise": 0.0, "epochs": epochs // stages} | row] * stages
    spec = {"network": network, "stages": rows, "first_layer_scale": scale} | LONG | sizes
    final = {"test_accuracy": accuracy, "trace": 1 + excess, "least_trace": 1.0}
    return types.SimpleNamespace(spec=spec, result={"final": final, "trace_parts": {"gauss_newton": 1.0}, "bound": 1.0})


def three(noise, sam, *, layer_norm=0.95, **rest):
    rows = ({"rho": 0.05}, sam), ({"label_noise": 0.3}, noise), ({}, 1.0)
    runs = [trained("bias", row, accuracy, **rest) for _ in range(3) for row, accuracy in rows]
    return [*runs, trained("sim-ln", {"label_noise": 0.3}, layer_norm, **rest)]


def test_label_noise():
    check = minimisers.label_noise_generalises
    assert check(three(0.99, 0.7)).holds
    assert not check(three(0.7, 0.7)).holds  # a minimiser like 1-SAM
    assert not check(three(0.99, 0.7, excess=0.2)).holds  # one that is not at the flattest, as GD with weight decay
    assert not check(three(0.99, 0.7, layer_norm=0.8)).holds
    assert not check(three(0.99, 1.0)).holds
    assert check(three(0.8, 0.7, excess=0.5, epochs=500)).holds
    assert not check(three(0.6, 0.7, epochs=500)).holds


def algorithms(plain, decayed, small, *, excess=0.01, epochs=25_000, **sizes):
    row = {"rho": 0.05}
    return [
        run
        for _ in range(3)
        for run in (
            trained("bias", row, plain, epochs=epochs, **sizes),
            trained("bias", row, decayed, epochs=epochs, stages=2, excess=excess, **sizes),
            trained("bias", row, small, epochs=epochs, scale=0.1, excess=excess, **sizes),
        )
    ]


@pytest.mark.parametrize("id", ["question3-bias-decay", "question3-small-start"])
def test_modified_sam(id):
    check = PAPER.find_claim(id).check
    assert check(algorithms(0.8, 0.95, 0.95)).holds
    assert not check(algorithms(0.8, 0.8, 0.8)).holds  # no better than 1-SAM
    assert not check(algorithms(0.8, 0.95, 0.95, excess=0.2)).holds  # not at the flattest
    assert not check(algorithms(1.0, 1.0, 1.0)).holds  # nothing to gain
    other = algorithms(0.9, 0.95, 0.95) + algorithms(0.9, 0.9, 0.9, d=20, n=70)
    assert not check(other).holds
    mixture = algorithms(0.8, 0.95, 0.95) + algorithms(0.9, 0.8, 0.8, data="mixture")
    finding = check(mixture)
    assert finding.holds
    assert "Gaussian mixture: 0.800 against 0.900" in finding.detail


def test_the_data_sets_are_told_apart():
    paper = PAPER.find_figure("question3").runs["paper"]
    labels = {minimisers.data_set({"data": e.data, "d": e.d, "n": e.n}) for e in paper}
    assert labels == set(minimisers.DATA)


def escaped(network, start, radius, *, sharing, outcome="exhausted"):
    epochs = np.array([0.0, 10.0, 100.0])
    return types.SimpleNamespace(
        spec={"network": network, "start": start, "radius": radius, "n": 100, "epochs": 100},
        curves={"epoch": epochs, "sharing": np.array(sharing)},
        result={"outcome": outcome, "final": {"test_accuracy": 0.0}},
    )


STAYS, LEAVES, RIGHT = [0.01, 0.02, 0.03], [0.01, 0.02, 0.2], [0.25, 0.24, 0.26]


def pair(network, memorising, general=RIGHT, **rest):
    return [
        escaped(network, start, radius, sharing=sharing, **rest)
        for radius in (0.001, 0.01)
        for start, sharing in (("memorising", memorising), ("generalising", general))
    ]


def test_escape():
    assert escape.left(pair("bias", LEAVES)[0]) == 100
    assert escape.left(pair("bias", STAYS)[0]) is None
    assert escape.left(pair("bias", STAYS, [0.25, 0.04, 0.2])[1]) == 10
    leaves, stays = escape.layer_norm_leaves, escape.bias_stays
    assert leaves(pair("sim-ln", LEAVES)).holds
    assert not leaves(pair("sim-ln", STAYS)).holds
    assert not leaves(pair("sim-ln", LEAVES, [0.25, 0.01, 0.01])).holds  # leaves the net that generalises too
    assert stays(pair("bias", STAYS)).holds
    assert not stays(pair("bias", LEAVES)).holds
    assert not stays(pair("bias", STAYS, outcome="diverged")).holds  # nothing is stable: nothing is shown


@pytest.mark.parametrize("network", ["bias", "sim-ln"])
@pytest.mark.parametrize("start", ["memorising", "generalising"])
def test_both_starts_are_flattest_and_equally_wide(network, start):
    """Outputs and ‖∇f‖² by hand: 4√(d + 1) with bias, 2 with LayerNorm, where ‖(W₁, b₁)‖ = 10 leaves W₁ a share."""
    x = np.unique(np.sign(np.random.default_rng(0).normal(size=(60, 8))), axis=0)[:40]
    y = x[:, 0] * x[:, 1]
    params = escape.flattest(network, start, x, y)
    assert len(params["W2"]) == 40
    a = np.maximum(x @ params["W1"].T + params["b1"], 0)
    length = np.linalg.norm(a, axis=1, keepdims=True) if network == "sim-ln" else np.ones((len(x), 1))
    f = a / length @ params["W2"]
    np.testing.assert_allclose(f, y, atol=1e-12)
    unit = a / length
    back = np.where(a > 0, params["W2"] / length - (network == "sim-ln") * f[:, None] * unit / length, 0)
    squares = np.sum(unit**2, axis=1) + 9 * np.sum(back**2, axis=1)
    assert 2 * squares.mean() == pytest.approx(2 if network == "sim-ln" else 12, rel=1e-9)
    assert (generalising.xor(8)["W2"] != 0).all()


def test_an_escape_run_records_the_gauss_newton_trace():
    run = escape.Escape("bias", "generalising", 0.001, d=6, n=16, epochs=2, noise=0.0, spare=4).compute()
    assert run.curves["trace"][0] == pytest.approx(4 * np.sqrt(7), rel=1e-4)
    assert run.curves["test_accuracy"][0] == 1
    assert run.curves["train_loss"][0] < 1e-10
