"""A torch problem: its data in every form, its parameters, and a model that stays as it was."""

import contextlib
import copy
import random

import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError

torch = pytest.importorskip("torch")
from cases.torch_nets import NETS, dense_hessian, net  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

Problem = steppe.torch.Problem
CROSS = nn.CrossEntropyLoss()
# Sums of a few hundred terms in double precision.
CLOSE = {"rtol": 1e-11, "atol": 1e-13}


def top(model, data, loss=CROSS):
    return np.linalg.eigvalsh(dense_hessian(model, data, loss))[-1]


def inside(estimate, truth):
    return estimate.lower <= truth <= estimate.upper


# The contract.


def test_the_contract_of_a_problem():
    model, (x, y) = net("mlp")
    p = Problem(model, (x, y), CROSS)
    assert len(p) == 10
    assert p.x is x
    assert p.y is y
    assert p.w0.dtype == np.float64
    parts = p.unravel(p.w0)
    assert list(parts) == [name for name, _ in model.named_parameters()]
    assert all(torch.equal(parts[name], value) for name, value in model.named_parameters())
    each = nn.functional.cross_entropy(model(x), y, reduction="none").detach().numpy()
    np.testing.assert_allclose(p.loss(p.w0), each.mean(), **CLOSE)
    np.testing.assert_allclose([p.example_loss(p.w0, i) for i in range(10)], each, **CLOSE)
    np.testing.assert_allclose(steppe.measures.loss(p).value, each.mean(), **CLOSE)
    moved = {name: value.detach() + 1 for name, value in model.named_parameters()}
    np.testing.assert_array_equal(p.vector(moved), p.w0 + 1)
    np.testing.assert_array_equal(p.vector(torch.tensor(p.w0)), p.w0)
    with pytest.raises(AttributeError, match="frozen"):
        p.w0 = p.w0


def test_the_gradient():
    model, (x, y) = net("mlp")
    p = Problem(model, (x, y), CROSS)
    CROSS(model(x), y).backward()
    truth = torch.cat([q.grad.reshape(-1) for q in model.parameters()])
    np.testing.assert_allclose(p.gradient(p.w0), truth, **CLOSE)


def test_the_same_network_on_other_data():
    model, (x, y) = net("mlp", n=30)
    test = Problem(model, (x[:20], y[:20]), CROSS).on((x[20:], y[20:]))
    assert len(test) == 10
    np.testing.assert_allclose(test.loss(test.w0), CROSS(model(x[20:]), y[20:]).item(), **CLOSE)


# Data in every form.


def forms(x, y):
    data = TensorDataset(x, y)
    yield "tensors", (x, y)
    yield "ragged loader", DataLoader(data, batch_size=32)
    yield "shuffled", DataLoader(data, batch_size=32, shuffle=True)
    yield "shuffled by a generator", DataLoader(data, 32, shuffle=True, generator=torch.Generator().manual_seed(1))
    yield "incomplete batch dropped", DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    yield "all indices of a subset sampler", DataLoader(data, 32, sampler=SubsetRandomSampler(range(len(x))))
    yield "a batch sampler", DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 32, drop_last=True))
    yield "one process of three", DataLoader(data, 32, sampler=DistributedSampler(data, num_replicas=3, rank=1))
    yield "batches", [(x[k : k + 50], y[k : k + 50]) for k in range(0, len(x), 50)]


@pytest.mark.parametrize("form", range(9))
def test_the_exact_sharpness_whatever_the_form_of_the_data(form):
    """130 examples in batches of 32: a mean over batches would count the last two as much as 32."""
    model, data = net("mlp", n=130)
    _, given = list(forms(*data))[form]
    p = Problem(model, given, CROSS)
    np.testing.assert_allclose(p.loss(p.w0), CROSS(model(data[0]), data[1]).item(), **CLOSE)
    found = steppe.measures.sharpness(p)
    assert inside(found, top(model, data))
    assert found.upper - found.lower <= 1e-3 * found.value


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", [nn.CrossEntropyLoss, nn.MSELoss, lambda **how: nn.HuberLoss(delta=0.7, **how)])
def test_reductions(reduction, kind):
    loss = kind(reduction=reduction)
    model, (x, y) = net("mlp", n=13)
    if not isinstance(loss, nn.CrossEntropyLoss):
        y = nn.functional.one_hot(y, 3).double()
    p = Problem(model, DataLoader(TensorDataset(x, y), 4), loss)
    np.testing.assert_allclose(p.loss(p.w0), loss(model(x), y).item(), **CLOSE)
    np.testing.assert_allclose(p.example_loss(p.w0, 5), loss(model(x[5:6]), y[5:6]).item(), **CLOSE)


