"""The monitor of a training loop: numbers by hand on quadratics, its budget, and what it must not touch."""

import csv
import math
import random
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from steppe.check import ArgumentError
from steppe.torch import SAM, Monitor

CURVATURES = np.array([4.0, 2.0, 1.0, 0.5])


def half_square(outputs, targets):
    return 0.5 * ((outputs - targets) ** 2).sum()


def quadratic(start=(1.0, 1.0, 1.0, 1.0), curvatures=CURVATURES):
    """L(w) = ½ wᵀ diag(curvatures) w, as a network with data."""
    model = torch.nn.Linear(len(start), 1, bias=False).double()
    model.weight.data = torch.tensor([start], dtype=torch.float64)
    return model, (torch.tensor(np.diag(np.sqrt(curvatures))), torch.zeros(len(start), 1, dtype=torch.float64))


def train(model, data, optimizer, steps=1, loss=half_square):
    for _ in range(steps):

        def closure():
            optimizer.zero_grad()
            value = loss(model(data[0]), data[1])
            value.backward()
            return value

        optimizer.step(closure)


def weights(model):
    return torch.cat([p.detach().ravel() for p in model.parameters()]).numpy()


OPTIMISERS = {
    "descent": lambda p: torch.optim.SGD(p, lr=0.3),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.2),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.5, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=2),
    "sam": lambda p: SAM(torch.optim.SGD(p, lr=0.3), 0.05),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_the_edge_of_any_optimiser(name):
    """From the step that was really made, at w before it."""
    model, data = quadratic()
    optimizer = OPTIMISERS[name](model.parameters())
    with Monitor(model, optimizer, data, half_square, every=1) as monitor:
        points = [weights(model).copy()]
        for _ in range(4):
            train(model, data, optimizer)
            points.append(weights(model).copy())
    for row, w, after in zip(monitor.rows, points[:-1], points[1:], strict=True):
        step, g = after - w, CURVATURES * w
        assert row["edge"] == pytest.approx(step @ (CURVATURES * step) / -(g @ step), rel=1e-10)
        assert row["loss"] == pytest.approx(0.5 * w @ g)
        assert row["gradient_norm"] == pytest.approx(np.linalg.norm(g))
        assert row["sharpness"] == pytest.approx(4.0)
    assert [row["step"] for row in monitor.rows] == [1, 2, 3, 4]


