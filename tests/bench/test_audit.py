"""The benchmark of torch problems on a small network: every row compares values that agree."""

import pytest

torch = pytest.importorskip("torch")

from bench import audit  # noqa: E402


def small():
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
    return [audit.Case("small", model, [(x, y)], torch.nn.CrossEntropyLoss())]


def test_the_rows(monkeypatch):
    monkeypatch.setattr(audit, "cases", small)
    monkeypatch.setattr(audit, "ROUNDS", 1)
    monkeypatch.setattr(audit.monitor, "measure", list)
    state = torch.get_rng_state()
    rows = audit.measure()
    assert torch.equal(torch.get_rng_state(), state)
    kinds = {"λ_max to 1%", "products", "error of λ_max", "a product"}
    assert {row.subject.rpartition(", ")[0] for row in rows} == kinds
    for row in rows:
        assert row.ratio == pytest.approx(row.theirs / row.ours)
        if row.subject.startswith("error"):
            assert row.ours <= 2 * audit.RTOL
            # Of the peers, hessian-eigenthings takes the mean over batches, whatever their size.
            assert row.theirs <= 2 * audit.RTOL or ("by 32" in row.subject and row.peer.startswith("hessian-eigen"))