def test_the_reduction_of_a_function_is_measured():
    model, (x, y) = net("mlp", n=13)
    loader = DataLoader(TensorDataset(x, y), 4)
    for function in (
        nn.functional.cross_entropy,
        lambda f, y: nn.functional.cross_entropy(f, y),
        lambda f, y: nn.functional.cross_entropy(f, y, reduction="sum"),
        lambda f, y: -f.log_softmax(1)[range(len(y)), y].mean(),
    ):
        p = Problem(model, loader, function)
        np.testing.assert_allclose(p.loss(p.w0), function(model(x), y).item(), **CLOSE)


def words(f, y):
    """A mean over words: no mean over the examples, of which each has another number of words."""
    log_likelihood = f.log_softmax(1).gather(1, y[:, None])[:, 0]
    return -(log_likelihood * (y > 1)).sum() / (y > 1).sum()


def test_a_batch_whose_loss_is_no_mean_over_its_examples_is_never_cut():
    model, (x, y) = net("gpt", n=12)
    p = Problem(model, (x, y), words, memory=1e4)
    assert p.apart
    assert not p.alone
    np.testing.assert_allclose(p.loss(p.w0), words(model(x), y).item(), **CLOSE)
    np.testing.assert_allclose(
        steppe.curvature.hessian(p, memory=1e4).dense(), dense_hessian(model, (x, y), words), **CLOSE
    )


def test_examples_that_see_each_other_behind_a_layer_of_zeros():
    model, (x, y) = net("cnn")
    model[-1].weight.data.zero_()
    model[-1].bias.data.zero_()
    assert not Problem(model, (x, y), CROSS).alone


def test_a_sparse_embedding():
    model, data = net("gpt")
    truth = steppe.curvature.hessian(Problem(model, data, CROSS))(np.ones(Problem(model, data, CROSS).w0.size))
    model.tokens.sparse = model.positions.sparse = True
    p = Problem(model, data, CROSS)
    np.testing.assert_array_equal(steppe.curvature.hessian(p)(np.ones(p.w0.size)), truth)
    assert model.tokens.sparse


def test_ignored_targets_do_not_count():
    model, (x, y) = net("gpt", n=9)
    y = y.clone()
    y[2:, 3:] = -100
    y[5] = -100
    p = Problem(model, [(x[:2], y[:2]), (x[2:6], y[2:6]), (x[6:], y[6:])], CROSS)
    np.testing.assert_allclose(p.loss(p.w0), CROSS(model(x), y).item(), **CLOSE)


class Speaker(nn.Module):
    """A language model in the manner of transformers: it computes its own loss, over labels that are not −100."""

    def __init__(self, shift):
        super().__init__()
        self.shift, self.model = shift, net("gpt")[0]

    def forward(self, tokens, labels):
        logits = self.model(tokens)
        if self.shift:
            logits, labels = logits[:, :, :-1], labels[:, 1:]
        return Output(loss=CROSS(logits, labels))


@pytest.mark.parametrize("shift", [False, True])
def test_ignored_labels_behind_a_loss_of_the_model(shift):
    _, (x, y) = net("gpt", n=9)
    y = y.clone()
    y[4:, 2:] = y[0, 1:2] = -100
    model = Speaker(shift)
    batches = [{"tokens": x[a:b], "labels": y[a:b]} for a, b in ((0, 4), (4, 9))]
    p = Problem(model, batches, lambda out, batch: out["loss"])
    np.testing.assert_allclose(p.loss(p.w0), model(x, y)["loss"].item(), **CLOSE)
    # Another count than these two cannot be guessed.
    odd = lambda out, batch: out["loss"] * (batch["labels"] != -100).sum() / len(batch["labels"]) ** 0.5  # noqa: E731
    with pytest.raises(ArgumentError, match=r"weight must be given for labels of -100"):
        Problem(model, batches, odd)


