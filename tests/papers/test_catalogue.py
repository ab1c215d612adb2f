import dataclasses
import re

import pytest

from steppe.check import ArgumentError
from steppe.experiments import _reproduce as reproduce
from steppe.experiments._paper import Claim, Figure, Finding, Paper, figures, paper, papers
from steppe.experiments._verify import Measured, measure
from steppe.papers.wen2023.table2 import PAPER as TABLE2
from steppe.report.page import page
from steppe.store import Store, address


@pytest.mark.parametrize("found", papers().values(), ids=lambda p: p.id)
def test_every_paper_is_well_formed(found):
    ids = [f.id for f in found.figures] + [c.id for c in found.claims]
    assert len(set(ids)) == len(ids)
    for figure in found.figures:
        assert set(figure.specs) == set(figure.seconds)
        assert {"paper"} <= set(figure.specs) <= {"smoke", "laptop", "paper"}
        for specs in figure.specs.values():
            assert len({address(s) for s in specs}) == len(specs)
            assert specs or figure.numbers([])  # drawn from theory alone
    for claim in found.claims:
        assert claim.statement
        assert claim.source
        assert claim.expected
        for need in claim.needs:
            found.figure(need)


# lr, rho, batch size, weight decay, epochs, one tuple a row.
ROWS = {
    "fig1a": [(0.01, 0, 100, 0.05, 1e5)],
    "fig1b": [(0.01, 0.05, 1, 0, 1e5)],
    "fig2a": [(0.005, 0.1, 1, 0, 1e5), (0.003, 0.6, 1, 0, 1e5)],  # printed with ρ = 1 in its second row
    "fig4a": [(0.01, 0, 100, 0.05, 1e5)],
    "fig4b": [(0.01, 0.05, 1, 0, 2e5), (0.01, 0.1, 1, 0, 4e5)],
    "fig5a": [(0.001, 0, 1, 0.05, 1e5)],
    "fig5b": [(0.0005, 0.05, 1, 0, 1e5), (0.001, 0.1, 1, 0, 1e5), (0.005, 1, 1, 0, 5e3)],
    "fig6a": [(0.1, 0.1, 1, 0, 1e5)],
    "fig6b": [(0.01, 0.1, 1, 0, 5e2), (0.01, 0.5, 1, 0, 5e2), (0.01, 1, 1, 0, 5e2)],
    "fig7a": [(0.01, 0.2, 1, 0, 1e5)],
    "fig7b": [(0.01, 0.2, 1, 0, 1e5)],
    "fig8a": [(0.1, 0, 10, 0.01, 1e5)],
    "fig8b": [(0.1, 0.2, 1, 0, 1e5)],
    "fig9a": [(0.01, 0, 1, 0.05, 1e5)],
    "fig9b": [(0.1, 0.2, 1, 0, 1e5)],
    "fig10a": [(0.1, 0.2, 1, 0, 4e4)],
    "fig10b": [(1, 0.5, 1, 0, 1e3), (1, 1, 1, 0, 1e5)],
    "fig11a": [(0.01, 0, 1, 0.05, 1e5)],
    "fig11b": [(0.01, 0.05, 1, 0, 1e5)],
}
NETWORKS = {"1a": "no-bias", "1b": "no-bias", "2a": "sim-bn", "6a": "sim-ln", "6b": "sim-ln", "7a": "no-bias",
            "8a": "no-bias", "8b": "no-bias", "10a": "sim-bn", "10b": "sim-ln"}  # fmt: skip


@pytest.mark.parametrize("id", ROWS)
def test_table_2_is_the_papers(id):
    """wen2023, table 2 and appendix B; width 500 everywhere."""
    spec, name = TABLE2[id], id.removeprefix("fig")
    assert [(r.lr, r.rho, r.batch_size, r.weight_decay, r.epochs) for r in spec.stages] == ROWS[id]
    assert spec.network == NETWORKS.get(name, "bias")
    assert (spec.width, spec.n, spec.d) == (500, 100, 10 if name[0] == "7" else 30)
    assert spec.data == ("ball" if name[0] == "7" else "xor")
    assert spec.loss == ("logistic:0.2" if name[:-1] in ("8", "9", "10") else "mse")
    assert spec.activation == ("softplus" if name[0] == "5" else "relu")
    assert spec.depth == (3 if name[:-1] == "11" else 2)
    assert spec.first_layer_scale == (0.01 if name in ("6a", "10b") else 1.0)
    assert [r.held for r in spec.stages] == [10.0 if name == "6b" else 0.0] * len(spec.stages)


