"""Products with the Hessian, Gauss-Newton and Fisher matrices, against dense ones that use nothing of steppe."""

from itertools import pairwise

import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError
from steppe.curvature import empirical_fisher, fisher, gauss_newton, hessian, residual

torch = pytest.importorskip("torch")
nn = torch.nn
from cases.torch_nets import NETS, dense_hessian, net  # noqa: E402

from steppe.torch._checked import forward_over_reverse  # noqa: E402
from steppe.torch._products import loss  # noqa: E402

CROSS = nn.CrossEntropyLoss()
# Sums of at most some hundred terms through a few layers, in double precision.
ROUNDING = 1e-11


def problem(name, *, loss=CROSS, **options):
    model, data = net(name, **options)
    return model, data, steppe.torch.Problem(model, data, loss)


def near(a, b, within=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=within * np.abs(b).max())


MODES = [(name, True) for name in NETS] + [("cnn", False), ("resnet", False), ("vit", False)]


@pytest.mark.parametrize(("name", "training"), MODES)
def test_the_hessian_of_every_network(name, training):
    model, data, p = problem(name, training=training)
    # The dense Hessian cannot look through a checkpoint that is differentiated once.
    plain = net("checkpoint", training=training)[0] if name == "reentrant" else model
    near(hessian(p).dense(), dense_hessian(plain, data, CROSS))


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "lstm"])
def test_float32_is_float64_up_to_rounding(name):
    _, _, wide = problem(name)
    _, _, p = problem(name, dtype=torch.float32)
    v = np.random.default_rng(0).normal(size=p.w0.size)
    found = hessian(p)(v)
    assert found.dtype == np.float32
    # The data and parameters are rounded too; a thousand operations of 16 ulp.
    near(found, hessian(wide)(v), 1e3 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "lstm"])
def test_gauss_newton_and_residual_add_up(name):
    _, _, p = problem(name)
    g, r = gauss_newton(p).dense(), residual(p).dense()
    near(g + r, hessian(p).dense())
    # Positive semi-definite, up to rounding, and not the whole Hessian.
    assert np.linalg.eigvalsh(g)[0] > -ROUNDING * np.abs(g).max()
    assert np.abs(r).max() > 1e-3 * np.abs(g).max()


def jacobian(model, x):
    names = [n for n, _ in model.named_parameters()]

    def outputs(*params):
        return torch.func.functional_call(model, dict(zip(names, params, strict=True)), (x,))

    found = torch.autograd.functional.jacobian(outputs, tuple(p.detach() for p in model.parameters()))
    return torch.cat([j.flatten(2) for j in found], -1)  # examples, outputs, parameters


def test_gauss_newton_and_fisher_from_the_jacobian():
    model, (x, y), p = problem("mlp")
    J, f = jacobian(model, x), model(x).detach()
    probability = f.softmax(-1)
    covariance = torch.diag_embed(probability) - probability[:, :, None] * probability[:, None]
    g = torch.einsum("nap,nab,nbq->pq", J, covariance, J).numpy() / len(x)
    near(gauss_newton(p).dense(), g)
    near(fisher(p).dense(), g)
    slopes = torch.einsum("nap,na->np", J, probability - nn.functional.one_hot(y, 3)).numpy()
    near(empirical_fisher(p).dense(), slopes.T @ slopes / len(x))


def test_the_empirical_fisher_matrix_with_ignored_targets_and_class_weights():
    model, (x, y) = net("mlp")
    y[:3] = -100
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    loss = nn.CrossEntropyLoss(weight=weights)
    p = steppe.torch.Problem(model, [(x[:4], y[:4]), (x[4:], y[4:])], loss)
    near(hessian(p).dense(), dense_hessian(model, (x, y), loss))
    slopes = torch.einsum(
        "nap,na->np", jacobian(model, x)[3:], model(x)[3:].softmax(-1) - nn.functional.one_hot(y[3:], 3)
    )
    share = weights[y[3:]] / weights[y[3:]].sum()
    near(empirical_fisher(p).dense(), torch.einsum("n,np,nq->pq", share, slopes, slopes).detach().numpy())


@pytest.mark.parametrize("memory", [1e4, 4e4, 1e6])
def test_any_memory_gives_the_same_product(memory):
    model, data, p = problem("mlp", n=130)
    found = hessian(p, memory=memory)
    # From nothing kept to everything kept.
    assert found.product.whole == (memory > 5e4)
    near(found.dense(), dense_hessian(model, data, CROSS))


def test_batches_of_a_network_with_batch_statistics_stay_whole():
    model, (x, y) = net("cnn", n=12)
    p = steppe.torch.Problem(model, [(x[:8], y[:8]), (x[8:], y[8:])], CROSS)
    parts = [dense_hessian(model, (x[s], y[s]), CROSS) for s in (slice(0, 8), slice(8, 12))]
    near(hessian(p, memory=1e4).dense(), (8 * parts[0] + 4 * parts[1]) / 12)