def test_a_step_along_an_eigenvector_of_curvature_two_over_lr_is_at_the_edge():
    model, data = quadratic(start=(0.0, 0.7, 0.0, 0.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer)
    assert monitor.rows[0]["edge"] == pytest.approx(2.0)
    assert (monitor.rows[0]["threshold"], monitor.rows[0]["preconditioned"]) == (2.0, pytest.approx(4.0))


# A hand-written preconditioner of each adaptive optimiser after t steps on the gradients of `quadratic`.


def of_adam(gradients, *, b1=0.9, b2=0.999, amsgrad=False):
    v, largest = 0.0, 0.0
    for g in gradients:
        v = b2 * v + (1 - b2) * g**2
        largest = np.maximum(largest, v)
    t = len(gradients)
    return (1 - b1**t) * (np.sqrt((largest if amsgrad else v) / (1 - b2**t)) + 1e-8)


def of_rmsprop(gradients):
    v = mean = 0.0
    for g in gradients:
        v, mean = 0.99 * v + 0.01 * g**2, 0.99 * mean + 0.01 * g
    return np.sqrt(v - mean**2) + 1e-8


@pytest.mark.parametrize(
    ("name", "preconditioner", "decay", "threshold"),
    [
        ("adamw", of_adam, 0.0, 19 * (2 - 0.1 * 0.5) / 0.1),
        ("adam", lambda gs: of_adam(gs, amsgrad=True), 0.5, 38 / 0.1),
        ("rmsprop", of_rmsprop, 0.0, 2 * 1.5 / 0.01),
    ],
)
def test_preconditioned_sharpness_by_hand(name, preconditioner, decay, threshold):
    model, data = quadratic(start=(1.0, -2.0, 0.5, 3.0))
    optimizer = OPTIMISERS[name](model.parameters())
    monitor, gradients = Monitor(model, optimizer, data, half_square, every=1), []
    for _ in range(3):
        gradients.append((CURVATURES + decay) * weights(model))
        train(model, data, optimizer)
    expected = ((CURVATURES + decay) / preconditioner(gradients)).max()
    assert monitor.rows[-1]["preconditioned"] == pytest.approx(expected, rel=1e-9)
    assert monitor.rows[-1]["threshold"] == pytest.approx(threshold)
    assert monitor.rows[-1]["sharpness"] == pytest.approx(4.0)


# Optimisers whose v does not change any more, so that a step is linear.
LINEAR = {
    "descent": lambda p: torch.optim.SGD(p, lr=0.1),
    "decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=3.0),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.4),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.7, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.9, 1 - 1e-12), weight_decay=2.0),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.6, 1 - 1e-12), weight_decay=5.0),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.4, alpha=1 - 1e-12, weight_decay=1.0),
}


def settled(name, curvature):
    """A quadratic in one dimension and its optimiser after many steps with the gradient 3: v = 9 for all time."""
    model, data = quadratic(start=(1.0,), curvatures=np.array([curvature]))
    optimizer = LINEAR[name](model.parameters())
    train(model, data, optimizer)
    for state in optimizer.state.values():
        for key in {"exp_avg_sq", "square_avg"} & state.keys():
            state[key].fill_(9.0)
        if "step" in state:
            state["step"].fill_(1e14)
        for key in {"exp_avg", "momentum_buffer"} & state.keys():
            if state[key] is not None:
                state[key].zero_()
    model.weight.data.fill_(1e-100)
    return model, data, optimizer


@pytest.mark.parametrize("name", LINEAR)
def test_the_threshold_is_where_the_optimiser_becomes_unstable(name):
    """0.5% below it w shrinks, 0.5% above it grows."""
    model, data, optimizer = settled(name, 1.0)
    with Monitor(model, optimizer, data, half_square, every=1) as monitor:
        train(model, data, optimizer)
    row, adaptive = monitor.rows[0], name in ("adam", "adamw", "rmsprop")
    root, decay = (3.0, optimizer.defaults["weight_decay"] * (name != "adamw")) if adaptive else (1.0, 0.0)
    assert row["preconditioned"] == pytest.approx((1 + decay) / root, rel=1e-6)  # P⁻¹(H + decay)
    for factor in (0.995, 1.005):
        model, data, optimizer = settled(name, factor * (root * row["threshold"] - decay))
        train(model, data, optimizer, 100)
        before = weights(model)[0]
        train(model, data, optimizer, 200)
        assert (abs(weights(model)[0] / before) > 1) == (factor > 1)


def test_groups_with_rates_of_their_own():
    """The threshold of the first group, and the curvature weighed by the other rates: −1 is an eigenvalue of a step."""
    a, b = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    model = torch.nn.Sequential(OrderedDict(a=a, b=b)).double()
    data = torch.ones(1, 1).double(), torch.zeros(1, 1).double()
    groups = [{"params": a.parameters(), "lr": 0.2}, {"params": b.parameters(), "lr": 0.6, "momentum": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    a.weight.data.fill_(1.5)
    b.weight.data.fill_(0.7)
    H = np.array([[0.7**2, 2 * 1.5 * 0.7], [2 * 1.5 * 0.7, 1.5**2]])  # of ½(ab)²
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer)
    k = np.array([0.2, 0.6 / 1.5])
    assert monitor.rows[0]["threshold"] == pytest.approx(2 / 0.2)
    assert monitor.rows[0]["preconditioned"] == pytest.approx(np.linalg.eigvals(np.diag(k / 0.2) @ H).max().real)
    assert monitor.rows[0]["sharpness"] == pytest.approx(np.linalg.eigvalsh(H)[-1])


def test_the_threshold_of_sam_on_its_orbit():
    """On ½λw² it settles on the orbit ±w of period two, where λ is at the edge of Long and Bartlett."""
    model, data = quadratic(start=(1.0,), curvatures=np.array([3.0]))
    optimizer = SAM(torch.optim.SGD(model.parameters(), lr=0.5), 0.1)
    train(model, data, optimizer, 200)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer)
    assert monitor.rows[0]["threshold"] == pytest.approx(3.0, rel=1e-9)
    assert "Long and Bartlett" in monitor.convention


def test_an_optimiser_without_a_formula_has_an_edge():
    model, data = quadratic()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer)
    assert math.isnan(monitor.rows[0]["threshold"])
    assert math.isnan(monitor.rows[0]["preconditioned"])
    assert monitor.rows[0]["edge"] > 0
    assert "no formula" in monitor.convention


