"""A paper declared in one place, and what `verify` and `reproduce` make of it."""

import pickle
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.experiments import (
    Experiment,
    Finding,
    NotJudgedError,
    Paper,
    Shown,
    experiment,
    measure,
    override,
    reproduce,
    seeds,
    verify,
)
from steppe.figures import panels
from steppe.store import Computed, Store, address
from steppe.sweep import execute


def computed(value):
    return Computed({"step": np.arange(2), "value": np.array([0.0, value])}, {"w": np.zeros(1)}, {"value": value})


@dataclass(frozen=True)
class Row:
    rho: float
    epochs: int


@dataclass(frozen=True)
class Square(Experiment, kind="test/square"):
    side: float = 2.0
    seed: int = 0
    name: str = "square"
    rows: tuple[Row, ...] = (Row(0.1, 10), Row(0.2, 20))

    def run(self, checkpoint, progress):
        import jax.numpy as jnp

        return computed(float(jnp.asarray(self.side) ** 2 + self.seed))


@experiment("test/sum")
def total(checkpoint, progress, *, terms: tuple[float, ...] = (1.0, 2.0), seed: int = 0):
    """The sum of the terms."""
    return computed(sum(terms) + seed)


def numbers(runs):
    series = [{"x": [0, 1], "y": e.curves["value"].tolist(), "kind": "line", "colour": "blue"} for e in runs]
    return {"title": "squares", "panels": [{"x": "step", "y": "value", "series": series}]}


PAPER = Paper("little", "A little paper", module=__name__)
FIGURE = PAPER.figure(
    "fig1", "squares", runs={"smoke": seeds(Square(), 2), "paper": (Square(3.0),)}, show=Shown(numbers, panels)
)
FIGURE_2 = PAPER.figure(
    "fig2",
    "sums",
    runs={"smoke": (total(),), "laptop": (total(seed=5),)},
    show=Shown(numbers, panels),
    by_name=["laptop"],
)


@PAPER.claim("larger", "Figure 1", "Squares are larger than sums.", "ratio above 1", needs=(FIGURE, FIGURE_2))
def _(squares, sums):
    ratio = squares[0].result["value"] / sums[0].result["value"]
    return Finding(ratio, ratio > 1, f"{len(squares)} seeds")


@PAPER.misprint("eq1", "Eq. 1", printed=("2 · 2 = 5, as printed.", "0"), corrected=("2 · 2 = 4.", "0"))
def _(as_printed):
    off = abs(2 * 2 - (5 if as_printed else 4))
    return Finding(off, off == 0)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The paper's module under its name, as other processes import it."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or sys.modules[Square.__module__])


def test_verify(tmp_path):
    larger, printed, corrected = verify(PAPER, store=Store(tmp_path), workers=1)
    assert (larger.id, larger.measured, larger.verdict, larger.detail) == ("little/larger", 4 / 3, "holds", "2 seeds")
    assert (printed.id, printed.verdict, printed.misprint, printed.as_expected) == (
        "little/eq1-printed", "fails", True, True,
    )  # fmt: skip
    assert (corrected.source, corrected.verdict) == ("Eq. 1, corrected", "holds")


def test_reproduce(tmp_path):
    paths = reproduce(FIGURE, store=Store(tmp_path), out=tmp_path / "out", workers=1)
    assert [p.name for p in paths] == ["fig1-smoke.png", "fig1-smoke.pdf", "fig1-smoke.json"]
    with pytest.raises(ArgumentError, match="not offered at laptop scale"):
        reproduce(FIGURE, "laptop", store=Store(tmp_path), out=tmp_path)


@pytest.mark.parametrize(("holds", "misprint", "fine"), [(1, 0, True), (0, 0, False), (0, 1, True), (1, 1, False)])
def test_verdicts(tmp_path, holds, misprint, fine):
    paper = Paper("p", "t", module=__name__)
    paper.claim("c", "s", "statement", "expected", misprint=bool(misprint))(lambda: Finding(1.5, bool(holds), "detail"))
    result = measure(paper, paper.claims[0], "smoke", Store(tmp_path))
    assert (result.verdict, result.measured, result.as_expected) == ("holds" if holds else "fails", 1.5, fine)


@pytest.mark.parametrize(("holds", "fine"), [(False, True), (True, False)])
def test_a_statement_that_is_known_to_fail(tmp_path, holds, fine):
    """At the scales that are named, no others."""
    paper = Paper("p", "t", module=__name__)
    paper.claim("c", "s", "statement", "expected", fails_at=["smoke"])(lambda: Finding(0.2, holds))
    there, elsewhere = (measure(paper, paper.claims[0], scale, Store(tmp_path)) for scale in ("smoke", "paper"))
    assert (there.as_expected, there.known_to_fail) == (fine, True)
    assert (elsewhere.as_expected, elsewhere.known_to_fail) == (holds, False)