def test_another_loss_has_no_fisher_matrix():
    model, (x, _) = net("mlp")
    p = steppe.torch.Problem(model, (x, torch.zeros(10, 3, dtype=torch.float64)), nn.HuberLoss())
    with pytest.raises(ArgumentError, match=r"loss must be CrossEntropyLoss, .* take gauss_newton"):
        fisher(p)


class Once(torch.autograd.Function):
    """tanh with a derivative that has none."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(y := torch.tanh(x))
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y**2)


class Layer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function.apply(x)


def with_function(function, dtype=torch.float64):
    _, data = net("mlp", dtype=dtype)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).to(dtype)
    return nn.Sequential(plain[0], Layer(function), plain[2]), plain, data


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_differences_are_the_last_resort_and_say_their_error(dtype):
    model, plain, data = with_function(Once, dtype)
    p = steppe.torch.Problem(model, data, CROSS)
    operator, truth = hessian(p), dense_hessian(plain, data, CROSS)
    size = np.linalg.norm(truth, 2)
    assert 0 < operator.precision < 1e-4
    assert np.linalg.norm(operator.dense() - truth, 2) < (operator.precision + 16 * torch.finfo(dtype).eps) * size
    found = steppe.measures.sharpness(p)
    assert found.lower <= np.linalg.eigvalsh(truth)[-1] <= found.upper
    # The error of the products is part of the interval.
    assert found.upper - found.lower >= operator.precision * found.value


def test_every_matrix_by_differences():
    model, plain, data = with_function(Once)
    p, truth = (steppe.torch.Problem(each, data, CROSS) for each in (model, plain))
    v = np.random.default_rng(2).standard_normal(p.w0.size)
    for matrix in (gauss_newton, residual, fisher, empirical_fisher):
        ours, exact = matrix(p), matrix(truth)(v)
        assert 0 < ours.precision < 1e-4
        np.testing.assert_allclose(ours(v), exact, rtol=0, atol=1e-6 * np.linalg.norm(exact))
    np.testing.assert_allclose(steppe.measures.trace(p).value, steppe.measures.trace(truth).value, rtol=1e-6)


@pytest.mark.parametrize("mode", ["mean", "sum"])
@pytest.mark.parametrize("last", [False, True])
def test_bags_of_embeddings(mode, last):
    """PyTorch has no second derivative of them; ours, against rows that are added up by hand."""
    torch.manual_seed(3)
    bags = nn.EmbeddingBag(7, 3, mode=mode, padding_idx=2, include_last_offset=last).double()
    words, ends = torch.tensor([1, 2, 2, 5, 0, 6, 6]), [0, 2, 3, 7]
    offsets = torch.tensor(ends if last else ends[:-1])
    y = torch.tensor([0, 2, 1])
    p = steppe.torch.Problem(bags, [((words, offsets), y)], CROSS)

    class ByHand(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(bags.weight.detach().clone())

        def forward(self, words):
            found = []
            for a, b in pairwise(ends):
                kept = [self.weight[k] for k in words[a:b] if k != 2]
                row = sum(kept, torch.zeros(3).double())
                found.append(row / max(1, len(kept)) if mode == "mean" else row)
            return torch.stack(found)

    truth = dense_hessian(ByHand(), (words, y), CROSS)
    assert hessian(p).precision is None
    np.testing.assert_allclose(hessian(p).dense(), truth, rtol=0, atol=1e-14)


class Wrong(torch.autograd.Function):
    """tanh with a second derivative of twice its size."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = 1 - torch.tanh(x) ** 2
        return g * (2 * slope - slope.detach())


class Straight(torch.autograd.Function):
    """Rounding with the derivative of the identity."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(4 * x) / 4

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("function", "trouble"),
    [
        (Wrong, "its second derivative disagrees with differences of gradients"),
        (Straight, "its gradient is not the slope of the loss"),
    ],
)
def test_a_wrong_derivative_is_refused_and_located(function, trouble, dtype):
    model, _, data = with_function(function, dtype)
    with pytest.raises(ArgumentError, match=rf"parameter '0\.\w+': {trouble}"):
        steppe.measures.sharpness(steppe.torch.Problem(model, data, CROSS))


def test_a_second_mode_of_autodiff():
    """The check that it passes is no check if it is left out."""
    _, _, p = problem("mlp")
    v = np.random.default_rng(0).normal(size=p.w0.size)
    near(forward_over_reverse(p, p.w0, loss, v), hessian(p)(v))


def test_the_product_is_checked_once():
    _, _, p = problem("mlp")
    calls = []
    original = p.network.__class__.__call__

    class Counted(p.network.__class__):
        def __call__(self, *args):
            calls.append(1)
            return original(self, *args)

    p.network.__class__ = Counted
    hessian(p)
    first = len(calls)
    calls.clear()
    hessian(p, 1.1 * p.w0)
    # One pass measures the memory, one builds the graph.
    assert len(calls) == 2 < first
