"""What is refused: the argument, the rule, what came, and the remedy."""

import subprocess
import sys

import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError
from steppe.curvature import Curvature

torch = pytest.importorskip("torch")
from cases.torch_nets import net  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

CROSS = nn.CrossEntropyLoss()


def small(*layers):
    return nn.Sequential(nn.Linear(3, 4), *layers, nn.Linear(4, 3)).double()


def refused(match, model=None, data=None, loss=CROSS, **options):
    with pytest.raises(ArgumentError, match=match):
        steppe.torch.Problem(model or small(), data if data is not None else net("mlp")[1], loss, **options)


def test_two_devices():
    model = small()
    model[0].to("meta")
    refused(r"model must be on one device; got 'cpu, meta'\. .* model\.to\(device\)", model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    refused(r"model\.0\.weight must be float32 or float64 .* copy\.deepcopy\(model\)\.float\(\)", small().to(dtype))


def test_a_loss_without_derivative():
    wrong = lambda f, y: (f.argmax(1) != y).double().mean()  # noqa: E731
    refused(r"loss must be differentiable by the parameters; got 'a number that no derivative reaches'", loss=wrong)
    detached = lambda f, y: CROSS(f.detach(), y)  # noqa: E731
    refused(r"loss must be differentiable .* instead of the error rate", loss=detached)


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3).double()

    def forward(self, x):
        with torch.no_grad():
            return self.layer(x)


def test_a_model_under_no_grad():
    refused(r"loss must be differentiable .* does forward run under no_grad\?", Frozen())


@pytest.mark.parametrize("label", [3, -1])
def test_labels_out_of_range(label):
    x, y = net("mlp", n=10)[1]
    y[7] = label
    loader = DataLoader(TensorDataset(x, y), 4)
    for data in ((x, y), loader):
        for loss in (CROSS, nn.functional.cross_entropy):
            refused(
                rf"data must be labels from 0 to 2; got 'labels from .*{label}.*'\. .*count them from 0",
                None,
                data,
                loss,
            )


def test_targets_of_the_wrong_shape():
    x, y = net("mlp")[1]
    refused(r"data must be class numbers of shape \(10,\) as targets; .* shape \(10, 1\)", None, (x, y[:, None]))
    refused(r"data must be class probabilities of shape \(10, 3\); got \(10,\)", None, (x, y.double()))
    refused(r"data must be targets of the shape of the outputs, \(10, 3\); got \(10,\)", None, (x, y), nn.MSELoss())
    refused(r"data must be x of 9 rows, as many as y; got 10", None, (x, y[:9]))


def test_empty_data():
    x, y = net("mlp")[1]
    refused(r"data must be at least one batch; got 'none'", None, [])
    refused(r"data must be at least one batch", None, DataLoader(TensorDataset(x[:0], y[:0]), 4))
    refused(r"data must be batches with at least one example", None, (x[:0], y[:0]))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(*net("mlp", n=10)[1], strict=True))


def test_an_incomplete_batch_dropped_by_a_sampler_of_ones_own():
    x, y = net("mlp", n=10)[1]
    loader = DataLoader(TensorDataset(x, y), 4, sampler=list(range(10)), drop_last=True)
    every = r"data must be a DataLoader that yields every example; got 'drop_last=True'.*drop_last=False"
    refused(every, None, loader)
    refused(every, None, DataLoader(Stream(), 4, drop_last=True))


@pytest.mark.parametrize(
    "layer", [nn.Dropout(0.5), nn.RReLU(), nn.Sequential(nn.Dropout1d(0.1)), nn.AlphaDropout(0.3)], ids=str
)
def test_dropout_in_training_mode(layer):
    refused(r"model must be without dropout in training mode; got '1.*'\. Call model\.eval\(\)", small(layer))
    model = small(layer).eval()
    steppe.torch.Problem(model, net("mlp")[1], CROSS)


def test_dropout_of_probability_zero_is_no_dropout():
    steppe.torch.Problem(small(nn.Dropout(0.0)), net("mlp")[1], CROSS)


def test_dropout_inside_of_other_layers():
    recurrent, data = nn.LSTM(3, 3, num_layers=2, dropout=0.2).double(), net("mlp")[1]
    refused(r"model must be without dropout", nn.Sequential(recurrent), data, loss=lambda f, y: f[0].sum())
    layer = nn.TransformerEncoderLayer(3, 1, 4, batch_first=True).double()
    refused(r"model must be without dropout", nn.Sequential(nn.Unflatten(0, (10, 1)), layer, nn.Flatten()), data)


class Noise(nn.Module):
    def forward(self, x):
        return x + 1e-3 * torch.randn_like(x)


class Hidden(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.1)


@pytest.mark.parametrize("layer", [Noise(), Hidden()])
def test_random_numbers_in_the_forward_pass(layer):
    refused(r"model must be the same function at every pass; got 'a difference of .* It draws random", small(layer))