def net(seed=0, *, dropout=0.3, dtype=torch.float32):
    torch.manual_seed(seed)
    layers = (
        torch.nn.Linear(5, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(dropout),
        torch.nn.Tanh(),
        torch.nn.Linear(8, 2),
    )
    return torch.nn.Sequential(*layers).to(dtype)


def batches(count, dtype=torch.float32):
    torch.manual_seed(1)
    return [(torch.randn(16, 5, dtype=dtype), torch.randint(0, 2, (16,))) for _ in range(count)]


ENTROPY = torch.nn.functional.cross_entropy


def test_the_training_does_not_notice(tmp_path):
    """Parameters, buffers, gradients, modes and random numbers are the same bits with and without a monitor."""
    ends = []
    for monitored in (False, True):
        model, optimizer_of = net(), OPTIMISERS["adamw"]
        model[4].bias.requires_grad_(False)
        model[3].eval()
        optimizer, data = optimizer_of([p for p in model.parameters() if p.requires_grad]), batches(12)
        random.seed(0)
        np.random.seed(0)
        loader = torch.utils.data.DataLoader(list(zip(*data[0], strict=True)), batch_size=8, shuffle=True)
        if monitored:
            monitor = Monitor(model, optimizer, loader, ENTROPY, every=1, csv=tmp_path / "rows.csv")
        for k, batch in enumerate(data):
            if monitored and k % 2:
                monitor.batch(*batch)
            train(model, batch, optimizer, loss=ENTROPY)
        shuffled = [y.tolist() for _, y in loader]
        gradients = [None if p.grad is None else p.grad.numpy() for p in model.parameters()]
        state = [t.numpy() for t in model.state_dict().values()]
        flags = [m.training for m in model.modules()], [p.requires_grad for p in model.parameters()], shuffled
        draws = torch.rand(3).tolist(), random.random(), np.random.rand()
        ends.append((state, gradients, flags, draws))
    np.testing.assert_equal(*ends)
    rows = monitor.rows
    assert len(rows) == 12
    assert [math.isnan(row["batch_edge"]) for row in rows] == [True, False] * 6
    monitor.close()
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_the_eigenvalues_of_a_network_against_its_dense_hessian():
    """Batch statistics of the probe are differentiated through; dropout is off."""
    model = net(dtype=torch.float64)
    x, y = batches(1, torch.float64)[0]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    monitor = Monitor(model, optimizer, (x, y), ENTROPY, every=1)
    for _ in range(3):
        start = [p.detach().clone() for p in model.parameters()]
        train(model, (x, y), optimizer, loss=ENTROPY)
        twin = net(dropout=0.0, dtype=torch.float64)
        names = [name for name, _ in twin.named_parameters()]

        def value(w, twin=twin, names=names, start=start):
            parts = [t.reshape(p.shape) for t, p in zip(w.split([p.numel() for p in start]), start, strict=True)]
            return ENTROPY(torch.func.functional_call(twin, dict(zip(names, parts, strict=True)), x), y)

        H = torch.autograd.functional.hessian(value, torch.cat([p.ravel() for p in start])).numpy()
        states = [optimizer.state[p] for p in model.parameters()]
        t = int(states[0]["step"])
        v = torch.cat([state["exp_avg_sq"].ravel() for state in states]).numpy()
        S = 1 / np.sqrt((1 - 0.9**t) * (np.sqrt(v / (1 - 0.999**t)) + 1e-8))
        row = monitor.rows[-1]
        # 1% is the accuracy of the monitor.
        assert row["sharpness"] == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-2)
        assert row["preconditioned"] == pytest.approx(np.linalg.eigvalsh(S[:, None] * H * S)[-1], rel=1e-2)
        assert row["settled"]


class Clock:
    """A clock that stands still unless somebody works."""

    now = 0.0

    def __call__(self):
        return self.now


class Work(torch.autograd.Function):
    """x ↦ x, for a tenth of a second in every pass: forward, backward, and the backward of that."""

    @staticmethod
    def forward(ctx, x, clock):
        ctx.clock = clock
        clock.now += 0.1
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return Work.apply(g, ctx.clock), None


