"""The audit of a torch module: the numbers of the JAX audit at the same parameters, its optimisers, its checkpoints."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import steppe.torch  # noqa: E402
from steppe import losses  # noqa: E402
from steppe.auditing import at  # noqa: E402
from steppe.auditing._edge import edge_of  # noqa: E402
from steppe.networks import OneHidden  # noqa: E402

nn = torch.nn


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()


def data(n=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


@pytest.fixture(scope="module")
def both():
    """(the audit of a module, that of the same network in JAX)."""
    model, (x, y) = module(), data()
    found = steppe.audit(model, (torch.from_numpy(x), torch.from_numpy(y)), nn.CrossEntropyLoss())
    W1, b1, W2, b2 = (p.detach().numpy() for p in model.parameters())
    params = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
    return found, steppe.audit(steppe.Problem(OneHidden(), params, x, y, losses.cross_entropy))


def test_the_same_numbers_as_in_jax(both):
    ours, theirs = both
    exact = (
        "loss", "gradient_norm", "trace", "trace_gauss_newton", "trace_residual", "norm_l2", "norm_l1", "rise_8_bits",
        "rise_4_bits", "rise_4_bits_predicted",
    )  # fmt: skip
    for name in exact:
        assert ours.estimates[name].value == pytest.approx(theirs.estimates[name].value, rel=1e-9, abs=1e-12), name
    for name in ("sharpness", "smallest_eigenvalue", "sharpness_gauss_newton", "norm_residual", "critical_sharpness"):
        a, b = ours.estimates[name], theirs.estimates[name]
        assert a.lower <= b.upper, name
        assert b.lower <= a.upper, name
    names = {"0.weight": "W1", "0.bias": "b1", "2.weight": "W2", "2.bias": "b2"}
    blocks = {block.name: block for block in theirs.blocks}
    for block in ours.blocks:
        if block.name in names:
            assert block.trace.value == pytest.approx(blocks[names[block.name]].trace.value, rel=1e-9, abs=1e-12)
    assert {"0", "2"} <= {block.name for block in ours.blocks}
    assert "not searched" in ours.missing["kinks"]


def test_the_spread_over_examples_is_found(both):
    """The groups differ, the spread is of the same size: two estimates from 16 groups are within a factor of 2.5."""
    for name in ("loss", "sharpness"):
        a, b = (found.errors[name]["data"] for found in both)
        assert 0.4 < a / b < 2.5


def test_the_model_is_as_before():
    model, (x, y) = module(), data(4)
    before = copy.deepcopy(model.state_dict())
    model.train()
    model[0].weight.grad = torch.ones_like(model[0].weight)
    steppe.audit(model, (torch.from_numpy(x), torch.from_numpy(y)), nn.CrossEntropyLoss(), seconds=0.5)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True))
    assert model.training
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"lr": 0.1}, 20.0),
        ({"lr": 0.1, "momentum": 0.9}, 38.0),
        ({"lr": 0.1, "momentum": 0.9, "nesterov": True}, 38 / 2.8),
    ],
)
def test_the_edge_of_sgd(options, limit):
    """On a quadratic of that curvature the optimiser neither grows nor decays: a little less decays, more grows."""
    w = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    edge = edge_of(torch.optim.SGD([w], **options), np.asarray)
    assert edge.limit(0.0) == pytest.approx(limit)
    assert edge.lr == (0.1 if limit == 20.0 else None)
    sizes = []
    for ratio in (0.97, 1.03):
        w = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        optimizer, curvature = torch.optim.SGD([w], **options), ratio * limit
        for _ in range(2000):
            optimizer.zero_grad()
            (0.5 * curvature * w**2).sum().backward()
            optimizer.step()
        sizes.append(float(w.detach().abs()))
    assert sizes[0] < 1e-3
    assert sizes[1] > 1e3


def test_the_edge_of_adam_is_that_of_its_frozen_preconditioner():
    """At λ(P⁻¹H) = 38/η the momentum of β₁ = 0.9 neither grows nor decays."""
    nu = np.array([4.0, 0.25])
    for ratio, grows in ((0.97, False), (1.03, True)):
        adam = steppe.auditing.Adam(0.01, nu, eps=1e-8)
        edge = edge_of(adam, np.asarray)
        H = ratio * edge.limit(0.0) * np.array([1.0, 0.1]) * np.sqrt(nu)
        assert (edge.scales**2 * H).max() == pytest.approx(ratio * edge.limit(0.0))
        w, m = np.ones(2), np.zeros(2)
        for _ in range(300):
            m = 0.9 * m + 0.1 * H * w
            w = w - 0.01 * m / (np.sqrt(nu) + 1e-8)
        assert (np.abs(w[0]) > 1) == grows


def test_adam_of_torch_brings_its_second_moments():
    model, (x, y) = module(), data()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    problem = steppe.torch.Problem(model, (x, y), nn.CrossEntropyLoss())
    edge = edge_of(optimizer, problem.vector, dict(model.named_parameters()))
    nu = torch.cat([optimizer.state[p]["exp_avg_sq"].ravel() for p in model.parameters()]) / (1 - 0.999**5)
    preconditioner = (1 - 0.9**5) * (nu.sqrt().numpy() + 1e-8)
    np.testing.assert_allclose(edge.scales, preconditioner**-0.5, rtol=1e-12)
    assert edge.limit(0.0) == pytest.approx(3800.0)
    # Two parameter groups: the second moves twice as far.
    groups = [{"params": list(model[0].parameters())}, {"params": list(model[2].parameters()), "lr": 0.2}]
    edge = edge_of(torch.optim.SGD(groups, lr=0.1), problem.vector, dict(model.named_parameters()))
    np.testing.assert_allclose(edge.scales, [1.0] * 16 + [2**0.5] * 10)
    with pytest.raises(ValueError, match="has made steps"):
        edge_of(torch.optim.Adam(model.parameters()), problem.vector, dict(model.named_parameters()))
    with pytest.raises(ValueError, match="all parameters that are audited"):
        edge_of(torch.optim.SGD(module().parameters()), problem.vector, dict(model.named_parameters()))
    with pytest.raises(ValueError, match="given with the module"):
        edge_of(optimizer, problem.vector)
    with pytest.raises(ValueError, match="one whose edge is known"):
        edge_of(torch.optim.Adagrad(model.parameters()), problem.vector)


@pytest.mark.parametrize("kind", ["pt", "nested.pt", "wrapped.pt", "safetensors"])
def test_checkpoints_bring_buffers_too(tmp_path, kind):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight += 1.0
        other[1].running_mean += 2.0
    path, state = tmp_path / f"weights.{kind}", other.state_dict()
    if kind == "safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    elif kind == "nested.pt":
        torch.save({"state_dict": state, "epoch": 3}, path)
    else:
        torch.save({f"module.{name}": t for name, t in state.items()} if kind == "wrapped.pt" else state, path)
    loaded, w = at(model, path)
    assert w is None
    assert all(torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), state.values(), strict=True))
    assert not torch.equal(model[0].weight, other[0].weight)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    torch.save({"0.weight": torch.ones(2, 2)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="the weights of this model"):
        at(module(), tmp_path / "other.pt")
    x, y = data(4)
    problem = steppe.torch.Problem(module(), (torch.from_numpy(x), torch.from_numpy(y)), nn.CrossEntropyLoss())
    torch.save(module().state_dict() | {"extra": torch.ones(1)}, tmp_path / "extra.pt")
    with pytest.raises(ValueError, match="no others"):
        at(problem, tmp_path / "extra.pt")
    torch.save(module().state_dict(), tmp_path / "right.pt")
    np.testing.assert_array_equal(at(problem, tmp_path / "right.pt")[1], problem.w0)