def test_running_out_of_memory():
    """At most 4 rows fit into this memory."""

    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3).double()

        def forward(self, x):
            if len(x) > 4:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return self.layer(x)

    class Small(Large):
        def forward(self, x):
            if len(x) > 4:
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate")
            return self.layer(x)

    data = net("mlp", n=16)[1]
    for model in (Large(), Small()):
        refused(r"data must be batches that fit into memory; .* Pass chunk=8 to steppe\.torch\.Problem", model, data)
        assert len(steppe.torch.Problem(model, data, CROSS, chunk=4)) == 16


def test_a_chunk_of_a_batch_with_statistics():
    model, data = net("cnn")
    refused(r"chunk must be None for a model or a loss whose examples see each other; got 4", model, data, chunk=4)


class Two(nn.Module):
    """A module with two outputs."""

    def __init__(self):
        super().__init__()
        self.inner = small()

    def forward(self, x):
        return self.inner(x), x


def test_arguments():
    x, y = net("mlp")[1]
    refused(r"model must be a torch\.nn\.Module", nn.Linear)
    refused(r"model must be a module with parameters; got 'ReLU'", nn.ReLU())
    refused(r"model must be a module with parameters that require a gradient", small().requires_grad_(False))
    refused(
        r"parameters must be a choice of parameters of the model; got '0\.wieght'\. Did you mean '0\.weight'",
        parameters="0.wieght",
    )
    refused(r"loss must be a loss of PyTorch or a function", loss="mse")
    refused(r"loss must be a loss of PyTorch or a function", loss=nn.MSELoss)
    refused(
        r"loss must be one number for a batch; got \"reduction='none'\"", loss=nn.CrossEntropyLoss(reduction="none")
    )
    refused(r"loss must be one number for a batch; got 'shape \(10, 3\)'", loss=lambda f, y: f)
    refused(r"data must be tensors, batches or a DataLoader; got 'TensorDataset'", None, TensorDataset(x, y))
    refused(r"data must be batches of tensors; got 'ndarray'.*torch\.from_numpy", None, (x.numpy(), y.numpy()))
    refused(r"data must be batches of tensors; got 'Tensor, ndarray'.*torch\.from_numpy", None, (x, y.numpy()))
    rule = r"data must be dictionaries with what forward takes: input1, input2; got \['x', 'y'\]"
    refused(rule, nn.Bilinear(3, 3, 3), {"x": x, "y": x, "labels": y})
    refused(r"model must be a plain torch\.nn\.Module; .*load_state_dict", torch.jit.script(small()))
    refused(r"model must be a module that returns one tensor, for this loss; .*outputs\.logits", Two())
    refused(r"data must be batches that can be read again; got 'an iterator'", None, iter([(x, y)]))
    refused(r"data must be finite", None, (x * torch.nan, y))
    refused(r"data must be dictionaries with an entry 'labels'", None, {"input": x, "target": y})
    refused(r"model\.0\.weight must be a parameter with a shape; got 'a lazy one'", nn.Sequential(nn.LazyLinear(3)))
    broken = small()
    broken[0].weight.data[0, 0] = torch.nan
    refused(r"model must be finite; .* has training diverged\?", broken)


def test_options_of_measures():
    p = steppe.torch.Problem(*net("mlp"), CROSS)
    with pytest.raises(ArgumentError, match=r"statistics must be FullBatch.* call model\.eval\(\)"):
        steppe.measures.sharpness(p, statistics=steppe.measures.Frozen())
    with pytest.raises(ArgumentError, match=r"statistics must be FullBatch.* batch_size=4"):
        steppe.measures.adaptive_sharpness(p, statistics=steppe.measures.PerChunk(4))
    own = Curvature("own", lambda problem, w: problem.loss)
    with pytest.raises(
        ArgumentError, match=r"curvature must be one of steppe\.curvature for a torch problem; got 'own'"
    ):
        steppe.measures.sharpness(p, curvature=own)
    with pytest.raises(ArgumentError, match=r"w must be finite"):
        steppe.measures.sharpness(p, np.full(p.w0.size, np.nan))
    with pytest.raises(ArgumentError, match=r"w must be a flat vector of \d+ parameters"):
        steppe.measures.sharpness(p, p.w0[1:])


def test_what_works_on_jax_problems_only():
    p = steppe.torch.Problem(*net("mlp"), CROSS)
    for use in (
        steppe.measures.invariant_trace,
        steppe.measures.invariant_sharpness,
        lambda p: steppe.run(p, steppe.dynamics.GD(0.1), stop=steppe.until.steps(1)),
    ):
        with pytest.raises(ArgumentError, match=r"problem must be a steppe\.Problem"):
            use(p)
    assert len(steppe.measures.kinks(p)) == 0


def test_torch_is_an_extra():
    """`import steppe`, its list of names and its measures load no PyTorch; without it the error says what to do."""
    code = """
import sys
import steppe, steppe.measures, steppe.cli
assert "torch" not in sys.modules
assert "torch" in dir(steppe)
from steppe import *
sys.modules["torch"] = None  # as if it were not installed
sys.modules.pop("steppe.torch", None)
try:
    steppe.torch
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'steppe[torch]'" in said