def test_the_weight_of_a_batch():
    """A mean over words of a function that steppe cannot look into."""
    model, (x, y) = net("gpt", n=9)
    batches = [(x[:2], y[:2]), (x[2:], y[2:])]
    p = Problem(model, batches, words, weight=lambda y: (y > 1).sum())
    assert p.alone
    np.testing.assert_allclose(p.loss(p.w0), words(model(x), y).item(), **CLOSE)


class Output(dict):
    """Like a model output of transformers: a dictionary with attributes."""

    __getattr__ = dict.__getitem__


class Named(nn.Module):
    """Takes several inputs by name and computes its own loss."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(5, 3), nn.Linear(3, 2)

    def forward(self, input_ids, attention_mask=None, labels=None):
        weight = attention_mask / attention_mask.sum(1, keepdim=True)
        logits = self.head((self.words(input_ids) * weight[..., None]).sum(1))
        return Output(logits=logits, loss=None if labels is None else CROSS(logits, labels))


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs).logits


def test_dictionaries():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, ids = Named().double(), torch.randint(0, 5, (7, 4))
        batch = {"input_ids": ids, "attention_mask": (ids > 0).double() + 1.0, "labels": ids[:, 0] % 2}
    rows = [{k: v[i] for k, v in batch.items()} for i in range(7)]
    truth = model(**batch).loss.item()
    for data in (batch, DataLoader(rows, batch_size=3)):
        own = Problem(model, data, lambda outputs, batch: outputs.loss)
        theirs = Problem(Logits(model), data, CROSS)
        assert len(own) == 7
        np.testing.assert_allclose([own.loss(own.w0), theirs.loss(theirs.w0)], truth, **CLOSE)
    # Without a tensor of outputs the Hessian works, and the parts of its trace are left out.
    whole, split = steppe.measures.trace(own), steppe.measures.trace(theirs)
    np.testing.assert_allclose(whole.value, split.value, **CLOSE)
    assert not whole.parts
    assert set(split.parts) == {"gauss_newton", "residual"}


def test_several_inputs():
    model = nn.Bilinear(2, 3, 2).double()
    a, b, y = torch.randn(8, 2).double(), torch.randn(8, 3).double(), torch.randint(0, 2, (8,))
    truth = CROSS(model(a, b), y).item()
    for data in ([(a[:5], b[:5], y[:5]), (a[5:], b[5:], y[5:])], ((a, b), y), DataLoader(TensorDataset(a, b, y), 3)):
        p = Problem(model, data, CROSS)
        np.testing.assert_allclose(p.loss(p.w0), truth, **CLOSE)


def test_data_that_do_not_fit_into_memory_are_loaded_again():
    model, (x, y) = net("mlp", n=20)
    loads = []

    class Counted(TensorDataset):
        def __getitem__(self, i):
            loads.append(i)
            return super().__getitem__(i)

    p = Problem(model, DataLoader(Counted(x, y), 6, shuffle=True), CROSS, memory=100)
    p.loss(p.w0)
    before = len(loads)
    np.testing.assert_allclose(p.loss(p.w0), CROSS(model(x), y).item(), **CLOSE)
    assert len(loads) == before + 20
    x += 1
    with pytest.raises(ArgumentError, match="data must be the same batches at every pass"):
        p.loss(p.w0)


class Endless(IterableDataset):
    """A stream that yields other numbers at every pass."""

    def __iter__(self):
        for _ in range(5):
            yield torch.randn(3).double(), random.randrange(3)


class Redrawn:
    """Batches that are no loader's, other ones at every pass."""

    def __iter__(self):
        return iter([(torch.randn(4, 3).double(), torch.tensor([0, 1, 2, 0]))])


class Noisy(TensorDataset):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return x + 0.1 * torch.randn(3), y