def test_names():
    assert [f.id for _, f in figures("wen2023/fig4b")] == ["fig4b"]
    assert len(figures("wen2023")) == len(paper("wen2023").figures)
    with pytest.raises(ArgumentError, match="Did you mean 'wen2023'"):
        paper("wen2032")
    with pytest.raises(ArgumentError, match="Did you mean 'fig4"):
        figures("wen2023/fig4")
    with pytest.raises(ArgumentError, match="wen2023/fig4b"):
        figures("wen203/fig4b")


def test_one_thing_changed():
    spec = TABLE2["fig4b"]
    changed = reproduce.override(spec, ["width=200", "rho=0.2", "precision=float64"])
    assert (changed.width, changed.precision, [r.rho for r in changed.stages]) == (200, "float64", [0.2, 0.2])
    assert address(changed) != address(spec)
    assert reproduce.override(spec, ["epochs=1e3"]).stages[0].epochs == 1000
    for bad, message in (
        ("wdth=200", "Did you mean 'width'"),
        ("width", "KEY=VALUE"),
        ("width=many", "not of type int"),
        ("width=1.5", "not of type int"),
        ("stages=3", "no parameter 'stages'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            reproduce.override(spec, [bad])


@dataclasses.dataclass(frozen=True)
class Nothing:
    n: int = 0


def little_paper(check, **options):
    figure = Figure("fig", "t", {"smoke": (Nothing(),), "paper": (Nothing(1),)}, dict, dict, {"smoke": 1, "paper": 1})
    return Paper("p", "t", (figure,), (Claim("c", "s", "statement", "expected", check, **options),))


@pytest.mark.parametrize(
    ("holds", "misprint", "verdict", "fine"),
    [
        (True, False, "holds", True),
        (False, False, "fails", False),
        (False, True, "fails", True),
        (True, True, "holds", False),
    ],
)
def test_verdicts(tmp_path, holds, misprint, verdict, fine):
    p = little_paper(lambda evidence: Finding(1.5, holds, "detail"), misprint=misprint)
    result = measure(p, p.claims[0], "smoke", Store(tmp_path))
    assert (result.verdict, result.measured, result.as_it_should, result.id) == (verdict, 1.5, fine, "p/c")


def test_a_claim_whose_runs_are_missing_is_not_run(tmp_path):
    p = little_paper(lambda evidence: Finding(1.0, True), needs=("fig",))
    result = measure(p, p.claims[0], "smoke", Store(tmp_path))
    assert (result.verdict, result.measured) == ("not-run", None)
    assert "fig" in result.detail


def test_the_report_is_one_page_with_everything_inside(tmp_path):
    png = tmp_path / "a.png"
    png.write_bytes(b"\x89PNG not really")
    row = Measured("p/<c>", "Thm 1", "a < b & c", "≥ 1", 1.25, "holds", False, "smoke", 0.1, "5 seeds")
    html = page([row], [("caption <x>", png)], version="1")
    assert "p/&lt;c&gt;" in html
    assert "a &lt; b &amp; c" in html
    assert "data:image/png;base64," in html
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert "1 of 1 claims" in html


def test_a_paper_cut_down_to_some_claims():
    """One by its name, several by a pattern, with the figures that these need and no others."""
    whole = paper("wen2023")
    one = whole.only("fig4b-attains-bound")
    assert [c.id for c in one.claims] == ["fig4b-attains-bound"]
    assert {f.id for f in one.figures} == set(whole.claim("fig4b-attains-bound").needs)
    some = whole.only("fig4b-*")
    assert len(some.claims) > 1
    assert [c.id for c in some.claims] == [c.id for c in whole.claims if c.id.startswith("fig4b-")]
    assert {f.id for f in some.figures} == {id for c in some.claims for id in c.needs}
    for wrong in ("fig4b", "none-*"):
        with pytest.raises(ArgumentError, match="has no claim"):
            whole.only(wrong)
