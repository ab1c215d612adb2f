"""Models of torch.compile, in one file because torch._dynamo takes seconds to import."""

import numpy as np
import pytest
import torch

from steppe.curvature import hessian
from steppe.torch import SAM, Monitor, Problem

ENTROPY = torch.nn.functional.cross_entropy


def net():
    torch.manual_seed(0)
    layers = (torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    return torch.nn.Sequential(*layers)


def data():
    torch.manual_seed(1)
    return torch.randn(16, 5), torch.randint(0, 2, (16,))


def train(model, optimizer, steps):
    x, y = data()

    def closure():
        optimizer.zero_grad()
        value = ENTROPY(model(x), y)
        value.backward()
        return value

    for _ in range(steps):
        optimizer.step(closure)


def test_the_monitor_runs_the_modules_as_they_are():
    """Code that AOTAutograd made has no second derivative."""
    rows = []
    for wrap in (lambda model: model, lambda model: torch.compile(model, backend="aot_eager")):
        model = wrap(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Monitor(model, optimizer, data(), ENTROPY, every=1) as monitor:
            train(model, optimizer, 2)
        rows.append(monitor.rows[-1])
    # Single precision, and the tracker's own accuracy.
    assert rows[0]["sharpness"] == pytest.approx(rows[1]["sharpness"], rel=1e-5)


def test_sam_compiles_once_and_updates_batch_statistics_once():
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    plain, compiled = net(), net()
    train(plain, SAM(torch.optim.SGD(plain.parameters(), lr=0.1), 0.1), 4)
    sam = SAM(torch.optim.SGD(compiled.parameters(), lr=0.1), 0.1, model=compiled)
    train(torch.compile(compiled, backend=backend), sam, 4)
    assert len(graphs) == 1
    for a, b in zip(plain.state_dict().values(), compiled.state_dict().values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_products_of_compiled_modules():
    """Compiled as a whole, in place, or in a part; the names of a part carry the wrapper."""
    x, y = data()

    def whole(model):
        return torch.compile(model, backend="aot_eager")

    def in_place(model):
        model.compile(backend="aot_eager")
        return model

    def part(model):
        model[0] = torch.compile(model[0], backend="aot_eager")
        return model

    products = []
    for wrap in (lambda model: model, whole, in_place, part):
        p = Problem(wrap(net()), (x, y), torch.nn.CrossEntropyLoss())
        products.append(hessian(p)(np.ones(p.w0.size)))
    for product in products[1:]:
        np.testing.assert_array_equal(product, products[0])