def test_a_partial_claim_is_judged_on_what_is_there(tmp_path):
    """Only one of two seeds is in the store, and fig2 is not offered at laptop scale except by its name."""
    paper, store = Paper("p", "t", module=__name__, figures=[FIGURE, FIGURE_2]), Store(tmp_path)
    for id, partial in (("all", False), ("some", True)):
        paper.claim(id, "s", "t", "e", needs=(FIGURE, FIGURE_2), partial=partial)(
            lambda squares, sums: Finding(len(squares), not sums)
        )
    whole, some = paper.claims
    assert measure(paper, some, "smoke", store).verdict == "not-run"
    execute(FIGURE.runs["smoke"][:1], store, workers=1)
    assert measure(paper, whole, "smoke", store).verdict == "not-run"
    found = measure(paper, some, "smoke", store)
    assert (found.verdict, found.measured) == ("holds", 1.0)


def test_runs_that_do_not_decide_a_claim(tmp_path):
    paper = Paper("p", "t", module=__name__)

    @paper.claim("c", "s", "statement", "expected")
    def _():
        raise NotJudgedError("too few rates")

    result = measure(paper, paper.claims[0], "smoke", Store(tmp_path))
    assert (result.verdict, result.detail, result.as_expected) == ("not-run", "too few rates", True)


def test_a_claim_whose_runs_are_missing_is_not_run(tmp_path):
    result = measure(PAPER, PAPER.find_claim("larger"), "smoke", Store(tmp_path))
    assert (result.verdict, result.measured) == ("not-run", None)
    assert "fig1, fig2" in result.detail
    result = measure(PAPER, PAPER.find_claim("larger"), "laptop", Store(tmp_path))
    assert result.detail == "fig1, fig2 is not offered at laptop scale"


def test_names():
    assert PAPER.find_figure("fig1") == PAPER.matching("FIG1")[0][0] == FIGURE
    panels = Paper("panels", "t", module=__name__)
    for id in ("fig1a", "fig1b", "fig10a", "fig1-more"):
        panels.figure(id, "t", runs={}, show=Shown(numbers, panels))
    assert [f.id for f in panels.matching("fig1")[0]] == ["fig1a", "fig1b"]
    assert FIGURE.name == "little/fig1"
    figures, claims = PAPER.matching("*1*")
    assert ([f.id for f in figures], [c.id for c in claims]) == (["fig1"], ["eq1-printed", "eq1-corrected"])
    for look in (PAPER.find_figure, PAPER.matching):
        with pytest.raises(ArgumentError, match="Did you mean 'fig"):
            look("fig3x")
    with pytest.raises(ArgumentError, match="Did you mean 'larger'"):
        PAPER.find_claim("large")


def test_an_id_is_declared_once():
    with pytest.raises(ArgumentError, match="'fig1' already"):
        PAPER.figure("fig1", "again", runs={}, show=Shown(numbers, panels))
    with pytest.raises(ArgumentError, match="'larger' already"):
        PAPER.claim("larger", "s", "t", "e")(lambda: Finding(0.0, True))


def test_a_paper_travels_by_its_module():
    assert b"squares" not in pickle.dumps(PAPER)
    assert pickle.loads(pickle.dumps(PAPER)).id == "little"


def test_experiments():
    assert Square.KIND == "test/square"
    assert [s.seed for s in seeds(Square(3.0), 3, first=1)] == [1, 2, 3]
    assert total(terms=(2.0,)) == total(terms=(2.0,), seed=0) != total()
    assert repr(total()) == "total(terms=(1.0, 2.0), seed=0)"
    assert total.__doc__ == "The sum of the terms."
    assert address(total()) != address(total(seed=1))
    assert pickle.loads(pickle.dumps(total(seed=3))) == total(seed=3)
    assert len({address(Square()), address(Square(side=3.0)), address(Square(seed=1))}) == 3


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_precision_is_the_experiments(precision):
    import jax

    @experiment("test/precision")
    def seen(checkpoint, progress, *, precision: str = precision):
        return jax.numpy.ones(1).dtype.name

    with jax.enable_x64(precision == "float32"):
        assert seen().compute() == precision


def test_one_thing_changed():
    changed = override(Square(), ["side=3", "rho=0.5", "name=other"])
    assert (changed.side, changed.name, [row.rho for row in changed.rows]) == (3.0, "other", [0.5, 0.5])
    assert address(changed) != address(Square())
    assert override(Square(), ["epochs=1e3"]).rows[0].epochs == 1000
    for bad, message in (
        ("sied=3", "Did you mean 'side'"),
        ("side", "KEY=VALUE"),
        ("seed=many", "not of type int"),
        ("seed=1.5", "not of type int"),
        ("rows=3", "no parameter 'rows'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            override(Square(), [bad])