@pytest.mark.parametrize("share", [0.1, 0.02])
def test_the_budget(share):
    """The measurements take their share of the time and no more, apart from the last one, if it took more products than
    the two before; and most of the share is used."""
    clock, data = Clock(), batches(1)[0]
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def loss(f, y):
        return ENTROPY(Work.apply(f, clock), y)

    monitor = Monitor(model, optimizer, data, loss, overhead=share, clock=clock)
    seen = []
    for _ in range(300 if share == 0.1 else 900):
        clock.now += 3.0
        train(model, data, optimizer, loss=ENTROPY)
        seen.append(monitor.overhead)
    full = [row["step"] for row in monitor.rows if math.isfinite(row["sharpness"])]
    assert 0.7 * share < seen[-1] < 1.1 * share
    assert max(seen[full[0] :]) < 1.2 * share
    assert len(full) > 5
    assert monitor.rows[0]["step"] < full[0]  # the ratio of the edge comes first: it takes one product


def test_resumes_to_the_bit(tmp_path):
    """Killed after a row that the checkpoint does not know; read without executing code."""

    def start():
        model = net(dropout=0.0)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        data = batches(10)
        file = tmp_path / "rows.csv"
        return model, optimizer, data, Monitor(model, optimizer, data[0], ENTROPY, every=2, csv=file, clock=lambda: 0.0)

    model, optimizer, data, monitor = start()
    for k, batch in enumerate(data):
        if k == 5:
            parts = {"model": model, "optimizer": optimizer, "monitor": monitor}
            torch.save({name: part.state_dict() for name, part in parts.items()}, tmp_path / "checkpoint.pt")
        train(model, batch, optimizer, loss=ENTROPY)
    whole, text = monitor.table(), (tmp_path / "rows.csv").read_text()
    model, optimizer, data, monitor = start()
    for name, state in torch.load(tmp_path / "checkpoint.pt", weights_only=True).items():
        {"model": model, "optimizer": optimizer, "monitor": monitor}[name].load_state_dict(state)
    for batch in data[5:]:
        train(model, batch, optimizer, loss=ENTROPY)
    np.testing.assert_equal(monitor.table(), whole)
    assert (tmp_path / "rows.csv").read_text() == text
    assert whole["step"] == [1, 3, 5, 7, 9]


def test_the_file_has_every_row_at_once(tmp_path):
    model, data = quadratic()
    optimizer, file = torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "rows.csv"
    monitor = Monitor(model, optimizer, data, half_square, every=1, csv=file)
    for k in range(3):
        train(model, data, optimizer)
        with file.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [int(row["step"]) for row in rows] == list(range(1, k + 2))
        assert float(rows[-1]["edge"]) == monitor.rows[-1]["edge"]
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ArgumentError, match="csv must be a file with the columns step, loss"):
        train(model, data, optimizer)


def test_writers_of_other_tools():
    """A SummaryWriter, a run of Weights & Biases and a function; NaN is not passed on."""
    scalars, logged, defined, rows = [], [], [], []
    board = SimpleNamespace(add_scalar=lambda *row: scalars.append(row))
    run = SimpleNamespace(log=logged.append, define_metric=lambda *a, **k: defined.append((a, k)))
    model, data = quadratic()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    Monitor(model, optimizer, data, half_square, every=1, to=[board, run, rows.append])
    train(model, data, optimizer)
    assert ("steppe/edge", rows[0]["edge"], 1) in scalars
    assert logged[0]["steppe/sharpness"] == pytest.approx(4.0)
    assert logged[0]["steppe/step"] == 1
    assert defined == [(("steppe/*",), {"step_metric": "steppe/step"})]
    assert not any("threshold" in name for name, *_ in scalars)
    with pytest.raises(ArgumentError, match="to must be writers of TensorBoard"):
        Monitor(model, optimizer, data, half_square, to=[3])


def test_the_figure_has_the_line_of_the_threshold(tmp_path):
    model, data = quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    with pytest.raises(ArgumentError, match="nothing was measured yet"):
        monitor.draw()
    train(model, data, optimizer, 3)
    figure = monitor.draw(tmp_path / "edge.png")
    lines = {line.get_label(): line.get_ydata().tolist() for axis in figure.axes for line in axis.lines}
    assert lines["unstable above"] == [20.0] * 3
    assert lines["2"] == [2.0] * 3
    assert (tmp_path / "edge.png").stat().st_size > 0
    assert "2/lr" in repr(monitor)


def test_a_run_that_diverges_is_recorded_to_its_end():
    model, data = quadratic(start=(1.0, 1.0, 1.0, 1e300))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e10)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer, 3)
    assert len(monitor.rows) == 3
    assert math.isnan(monitor.rows[-1]["edge"])


def test_a_skipped_step_has_no_edge():
    model, data = quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    monitor = Monitor(model, optimizer, data, half_square, every=1)
    train(model, data, optimizer)
    assert math.isnan(monitor.rows[0]["edge"])
    assert monitor.rows[0]["threshold"] == math.inf