def test_other_data_at_every_pass_are_refused():
    model, (x, y) = net("mlp", n=20)
    data = TensorDataset(x, y)
    for loader in (
        DataLoader(Endless(), batch_size=2),
        DataLoader(Noisy(x, y), batch_size=8),
        DataLoader(data, 8, sampler=WeightedRandomSampler([1.0] * 20, 20)),
        DataLoader(data, 8, sampler=RandomSampler(data, replacement=True)),
        DataLoader(data, 8, sampler=RandomSampler(data, replacement=True, generator=torch.Generator())),
        Redrawn(),
    ):
        with pytest.raises(ArgumentError, match=r"data must be the same batches at every pass; .* pass list\(loader\)"):
            Problem(model, loader, CROSS)
    fixed = Problem(model, list(DataLoader(Noisy(x, y), batch_size=8)), CROSS)
    assert fixed.loss(fixed.w0) == fixed.loss(fixed.w0)


# Which parameters.


def test_parameters_by_name():
    model, data = net("mlp")
    names = [name for name, _ in model.named_parameters()]
    for chosen, kept in (
        ("0.*", names[:2]),
        (["*.bias"], names[1::2]),
        (lambda name, p: p.ndim == 2, names[::2]),
        ("*", names),
    ):
        assert list(Problem(model, data, CROSS, parameters=chosen).network.names) == kept


def test_frozen_parameters_are_constants():
    model, data = net("mlp")
    whole = Problem(model, data, CROSS)
    model[0].requires_grad_(False)
    p = Problem(model, data, CROSS)
    assert list(p.network.names) == [name for name, _ in model.named_parameters()][2:]
    count = model[0].weight.numel() + model[0].bias.numel()
    dense = steppe.curvature.hessian(whole).dense()[count:, count:]
    np.testing.assert_allclose(steppe.curvature.hessian(p).dense(), dense, **CLOSE)
    assert list(Problem(model, data, CROSS, parameters="0.*").network.names) == ["0.weight", "0.bias"]


def test_a_tied_parameter_counts_once():
    model, data = net("gpt")
    p = Problem(model, data, CROSS)
    assert "head.weight" not in p.network.names
    assert p.w0.size == sum(q.numel() for q in model.parameters())
    # By either of its names.
    assert Problem(model, data, CROSS, parameters="head.*").network.names == ("tokens.weight",)


# The user's model is as before, bit for bit.


def snapshot(model):
    """All that the model and the random states consist of."""
    yield [(name, id(p), p._version, p.requires_grad, p.dtype, p.device) for name, p in model.named_parameters()]
    yield [(name, id(b), b._version) for name, b in model.named_buffers()]
    yield [p.detach().numpy().tobytes() for p in model.parameters()] + [b.numpy().tobytes() for b in model.buffers()]
    yield [None if p.grad is None else (id(p.grad), p.grad.numpy().tobytes()) for p in model.parameters()]
    for module in model.modules():
        yield (
            module.training,
            [list(d) for d in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)],
        )
        yield sorted(vars(module)), list(module._parameters), list(module._modules)
        yield [id(t) for t in vars(module).get("_flat_weights", [])]
    yield torch.get_rng_state().tolist()
    yield [str(part) for part in np.random.get_state()], random.getstate()
    yield torch.is_grad_enabled(), torch.backends.mha.get_fastpath_enabled(), torch.get_default_dtype()
    yield id(torch.utils.checkpoint.CheckpointFunction), torch.backends.cuda.flash_sdp_enabled()


def with_history(name, training):
    """A network with gradients and hooks, as in the middle of training."""
    model, data = net(name, training=training)
    heard = []
    for module in model.modules():
        module.register_forward_hook(lambda *args: None)
        module.register_full_backward_hook(lambda *args: heard.append(args))
    for p in model.parameters():
        p.grad = torch.ones_like(p)
        p.register_hook(heard.append)
    next(model.parameters()).requires_grad_(False)
    return model, data, heard


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_the_model_stays_as_it_is(name, training):
    model, data, heard = with_history(name, training)
    before = list(snapshot(model))
    p = Problem(model, DataLoader(TensorDataset(*data), 4, shuffle=True), CROSS)
    steppe.curvature.hessian(p)(p.w0)
    steppe.curvature.gauss_newton(p)(p.w0)
    steppe.measures.accuracy(p)
    assert list(snapshot(model)) == before
    assert not heard


