"""The benchmark of torch problems on a small network: every row compares values that agree."""

import re

import pytest

torch = pytest.importorskip("torch")

from bench import torch_products  # noqa: E402


def small():
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
    return [torch_products.Case("small", model, x, y, torch.nn.CrossEntropyLoss())]


def test_the_rows(monkeypatch):
    monkeypatch.setattr(torch_products, "cases", small)
    monkeypatch.setattr(torch_products, "ROUNDS", 1)
    state = torch.get_rng_state()
    rows = torch_products.measure()
    assert torch.equal(torch.get_rng_state(), state)
    assert {row.subject for row in rows} == {"λ_max to 1%, small", "a product, small"}
    for row in rows:
        assert row.ratio == pytest.approx(row.theirs / row.ours)
        for error in re.findall(r"\d+e[-+]\d+", row.note):
            assert float(error) <= 2 * torch_products.RTOL