class Named(torch.nn.Module):
    """Takes named arguments and returns its loss, as models of Hugging Face do. With attention and tied weights."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(7, 4)
        self.layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.out = torch.nn.Linear(4, 7, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, *, tokens, labels):
        logits = self.out(self.layer(self.embed(tokens)))
        return SimpleNamespace(loss=ENTROPY(logits.flatten(0, 1), labels.flatten()), logits=logits)


@pytest.mark.parametrize("loss", [None, lambda outputs, batch: ENTROPY(outputs.logits.mT, batch["labels"])])
def test_a_dictionary_of_arguments_and_attention(loss):
    torch.manual_seed(0)
    model, data = Named(), {"tokens": torch.arange(6).reshape(2, 3), "labels": torch.ones(2, 3, dtype=torch.long)}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, optimizer, data, loss, every=1)
    monitor.batch(data)
    model(**data).loss.backward()
    optimizer.step()
    assert monitor.rows[0]["sharpness"] > 0
    assert monitor.rows[0]["batch_edge"] == pytest.approx(monitor.rows[0]["edge"])


class Recurrent(torch.nn.Module):
    """An LSTM, and a layer that is computed again in every backward pass, in the way that `reentrant` says."""

    def __init__(self, reentrant=None):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.out = torch.nn.LSTM(3, 4, batch_first=True), torch.nn.Linear(4, 2)
        self.reentrant = reentrant

    def forward(self, x):
        h = self.cell(x)[0][:, -1]
        if self.reentrant is None:
            return self.out(h.tanh())
        layer = lambda h: self.out(h.tanh())  # noqa: E731
        return torch.utils.checkpoint.checkpoint(layer, h, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_layer_is_computed_again_at_the_same_parameters(reentrant):
    """The step has moved the module's own parameters by then."""
    rows = []
    for kind in (None, reentrant):
        model = Recurrent(kind).double()
        torch.manual_seed(1)
        data = torch.randn(6, 5, 3, dtype=torch.float64), torch.tensor([0, 1] * 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
        monitor = Monitor(model, optimizer, data, ENTROPY, every=1)
        train(model, data, optimizer, 2, loss=ENTROPY)
        rows.append(monitor.rows)
        assert model.cell._flat_weights[0] is model.cell.weight_ih_l0
    for one, other in zip(*rows, strict=True):
        for name in ("edge", "sharpness", "loss"):
            assert one[name] == pytest.approx(other[name], rel=1e-9)


def test_called_by_hand():
    """For loops whose optimiser has no hooks."""
    model, data = quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, optimizer, data, half_square, every=1, attach=False)
    train(model, data, optimizer)
    assert monitor.rows == []
    half_square(model(data[0]), data[1]).backward()
    monitor.before_step()
    optimizer.step()
    monitor.after_step()
    assert len(monitor.rows) == 1


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g


def test_what_is_refused():
    model, data = quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.ones(1))], lr=0.1)
    half = torch.nn.Linear(4, 1).half()
    cases = [
        ((None, optimizer, data, half_square), "model must be a torch.nn.Module"),
        ((model, model, data, half_square), "optimizer must be an optimiser of torch"),
        ((model, other, data, half_square), "one of the parameters of the model; got '2 parameters, of which"),
        ((model, optimizer, "data", half_square), r"data must be batches of tensors.*\(x, y\)"),
        ((model, optimizer, data, lambda f, y: f), "loss must be one number for a batch"),
        ((model, optimizer, data, lambda f, y: f.detach().sum()), "loss must be a differentiable function"),
        ((model, optimizer, data, lambda f, y: (Once.apply(f) ** 2).sum()), "twice diff.*got .*once_differentiable"),
        ((half, torch.optim.SGD(half.parameters()), data, half_square), "float32 or float64"),
        ((model, optimizer, torch.utils.data.DataLoader([]), half_square), "a DataLoader with a batch"),
    ]  # fmt: skip
    for arguments, message in cases:
        with pytest.raises(ArgumentError, match=message):
            Monitor(*arguments)
    for options, message in (
        ({"overhead": 0}, "overhead must be a finite number > 0"),
        ({"every": 0}, "every must be a whole number"),
        ({"accuracy": 1e-2}, "accuracy must be a steppe.Accuracy"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Monitor(model, optimizer, data, half_square, **options)
