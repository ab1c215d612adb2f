"""steppe audit: factories, checkpoints, what is printed and exit codes."""

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import steppe
from steppe.cli import main

MODULE = """
import numpy as np, steppe

def product():
    params = {"a": np.ones(()), "b": np.ones(())}
    return steppe.Problem(lambda p, x: p["a"] * p["b"] * x, params, np.ones(1), np.ones(1), steppe.losses.half_mse)

def trained():
    return product(), steppe.dynamics.GD(1.5)

def five():
    return 1, 2, 3, 4, 5

def three():
    return 3
"""


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audited.py").write_text(MODULE)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["audit", *map(str, arguments)])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_problem_with_its_optimiser(call, tmp_path):
    """½(ab − 1)² at (1, 1): λ = 2, and its edge at η = 1.5 is ηλ/2 = 1.5, beyond 1."""
    code, out, _ = call("audited:trained", "--html", tmp_path / "page.html")
    assert code == 0
    assert "too large for this point" in " ".join(out.split())
    assert f"wrote {tmp_path / 'page.html'}" in out
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_json_alone(call):
    code, out, _ = call("audited:product", "--json", "--lr", 0.5, "--momentum", 0.5)
    assert code == 0
    found = strict(out)
    assert found["estimates"]["sharpness"]["value"] == pytest.approx(2.0)
    assert found["estimates"]["edge"]["value"] == pytest.approx(0.5 * 2 / (2 * 1.5))
    assert {"checks", "reading"} <= set(found)


def test_checkpoints_are_compared(call, tmp_path):
    """At (a, 1/a) the loss is zero and λ = a² + 1/a²: sharper, but the same function."""
    for name, a in (("flat", 1.0), ("sharp", 4.0)):
        save_file({"a": np.array(a), "b": np.array(1 / a)}, tmp_path / f"{name}.safetensors")
    code, out, _ = call("audited:product", "--json", "--checkpoint", "flat.safetensors", "sharp.safetensors")
    assert code == 0
    found = strict(out)
    values = [audit["estimates"]["sharpness"]["value"] for audit in found["audits"].values()]
    assert values == pytest.approx([2.0, 16.0625])
    order = next(o for o in found["comparison"] if o["measure"] == "sharpness")
    assert order["order"] == ["flat.safetensors", "sharp.safetensors"]
    assert order["separated"]


def test_numbers_that_cannot_be_trusted_are_exit_code_1(call, tmp_path):
    save_file({"a": np.array(np.nan), "b": np.array(1.0)}, tmp_path / "nan.safetensors")
    code, out, _ = call("audited:product", "--checkpoint", "nan.safetensors")
    assert code == 1
    assert "diverged" in out


def test_the_example_is_at_the_edge_of_stability():
    problem, optimizer = steppe.auditing.example()
    top = steppe.measures.sharpness(problem, accuracy=steppe.Accuracy(0.01)).value
    assert 0.9 < top * float(optimizer.lr) / 2 < 1.1


def test_the_example_from_the_shell(call):
    """Its first parts; the others are rows that say that the budget was over."""
    code, out, _ = call("--example", "--json", "--seconds", 0.01)
    found = strict(out)
    assert code == 0
    assert found["parameters"] == 64 * 16 + 16 + 160 + 10
    assert "budget" in found["missing"]["density"]


TORCH = """
import torch

def make():
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1, bias=False)
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    return model, (x, x @ torch.ones(2, 1)), torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_torch_module_with_a_checkpoint(call, tmp_path):
    """(1/2) Σ (xᵢ·w − yᵢ)²: λ = 4 everywhere, and the loss is zero at w = (1, 1)."""
    torch = pytest.importorskip("torch")
    (tmp_path / "of_torch.py").write_text(TORCH)
    torch.save({"weight": torch.ones(1, 2)}, tmp_path / "ones.pt")
    code, out, _ = call("of_torch:make", "--checkpoint", "ones.pt", "--json")
    assert code == 0
    estimates = strict(out)["estimates"]
    assert estimates["loss"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert estimates["sharpness"]["value"] == pytest.approx(4.0, rel=1e-5)
    assert estimates["edge"]["value"] == pytest.approx(0.2, rel=1e-5)


class Code:
    def __reduce__(self):
        return exec, ("open('executed', 'w').close()",)


def test_no_code_of_a_checkpoint_is_executed(call, tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": Code()}, tmp_path / "code.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Code()))
    for name in ("code.pt", "plain.pt"):
        code, _, err = call("audited:product", "--checkpoint", name)
        assert code == 2
        assert "weights only" in err
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Name MODULE:FACTORY"),
        (("audited:product", "--example"), "not both"),
        (("audited:product", "--momentum", 0.9), "belongs to --lr"),
        (("audited:nothing",), "cannot use 'audited:nothing'"),
        (("audited:five",), "a tuple of 5"),
        (("audited:three",), "a steppe.Problem"),
        (("audited:product", "--checkpoint", "gone.pt"), "a file that exists"),
        (("audited:product", "--checkpoint", "other.safetensors"), "without 'b'"),
        (("audited:product", "--checkpoint", "shape.safetensors"), "of shape ()"),
        (("audited:product", "--checkpoint", "broken.safetensors"), "a whole safetensors file"),
    ],
)
def test_wrong_use(call, tmp_path, arguments, message):
    save_file({"a": np.ones(())}, tmp_path / "other.safetensors")
    save_file({"a": np.ones(()), "b": np.ones(3)}, tmp_path / "shape.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"broken")
    code, out, err = call(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert out == ""
