"""λ_max of PyTorch networks to 1%, one product, and the monitor, against other libraries and the bare loop.

hessian-eigenthings, PyHessian and curvlinops on an MLP, a CNN and a transformer, each at a random start, with random
data in one batch; and the errors of each on batches of which the last is smaller. The peers find a value; ours takes
more products, for an interval that holds λ_max with confidence 0.99. Peers, which raise for fused attention, get the
plain formula. The last rows are those of the benchmark `monitor`.
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
from scipy.sparse.linalg import LinearOperator, eigsh

import steppe
from steppe import curvature, measures
from steppe.estimate import Accuracy

from . import Ratio, monitor
from ._timing import best_times

# λ_max, and the number of products that it took.
Found = tuple[float, int]

RTOL, ROUNDS = 1e-2, 3
# hessian-eigenthings makes the given number of steps, whatever its tolerance.
STEPS = 20


@dataclass(frozen=True)
class Case:
    """A network with its data and loss."""

    name: str
    model: Any
    data: list[tuple[Any, Any]]
    loss: Any


def measure() -> list[Ratio]:
    if not monitor.has_torch():
        return []
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
        rows += ragged()
    return rows + monitor.measure()


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
        Case("MLP 784-200-200-10, 1000 examples", mlp, [(torch.randn(1000, 784), classes)], loss),
        Case("CNN 8-16, 128 images", cnn, [(torch.randn(128, 1, 28, 28), classes[:128])], loss),
        Case("transformer, 2 layers, 64 texts", Transformer(), [(words[:, :-1], words[:, 1:])], loss),
    ]


def _compared(case: Case) -> list[Ratio]:
    """Seconds, products and relative errors of λ_max to 1%; seconds of one product beside those of a gradient."""
    import torch

    problem = steppe.torch.Problem(case.model, case.data, case.loss)
    truth = measures.sharpness(problem, accuracy=Accuracy(1e-4)).value

    def ours() -> Found:
        found = measures.sharpness(problem, accuracy=Accuracy(RTOL))
        return found.value, found.matvecs

    known = {"ours": ours, **_peers(case)}
    rows = []
    seconds = best_times({name: (find, 1) for name, find in known.items()}, rounds=ROUNDS)
    results = {name: find() for name, find in known.items()}
    for name in [name for name in known if name != "ours"]:
        rows += [
            _row(f"λ_max to 1%, {case.name}", name, seconds["ours"], seconds[name], "s"),
            _row(f"products, {case.name}", name, results["ours"][1], results[name][1], "products"),
            _error(case, name, results["ours"], results[name], truth),
        ]
    v = np.random.default_rng(0).standard_normal(problem.w0.size).astype(np.float32)
    params, (x, y) = list(case.model.parameters()), case.data[0]
    operator = curvature.hessian(problem)
    contenders: dict[str, Callable[[], object]] = {
        "one gradient": lambda: torch.autograd.grad(case.loss(case.model(x), y), params),
        "ours": lambda: operator(v),
    }
    if find_spec("curvlinops") is not None:
        theirs, column = _curvlinops(case), torch.from_numpy(v)
        contenders["curvlinops"] = lambda: theirs @ column
    each = best_times({name: (work, 1) for name, work in contenders.items()})
    gradient = each["one gradient"]
    return rows + [
        _row(f"a product, {case.name}", name, each["ours"] / gradient, each[name] / gradient, "gradients")
        for name in contenders
        if name != "ours"
    ]


def _row(subject: str, peer: str, ours: float, theirs: float, unit: str) -> Ratio:
    return Ratio(subject, peer, ours, theirs, unit, theirs / ours)


def _error(case: Case, name: str, ours: Found, theirs: Found, truth: float) -> Ratio:
    # Below the accuracy of the truth, errors are equal.
    mine, other = (max(abs(found[0] / truth - 1), 1e-4) for found in (ours, theirs))
    return _row(f"error of λ_max, {case.name}", name, mine, other, "relative, at least 1e-4")


def ragged() -> list[Ratio]:
    """Errors on 130 examples in batches of 32: the last batch has two."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 4))
    x, y = torch.randn(130, 20), torch.randint(0, 4, (130,))
    case = Case("130 examples by 32", model, list(zip(x.split(32), y.split(32), strict=True)), nn.CrossEntropyLoss())
    problem = steppe.torch.Problem(model, (x, y), case.loss)
    H = curvature.hessian(problem)
    dense = np.stack([np.asarray(H(e), np.float64) for e in np.eye(problem.w0.size, dtype=np.float32)])
    truth = float(np.linalg.eigvalsh(dense)[-1])
    found = measures.sharpness(steppe.torch.Problem(model, case.data, case.loss), accuracy=Accuracy(RTOL))
    return [_error(case, name, (found.value, found.matvecs), find(), truth) for name, find in _peers(case).items()]


def _peers(case: Case) -> dict[str, Callable[[], Found]]:
    """The installed libraries by name; each function returns λ_max and the number of products."""
    known: dict[str, tuple[str, Callable[[Case], Found]]] = {
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
    return HessianLinearOperator(case.model, case.loss, params, case.data, check_deterministic=False)


def _by_curvlinops(case: Case) -> Found:
    operator, products = _curvlinops(case).to_scipy(), 0

    def product(v: Any) -> Any:
        nonlocal products
        products += 1
        return operator.matvec(v)

    counted = LinearOperator(operator.shape, product, dtype=operator.dtype)
    return float(eigsh(counted, k=1, which="LA", tol=RTOL, return_eigenvectors=False)[0]), products


def _by_pyhessian(case: Case) -> Found:
    theirs: Any = import_module("pyhessian.hessian")
    whole = {"data": case.data[0]} if len(case.data) == 1 else {"dataloader": case.data}
    found = theirs.hessian(case.model, case.loss, **whole, cuda=False)
    product, products = (theirs.hessian_vector_product, found.dataloader_hv_product), 0

    def counting(work: Any) -> Any:
        def counted(*args: Any) -> Any:
            nonlocal products
            products += 1
            return work(*args)

        return counted

    theirs.hessian_vector_product, found.dataloader_hv_product = map(counting, product)
    try:
        values, _ = found.eigenvalues(maxIter=300, tol=0.1 * RTOL)
    finally:
        theirs.hessian_vector_product = product[0]
    case.model.train()  # it leaves the model in evaluation mode
    return float(values[0]), products


def _by_eigenthings(case: Case) -> Found:
    import hessian_eigenthings as theirs  # type: ignore[import-untyped]

    operator = theirs.HessianOperator(case.model, case.data, theirs.supervised_loss(case.loss))
    found = theirs.lanczos(operator, k=1, max_iter=STEPS, which="LA", seed=0)
    return float(found.eigenvalues[0]), int(found.iterations)
