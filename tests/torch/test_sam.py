"""SAM around torch's optimisers: the formula by numpy and by JAX, and everything that a training loop does besides."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import steppe
from steppe.check import ArgumentError
from steppe.torch import SAM

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 4)), RNG.normal(size=10)
W0 = RNG.normal(size=4)


def loss(w, x=X, y=Y):
    return 0.5 * ((torch.as_tensor(x) @ w - torch.as_tensor(y)) ** 2).mean()


def backward(value):
    value.backward()
    return value


def weights(values=W0):
    return torch.nn.Parameter(torch.tensor(np.asarray(values)))


def gradient(w, x=X, y=Y):
    return x.T @ (x @ w - y) / len(y)


def perturbation(g, w, rho, *, adaptive=False, eta=0.01):
    T = np.abs(w) + eta if adaptive else np.ones_like(w)
    return rho * T**2 * g / np.linalg.norm(T * g)


def net(*, norm=False, seed=0):
    torch.manual_seed(seed)
    layers = [
        torch.nn.Linear(4, 6),
        *([torch.nn.BatchNorm1d(6)] if norm else []),
        torch.nn.Tanh(),
        torch.nn.Linear(6, 1),
    ]
    return torch.nn.Sequential(*layers).double()


DATA = torch.tensor(X), torch.tensor(Y)[:, None]


def closure(model, data=DATA, share=1.0):
    return lambda: backward(share * torch.nn.functional.mse_loss(model(data[0]), data[1]))


def flat(model):
    return torch.cat([t.detach().double().ravel() for t in model.state_dict().values()]).numpy()


# The formula.


@pytest.mark.parametrize("adaptive", [False, True])
def test_many_steps_by_numpy(adaptive):
    """Momentum and weight decay are those of the base optimiser."""
    w, expected, v = weights(), W0.copy(), 0.0
    sam = SAM(torch.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.01), 0.3, adaptive=adaptive)
    for _ in range(50):
        found = sam.step(lambda: backward(loss(w)))
        assert found.item() == pytest.approx(0.5 * ((X @ expected - Y) ** 2).mean(), rel=1e-12)
        e = perturbation(gradient(expected), expected, 0.3, adaptive=adaptive)
        v = 0.9 * v + gradient(expected + e) + 0.01 * expected
        expected = expected - 0.1 * v
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-12)  # 50 steps of rounding


def test_equals_the_dynamics_of_jax():
    model = net()
    params = [jnp.asarray(p.detach().numpy()) for p in model.parameters()]

    def predict(params, x):
        W1, b1, W2, b2 = params
        return jnp.tanh(x @ W1.T + b1[None]) @ W2.T + b2[None]

    problem = steppe.Problem(predict, params, X, Y[:, None], steppe.losses.mse)
    run = steppe.run(problem, steppe.dynamics.SAM(0.1, 0.2, None), stop=steppe.until.steps(30))
    sam = SAM(torch.optim.SGD(model.parameters(), lr=0.1), 0.2)
    for _ in range(30):
        sam.step(closure(model))
    np.testing.assert_allclose(
        np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]), run.w, rtol=1e-11
    )


def test_two_passes_by_hand_are_the_closure():
    one, two = net(), net()
    a, b = (SAM(torch.optim.AdamW(m.parameters(), lr=0.01), 0.1) for m in (one, two))
    for _ in range(5):
        a.step(closure(one))
        closure(two)()
        b.first_step(zero_grad=True)
        closure(two)()
        b.second_step(zero_grad=True)
    np.testing.assert_array_equal(flat(one), flat(two))
    assert all(p.grad is None for p in two.parameters())


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 1e-200])
def test_the_size_of_the_gradient_does_not_matter(scale):
    """Its squares underflow or overflow."""
    w = weights()
    sam = SAM(torch.optim.SGD([w], lr=0.0), 0.1)
    (scale * loss(w)).backward()
    sam.first_step()
    np.testing.assert_allclose(w.detach().numpy(), W0 + perturbation(gradient(W0), W0, 0.1), rtol=1e-13)
    tiny = torch.nn.Parameter(torch.ones(3))
    tiny.grad = torch.full((3,), 1e-30)
    SAM(torch.optim.SGD([tiny], lr=0.0), 3**0.5).first_step()
    np.testing.assert_allclose(tiny.detach(), 2.0, rtol=1e-6)  # single precision


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_no_gradient_and_an_overflow_give_no_perturbation(bad):
    w = torch.nn.Parameter(torch.ones(3))
    sam = SAM(torch.optim.SGD([w], lr=0.1), 0.05, adaptive=True)
    w.grad = torch.full((3,), bad)
    sam.first_step()
    assert w.tolist() == [1.0] * 3
    w.grad = torch.zeros(3)
    sam.step()
    assert w.tolist() == [1.0] * 3


def test_m_sam_is_the_mean_over_its_parts():
    w, parts = weights(), [slice(0, 4), slice(4, 8), slice(8, 10)]
    sam = SAM(torch.optim.SGD([w], lr=0.5), 0.2)
    expected = 0.0
    for part in parts:
        x, y = X[part], Y[part]
        e = perturbation(gradient(W0, x, y), W0, 0.2)
        expected = expected + gradient(W0 + e, x, y) * len(y) / len(Y)
        # With zero_grad in the closure, as torch's closures have it.
        sam.accumulate(lambda x=x, y=y: (sam.zero_grad(), backward(len(y) / len(Y) * loss(w, x, y)))[1])
        np.testing.assert_array_equal(w.detach(), W0)
    sam.step()
    np.testing.assert_allclose(w.detach().numpy(), W0 - 0.5 * expected, rtol=1e-13)


def test_gradient_accumulation_is_the_full_batch():
    whole, parted = net(), net()
    a, b = (SAM(torch.optim.SGD(m.parameters(), lr=0.1), 0.3) for m in (whole, parted))
    parts = [tuple(t[part] for t in DATA) for part in (slice(0, 4), slice(4, 10))]
    for _ in range(5):
        a.step(closure(whole))
        for after in (b.first_step, b.step):
            for part in parts:
                closure(parted, part, len(part[0]) / 10)()
            after()
        b.zero_grad()
    np.testing.assert_allclose(flat(whole), flat(parted), rtol=1e-12)


# What else a loop does.


def test_batch_statistics_are_updated_once_and_at_w():
    model, plain = net(norm=True), net(norm=True)
    sam = SAM(torch.optim.SGD(model.parameters(), lr=0.0), 1.0)
    for _ in range(3):
        sam.step(closure(model))
        plain(DATA[0])
        for name, buffer in plain.named_buffers():
            np.testing.assert_array_equal(buffer, model.get_buffer(name))
    assert int(model[1].num_batches_tracked) == 3
    assert not torch.nn.modules.module._global_forward_pre_hooks  # noticed once, no hook left


@pytest.mark.parametrize("states_model", [False, True])
def test_batch_statistics_without_parameters_of_their_own(states_model):
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1, affine=False)).double()
    sam = SAM(torch.optim.SGD(model.parameters(), lr=0.1), 1.0, model=model if states_model else None)
    sam.step(closure(model))
    assert int(model[1].num_batches_tracked) == 1


def test_an_unused_sam_leaves_no_hook():
    sam = SAM(torch.optim.SGD([weights()], lr=0.1))
    assert torch.nn.modules.module._global_forward_pre_hooks
    del sam
    assert not torch.nn.modules.module._global_forward_pre_hooks


@pytest.mark.parametrize("of", [lambda sam: sam, lambda sam: sam.base], ids=["sam", "base"])
def test_a_scheduler_on_either_optimiser_moves_both(of):
    w = weights()
    sam = SAM(torch.optim.SGD([{"params": [w], "lr": 0.5}], lr=0.1), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(of(sam), step_size=1, gamma=0.1)
    sam.step(lambda: backward(loss(w)))
    schedule.step()
    assert sam.param_groups is sam.base.param_groups
    assert sam.param_groups[0]["lr"] == pytest.approx(0.05)
    before = w.detach().numpy().copy()
    sam.step(lambda: backward(loss(w)))
    e = perturbation(gradient(before), before, 0.1)
    np.testing.assert_allclose(w.detach().numpy(), before - 0.05 * gradient(before + e), rtol=1e-13)


def test_groups_have_their_own_radius():
    """A group with radius 0 stays, and its gradient is not in the norm."""
    a, b, c = weights([1.0, 2.0]), weights([3.0]), weights([5.0])
    sam = SAM(torch.optim.SGD([{"params": [a]}, {"params": [b], "sam_rho": 0.0}], lr=0.1), 0.1)
    sam.add_param_group({"params": [c], "sam_rho": 0.2, "sam_adaptive": True, "sam_eta": 1.0})
    backward((3 * a[0] + 4 * a[1] + 100 * b + 2 * c).sum())
    sam.first_step()
    norm = np.hypot(5.0, 6 * 2)  # T = 5 + 1
    np.testing.assert_allclose(a.detach(), [1 + 0.1 * 3 / norm, 2 + 0.1 * 4 / norm])
    np.testing.assert_allclose(c.detach(), [5 + 0.2 * 36 * 2 / norm])
    assert b.item() == 3.0


def test_parameters_without_a_gradient_stay():
    used, unused = weights(), weights()
    sam = SAM(torch.optim.SGD([unused, used], lr=0.1, weight_decay=1.0), 0.1)
    sam.step(lambda: backward(loss(used)))
    np.testing.assert_array_equal(unused.detach(), W0)
    assert unused.grad is None


def test_sparse_gradients():
    table = torch.nn.Embedding(5, 2, sparse=True)
    sam = SAM(torch.optim.SGD(table.parameters(), lr=0.1), 0.1)
    before = table.weight.detach().clone()
    sam.step(lambda: backward((table(torch.tensor([1, 3])) ** 2).sum()))
    moved = (table.weight != before).any(1)
    assert moved.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adadelta])
def test_resumes_to_the_bit(optimiser, tmp_path):
    """Killed after three steps of six; through a file that is read without executing code."""
    options = {"momentum": 0.9} if optimiser is torch.optim.SGD else {}

    def start():
        model = net(norm=True)
        return model, SAM(optimiser(model.parameters(), lr=0.05, **options), 0.1, adaptive=True)

    model, sam = start()
    for k in range(6):
        if k == 3:
            torch.save({"model": model.state_dict(), "sam": sam.state_dict()}, tmp_path / "checkpoint.pt")
        sam.step(closure(model))
    again, resumed = start()
    checkpoint = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    again.load_state_dict(checkpoint["model"])
    resumed.load_state_dict(checkpoint["sam"])
    for _ in range(3):
        resumed.step(closure(again))
    np.testing.assert_array_equal(flat(model), flat(again))


def test_a_checkpoint_of_the_bare_optimiser_loads():
    model = net()
    base = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    state = copy.deepcopy(base.state_dict())
    sam = SAM(base, 0.1)
    sam.load_state_dict(state)
    sam.step(closure(model))
    assert sam.param_groups[0]["sam_rho"] == 0.1


def test_a_copy_trains_as_the_original():
    model = net()
    sam = SAM(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), 0.1)
    sam.step(closure(model))
    other, twin = copy.deepcopy((model, sam))
    for m, s in ((model, sam), (other, twin)):
        s.step(closure(m))
    np.testing.assert_array_equal(flat(model), flat(other))


def test_amp_scales_both_passes():
    """A scale is a power of two: the scaled steps equal the plain ones to the bit."""
    plain, scaled = net(), net()
    a, b = (SAM(torch.optim.SGD(m.parameters(), lr=0.1), 0.1) for m in (plain, scaled))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for _ in range(3):
        a.step(closure(plain))
        for last in (False, True):
            scaler.scale(torch.nn.functional.mse_loss(scaled(DATA[0]), DATA[1])).backward()
            if not last:
                b.first_step()
        scaler.step(b)
        scaler.update()
        b.zero_grad()
    np.testing.assert_array_equal(flat(plain), flat(scaled))


def test_amp_with_clipping_and_a_closure():
    plain, scaled = net(), net()
    a, b = (SAM(torch.optim.SGD(m.parameters(), lr=0.1), 0.1) for m in (plain, scaled))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for _ in range(2):
        for model, sam, scale in ((plain, a, lambda value: value), (scaled, b, scaler.scale)):
            sam.zero_grad()
            sam.accumulate(lambda m=model, s=scale: backward(s(torch.nn.functional.mse_loss(m(DATA[0]), DATA[1]))))
        scaler.unscale_(b)
        for model in (plain, scaled):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        a.step()
        scaler.step(b)
        scaler.update()
    np.testing.assert_array_equal(flat(plain), flat(scaled))


@pytest.mark.parametrize("where", [0, 1])
def test_an_overflow_under_amp_skips_the_step_and_returns_to_w(where):
    w = weights()
    sam = SAM(torch.optim.SGD([w], lr=0.1), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for k in range(2):
        scaler.scale(loss(w) * (np.inf if k >= where else 1.0)).backward()
        if k == 0:
            sam.first_step()
    scaler.step(sam)
    scaler.update()
    np.testing.assert_array_equal(w.detach(), W0)
    assert scaler.get_scale() == 4.0
    sam.zero_grad()
    sam.step(lambda: backward(loss(w)))  # and the next one goes on
    assert (w.detach().numpy() != W0).all()


def test_autocast():
    """In bfloat16 the gradients are off by its rounding, 2⁻⁸, and the parameters stay float32. autocast keeps copies of
    the weights: those at w must not serve the second pass, nor those at w + e the next step."""
    exact, rounded = net().float(), net().float()
    data = tuple(t.float() for t in DATA)
    for model, on in ((exact, False), (rounded, True)):
        sam = SAM(torch.optim.SGD(model.parameters(), lr=0.1), 0.1)
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            for _ in range(3):
                sam.step(closure(model, data))
    assert next(rounded.parameters()).dtype == torch.float32
    np.testing.assert_allclose(flat(exact), flat(rounded), atol=3 * 2**-8)
    assert (flat(exact) != flat(rounded)).any()


def test_half_precision_parameters():
    w = torch.nn.Parameter(torch.ones(1000, dtype=torch.bfloat16))
    sam = SAM(torch.optim.SGD([w], lr=0.0), 10.0)
    w.grad = torch.ones_like(w)
    sam.first_step()
    # ρ/√1000 = 0.316; a sum in bfloat16 would stop at 256.
    assert w[0].item() == pytest.approx(1 + 10 / 1000**0.5, rel=2**-8)


def test_an_exception_in_the_second_pass_returns_to_w():
    w, calls = weights(), []

    def broken():
        calls.append(w.detach().clone())
        if len(calls) == 2:
            raise KeyboardInterrupt
        return backward(loss(w))

    sam = SAM(torch.optim.SGD([w], lr=0.1), 0.1)
    with pytest.raises(KeyboardInterrupt):
        sam.step(broken)
    assert (calls[1] != calls[0]).all()
    np.testing.assert_array_equal(w.detach(), W0)


def test_step_hooks_see_the_whole_step():
    w, seen = weights(), []
    sam = SAM(torch.optim.SGD([w], lr=0.1), 0.1)
    for register in (sam.register_step_pre_hook, sam.register_step_post_hook):
        register(lambda *_: seen.append(w.detach().clone()))
    sam.step(lambda: backward(loss(w)))
    np.testing.assert_array_equal(seen[0], W0)
    np.testing.assert_array_equal(seen[1], w.detach())


def test_ddp_on_two_processes(tmp_path):
    """Both averaged: SAM on all data. The first one local: m-SAM on two halves. The processes stay equal."""
    torch.save((torch.tensor(X), torch.tensor(Y)[:, None], torch.tensor(W0)[None]), tmp_path / "start.pt")
    file = Path(__file__).with_name("ddp_worker.py")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(Path(steppe.__file__).parents[1])}
    both = [subprocess.Popen([sys.executable, str(file), rank, str(tmp_path)], env=environment) for rank in "01"]
    assert [one.wait(timeout=120) for one in both] == [0, 0]
    first, second = (torch.load(tmp_path / f"result-{rank}.pt") for rank in range(2))
    for local, parts in ((False, [slice(0, 10)]), (True, [slice(0, 5), slice(5, 10)])):
        np.testing.assert_array_equal(first[local], second[local])
        w = W0.copy()
        for _ in range(3):
            shifted = [(w + perturbation(gradient(w, X[i], Y[i]), w, 0.3), i) for i in parts]
            w = w - 0.1 * np.mean([gradient(v, X[i], Y[i]) for v, i in shifted], axis=0)
        np.testing.assert_allclose(first[local].numpy().ravel(), w, rtol=1e-12)


# What is refused.


def test_a_step_without_a_second_gradient_is_refused():
    w = weights()
    sam = SAM(torch.optim.SGD([w], lr=0.1))
    backward(loss(w))
    with pytest.raises(ArgumentError, match=r"gradient at two points.*step\(closure\)"):
        sam.step()
    sam.first_step()
    for call in (sam.first_step, sam.state_dict, lambda: sam.step(lambda: None), lambda: copy.deepcopy(sam)):
        with pytest.raises(ArgumentError, match=r"came between first_step and step"):
            call()


def test_a_closure_without_backward_is_refused():
    w = weights()
    with pytest.raises(ArgumentError, match=r"no parameter has one.*backward"):
        SAM(torch.optim.SGD([w], lr=0.1)).step(lambda: loss(w))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.optim.SGD,), r"base must be an optimiser of torch.*SAM\(torch.optim.SGD\(model.parameters\(\)"),
        ((torch.optim.SGD([torch.ones(1)], lr=0.1), -1.0), "rho must be a finite number ≥ 0"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        SAM(*arguments)