@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "gpt", "reentrant"])
def test_the_model_stays_as_it_is_after_an_exception(name):
    model, data, _ = with_history(name, True)
    before = list(snapshot(model))
    calls = []

    def loss(f, y):
        calls.append(1)
        if len(calls) == last:
            torch.rand(1)
            raise KeyboardInterrupt
        return CROSS(f, y)

    for last in (1, 3, 8, 20):  # noqa: B007  the loss reads it
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            steppe.measures.sharpness(Problem(model, DataLoader(TensorDataset(*data), 4), loss), memory=1e3)
        assert list(snapshot(model)) == before


def test_under_the_settings_of_the_caller():
    model, data = net("gpt")
    p = Problem(model, data, CROSS)
    truth = steppe.curvature.hessian(p)(p.w0)
    for setting in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu")):
        with setting:
            again = Problem(model, data, CROSS)
            np.testing.assert_array_equal(steppe.curvature.hessian(again)(p.w0), truth)


def test_generators_of_loaders_stay_as_they_are():
    model, (x, y) = net("mlp")
    generator = torch.Generator().manual_seed(3)
    state = generator.get_state()
    for options in ({"shuffle": True}, {"sampler": RandomSampler(x, replacement=True, generator=generator)}):
        loader = DataLoader(TensorDataset(x, y), 4, generator=generator, **options)
        with contextlib.suppress(ArgumentError):
            Problem(model, loader, CROSS)
        assert torch.equal(generator.get_state(), state)


def test_a_problem_is_a_snapshot():
    model, data = net("cnn", training=False)
    p = Problem(model, data, CROSS)
    loss, v = p.loss(p.w0), steppe.curvature.hessian(p)(p.w0)
    with torch.no_grad():
        for t in (*model.parameters(), *model.buffers()):
            t.mul_(2)
    model.train()
    assert p.loss(p.w0) == loss
    np.testing.assert_array_equal(steppe.curvature.hessian(p)(p.w0), v)


def test_batch_normalisation_in_both_modes():
    model, (x, y) = net("cnn", n=12)
    batches = [(x[:8], y[:8]), (x[8:], y[8:])]
    running = copy.deepcopy(model).eval()
    for mode, treatment in ((model, "batches of 8"), (running, "full batch")):
        p = Problem(mode, batches, CROSS)
        twin = copy.deepcopy(mode)
        truth = sum(len(b) * CROSS(twin(a), b).item() for a, b in batches) / 12
        np.testing.assert_allclose(p.loss(p.w0), truth, **CLOSE)
        assert steppe.measures.sharpness(p).statistics == treatment


def test_wrappers_are_looked_through():
    model, data = net("mlp")
    assert Problem(nn.DataParallel(model), data, CROSS).network.names[0] == "0.weight"


class Normed(nn.Module):
    """A linear layer whose rows g v/‖v‖ are written out."""

    def __init__(self, v, g, b):
        super().__init__()
        self.bias, self.weight_g, self.weight_v = nn.Parameter(b), nn.Parameter(g), nn.Parameter(v)

    def forward(self, x):
        weight = self.weight_g * self.weight_v / self.weight_v.norm(dim=1, keepdim=True)
        return nn.functional.linear(x, weight, self.bias)


@pytest.mark.parametrize("old", [True, False])
def test_weight_normalisation(old):
    """PyTorch's own second derivative of it is wrong. The weight of the old one is no parameter, but a tensor that each
    pass computes."""
    layer, (_, data) = nn.Linear(3, 4), net("mlp")
    if old:
        with pytest.warns(FutureWarning, match="weight_norm"):
            model = nn.Sequential(nn.utils.weight_norm(layer), nn.Tanh(), nn.Linear(4, 3)).double()
        g, v = layer.weight_g, layer.weight_v
        model(data[0])
    else:
        model = nn.Sequential(nn.utils.parametrizations.weight_norm(layer), nn.Tanh(), nn.Linear(4, 3)).double()
        g, v = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    written = nn.Sequential(Normed(v.detach(), g.detach(), layer.bias.detach()), *model[1:])
    p = Problem(model, data, CROSS)
    np.testing.assert_allclose(steppe.curvature.hessian(p).dense(), dense_hessian(written, data, CROSS), **CLOSE)
