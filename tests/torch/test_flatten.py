"""steppe.flatten on torch modules: the value by dense autodiff, the same function, one number for all rescalings."""

import numpy as np
import pytest
import torch
from cases.torch_nets import GPT, ViT, cnn, resnet
from scipy.optimize import minimize
from torch import nn
from torch.func import functional_call, hessian, jacrev

import steppe
import steppe.torch
from steppe.check import ArgumentError
from steppe.flattening import rescaled
from steppe.flattening._network import network

IMAGES, WORDS = torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(18).reshape(3, 6) % 5


def depthwise():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU6(), nn.Conv2d(4, 4, 3, groups=4), nn.ReLU(), nn.Conv2d(4, 6, 1),
        nn.GroupNorm(2, 6), nn.Hardswish(), nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2), nn.LeakyReLU(),
        nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip


# Network, whether in training, inputs, widths of the layers by hand. In evaluation the running means are zero here, so
# that the weights in front of BatchNorm move too.
CASES = {
    "cnn": (cnn, False, IMAGES, [2, 3, 3]),
    "cnn in training": (cnn, True, IMAGES, [3]),
    "resnet": (resnet, False, IMAGES, [2] * 8),
    "resnet in training": (resnet, True, IMAGES, [2, 2, 2]),
    "gpt": (GPT, False, WORDS, [4, 8]),
    "vit": (ViT, False, IMAGES, [8, 4]),
    "depthwise": (depthwise, False, IMAGES, [4, 4]),
}


def problem(name, loss=None, dtype=torch.float64):
    made, training, x, _ = CASES[name]
    torch.manual_seed(1)
    model = made().to(dtype).train(training)
    x = x.to(dtype) if x.is_floating_point() else x
    with torch.no_grad():
        f = model(x)
    labels = torch.arange(f.numel() // f.shape[1]).reshape(len(f), *f.shape[2:]) % f.shape[1]
    data = (x, labels) if loss is None else (x, torch.ones_like(f))
    return steppe.torch.Problem(model, data, loss or nn.CrossEntropyLoss())


def predictions(p, w):
    with p.at(p.network.leaves(np.asarray(w, p.w0.dtype))), torch.no_grad():
        return p.outputs(p.batches.first()).numpy()


def matrix(p, w, loss):
    """JᵀHJ by Jacobians of module and loss."""
    batch, model = p.batches.first(), p.network.copy
    buffers = {name: b.clone() for name, b in model.named_buffers()}

    def outputs(params):
        return functional_call(model, (params, {k: b + 0 for k, b in buffers.items()}), batch.args)

    params = {k: v.clone() for k, v in p.unravel(w).items()}
    f = outputs(params).detach()
    J = jacrev(outputs)(params)
    J = torch.cat([a.reshape(f.numel(), -1) for a in J.values()], 1)
    H = hessian(lambda g: loss(g, batch.target))(f).reshape(f.numel(), f.numel())
    return (J.T @ H @ J).numpy()


def diagonal(p, w, loss):
    return np.diag(matrix(p, w, loss))


@pytest.mark.parametrize("name", CASES)
def test_found_groups(name):
    p = problem(name)
    layers = network(p).symmetries().layers
    assert [len(layer) for layer in layers] == CASES[name][-1]
    f, rng = predictions(p, p.w0), np.random.default_rng(0)
    w = rescaled(p, p.w0, layers, [10.0 ** rng.uniform(-3, 3, len(layer)) for layer in layers])
    np.testing.assert_allclose(predictions(p, w), f, rtol=0, atol=1e-12 * np.max(np.abs(f)))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of the oracle
@pytest.mark.parametrize("name", ["cnn", "gpt"])
def test_laws(name):
    p, loss = problem(name), nn.CrossEntropyLoss()
    best = steppe.flatten(p)
    c = diagonal(p, p.w0, loss)
    assert best.before == pytest.approx(c.sum(), rel=1e-10)
    assert best.value == pytest.approx(diagonal(p, best.w, loss).sum(), rel=1e-10)
    assert best.gap < 1e-12
    A = network(p).arrays.exponents(best.layers)[0].matrix()
    found = minimize(lambda t: np.log(np.sum(c * np.exp(-2 * (A @ t)))), np.zeros(A.shape[1]), method="BFGS")
    assert best.lower <= np.exp(found.fun) * (1 + 1e-12)
    assert np.exp(found.fun) == pytest.approx(best.value, rel=1e-6)
    rng = np.random.default_rng(0)
    scales = [10.0 ** rng.uniform(-3, 3, len(layer)) for layer in best.layers]
    again = steppe.flatten(p, rescaled(p, p.w0, best.layers, scales))
    assert again.before > 100 * best.before
    assert again.value == pytest.approx(best.value, rel=1e-9)


def test_losses_and_batch_statistics():
    """A mean over outputs, a loss of one's own, and examples that see each other."""
    for loss in (nn.MSELoss(), lambda f, y: torch.cosh(f - y).mean()):
        p = problem("cnn in training", loss)
        best = steppe.flatten(p)
        if isinstance(loss, nn.Module):
            assert best.before == pytest.approx(diagonal(p, p.w0, loss).sum(), rel=1e-10)
            assert best.value == pytest.approx(diagonal(p, best.w, loss).sum(), rel=1e-10)
    with pytest.raises(ArgumentError, match="convex in the outputs"):
        steppe.flatten(problem("cnn", lambda f, y: torch.sin(f).mean()))


def test_single_precision():
    """Within the rounding of sums of some dozens of squares; the function moves by the rounding of its parameters."""
    p, exact = problem("gpt", dtype=torch.float32), steppe.flatten(problem("gpt"))
    best = steppe.flatten(p)
    assert best.w.dtype == np.float32
    assert best.value == pytest.approx(exact.value, rel=1e-4)
    f = predictions(p, p.w0)
    np.testing.assert_allclose(predictions(p, best.w), f, rtol=0, atol=1e-5 * np.max(np.abs(f)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_signs(seed):
    """Within four standard errors of the exact value at the same w; the bounds hold."""
    p = problem("cnn")
    exact = steppe.flatten(p)
    best = steppe.flatten(p, draws=100, key=seed)
    there = diagonal(p, best.w, nn.CrossEntropyLoss()).sum()
    assert abs(best.value - there) < 4 * best.error
    assert best.lower <= exact.value <= there * (1 + 1e-12)
    assert best.upper >= there
    assert there < exact.before
    assert best.confidence == 0.99


def test_sharpness():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    x = torch.randn(6, 3, dtype=torch.float64)
    p = steppe.torch.Problem(model, (x, torch.zeros(6, 2, dtype=torch.float64)), nn.MSELoss())
    best = steppe.flatten(p, measure="sharpness")
    assert best.gap <= 1e-6
    assert best.value == pytest.approx(np.linalg.eigvalsh(matrix(p, best.w, nn.MSELoss()))[-1], rel=1e-10)


def test_refused():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    p = steppe.torch.Problem(model, (torch.randn(5, 3), torch.zeros(5, 2)), nn.MSELoss())
    with pytest.raises(ArgumentError, match=r"neurons of 0.weight are rescaled"):
        steppe.flatten(p)
    with pytest.raises(ArgumentError, match="draws must be"):
        steppe.flatten(p, draws=2)
    with pytest.raises(ArgumentError, match="Random signs estimate the trace"):
        steppe.flatten(p, draws=9, measure="sharpness")
