"""docs/torch.md, "Coming from …": the lines of each library and ours run, and they find the same numbers."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import steppe

torch = pytest.importorskip("torch")
from cases.torch_nets import net  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
# What a user of the library has imported.
IMPORTS = {
    "PyHessian": ("pyhessian", "from pyhessian import hessian"),
    "hessian-eigenthings": (
        "hessian_eigenthings",
        "from hessian_eigenthings import HessianOperator, hutch_plus_plus, lanczos, supervised_loss",
    ),
    "curvlinops": (
        "curvlinops",
        "import scipy.sparse.linalg; from curvlinops import HessianLinearOperator, hutchinson_trace",
    ),
}


def snippets(peer):
    """Their lines and ours."""
    section = re.search(rf"^## Coming from {peer}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    theirs, ours = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]
    return theirs, ours


def number(found):
    """The number of an estimate, or the largest of several."""
    found = getattr(found, "value", getattr(found, "estimate", found))
    return max(map(number, found)) if isinstance(found, tuple | list) else float(np.max(np.asarray(found)))


@pytest.mark.parametrize("peer", IMPORTS)
def test_both_find_the_same(peer):
    module, imports = IMPORTS[peer]
    pytest.importorskip(module)
    _, (x, y) = net("mlp", n=64, dtype=torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(3, 20), torch.nn.Tanh(), torch.nn.Linear(20, 3))
    loss = torch.nn.CrossEntropyLoss()
    # Batches of one size, so that all of them are right.
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
    known = {"model": model, "loader": loader, "criterion": loss, "loss": loss, "params": list(model.parameters())}
    found = []
    for lines in snippets(peer):
        names = {**known, "torch": torch, "np": np, "steppe": steppe}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            exec(imports, names)
            exec(lines, names)
        model.train()  # PyHessian leaves it in evaluation mode
        found.append((number(names.get("eigenvalues", names.get("eigenvalue"))), number(names["trace"])))
    (top, trace), (our_top, our_trace) = found
    # Power iteration stops at a small change; hessian-eigenthings at a number of steps.
    np.testing.assert_allclose(top, our_top, rtol=0.1 if peer == "hessian-eigenthings" else 0.02)
    np.testing.assert_allclose(trace, our_trace, rtol=0.3)  # of at most a hundred random probes


def test_every_library_has_its_lines():
    assert re.findall(r"^## Coming from (.+)$", PAGE, re.MULTILINE) == list(IMPORTS)
    for peer in IMPORTS:
        assert [len(lines.strip().splitlines()) for lines in snippets(peer)] == [3, 3]
