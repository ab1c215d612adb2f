"""λ_max of PyTorch networks to 1%, and one product: ours against hessian-eigenthings, PyHessian and curvlinops.

An MLP, a CNN and a transformer, each at a random start, with random data in one batch. The peers find a value; ours
takes more products, for an interval that holds λ_max with confidence 0.99. Peers, which raise for fused attention, get
the plain formula.
"""

import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from steppe import curvature, measures
from steppe.estimate import Accuracy

from . import Ratio
from ._timing import best_time

RTOL, ROUNDS = 1e-2, 3
# hessian-eigenthings makes the given number of steps, whatever its tolerance.
STEPS = 20


@dataclass(frozen=True)
class Case:
    """A network with its data and loss."""

    name: str
    model: Any
    x: Any
    y: Any
    loss: Any


def measure() -> list[Ratio]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    rows: list[Ratio] = []
    with warnings.catch_warnings(), torch.random.fork_rng(), redirect_stdout(StringIO()):
        # The peers use parts of PyTorch that are deprecated.
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for case in cases():
            with sdpa_kernel(SDPBackend.MATH):
                rows += _compared(case)
    return rows


def cases() -> list[Case]:
    import torch
    from torch import nn

    class Transformer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.symbols, self.head = nn.Embedding(50, 32), nn.Linear(32, 50)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(self.symbols(x))).transpose(1, 2)

    mlp = nn.Sequential(nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 10))
    cnn = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.Tanh(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 49, 10),
    )  # fmt: skip
    loss, classes = nn.CrossEntropyLoss(), torch.randint(0, 10, (1000,))
    words = torch.randint(0, 50, (64, 17))
    return [
        Case("MLP 784-200-200-10, 1000 examples", mlp, torch.randn(1000, 784), classes, loss),
        Case("CNN 8-16, 128 images", cnn, torch.randn(128, 1, 28, 28), classes[:128], loss),
        Case("transformer, 2 layers, 64 texts", Transformer(), words[:, :-1], words[:, 1:], loss),
    ]


def _compared(case: Case) -> list[Ratio]:
    import torch

    import steppe.torch

    problem = steppe.torch.Problem(case.model, (case.x, case.y), case.loss)
    truth = measures.sharpness(problem, accuracy=Accuracy(1e-4)).value

    def ours() -> float:
        return measures.sharpness(problem, accuracy=Accuracy(RTOL)).value

    seconds = best_time(ours, rounds=ROUNDS)
    rows = [_row(case, name, seconds, ours(), find, truth) for name, find in _peers(case).items()]
    v = np.random.default_rng(0).standard_normal(problem.w0.size).astype(np.float32)
    params = list(case.model.parameters())
    gradient = best_time(lambda: torch.autograd.grad(case.loss(case.model(case.x), case.y), params))
    operator = curvature.hessian(problem)
    product = best_time(lambda: operator(v))
    rows.append(
        Ratio(f"a product, {case.name}", "one gradient", product / gradient, 1.0, "gradients", gradient / product)
    )
    if find_spec("curvlinops") is not None:
        theirs, column = _curvlinops(case), torch.from_numpy(v)
        peer = best_time(lambda: theirs @ column)
        rows.append(
            Ratio(
                f"a product, {case.name}",
                "curvlinops",
                product / gradient,
                peer / gradient,
                "gradients",
                peer / product,
            )
        )
    return rows


def _row(case: Case, name: str, seconds: float, value: float, find: Callable[[], float], truth: float) -> Ratio:
    found = find()
    peer = best_time(find, rounds=ROUNDS)
    note = f"errors: ours {abs(value / truth - 1):.0e}, theirs {abs(found / truth - 1):.0e}"
    return Ratio(f"λ_max to 1%, {case.name}", name, seconds, peer, "s", peer / seconds, note)


def _peers(case: Case) -> dict[str, Callable[[], float]]:
    """The installed libraries by name; each function returns λ_max."""
    known: dict[str, tuple[str, Callable[[Case], float]]] = {
        "curvlinops, eigsh": ("curvlinops", _by_curvlinops),
        "PyHessian": ("pyhessian", _by_pyhessian),
        f"hessian-eigenthings, {STEPS} steps": ("hessian_eigenthings", _by_eigenthings),
    }
    return {
        name: lambda work=work: work(case)  # type: ignore[misc]
        for name, (module, work) in known.items()
        if find_spec(module) is not None
    }


def _curvlinops(case: Case) -> Any:
    from curvlinops import HessianLinearOperator  # type: ignore[import-untyped]

    params = list(case.model.parameters())
    return HessianLinearOperator(case.model, case.loss, params, [(case.x, case.y)], check_deterministic=False)


def _by_curvlinops(case: Case) -> float:
    return float(eigsh(_curvlinops(case).to_scipy(), k=1, which="LA", tol=RTOL, return_eigenvectors=False)[0])


def _by_pyhessian(case: Case) -> float:
    theirs: Any = import_module("pyhessian.hessian")
    found = theirs.hessian(case.model, case.loss, data=(case.x, case.y), cuda=False)
    values, _ = found.eigenvalues(maxIter=300, tol=0.1 * RTOL)
    case.model.train()  # it leaves the model in evaluation mode
    return float(values[0])


def _by_eigenthings(case: Case) -> float:
    import hessian_eigenthings as theirs  # type: ignore[import-untyped]

    operator = theirs.HessianOperator(case.model, [(case.x, case.y)], theirs.supervised_loss(case.loss))
    return float(theirs.lanczos(operator, k=1, max_iter=STEPS, which="LA", seed=0).eigenvalues[0])
