"""What holds for every paper, found by its folder."""

import subprocess
import sys

import pytest

from steppe.check import ArgumentError
from steppe.experiments import Experiment, expected_seconds
from steppe.papers import names, paper, papers
from steppe.store import address

PAPERS = ("conflicting-biases", "mulayoff2021", "multi-index", "wen2023")


def test_papers_are_found():
    assert set(PAPERS) <= set(names()) == set(papers())
    with pytest.raises(ArgumentError, match="Did you mean 'wen2023'"):
        paper("wen2032")


@pytest.mark.parametrize("id", names())
def test_every_paper_is_well_formed(id):
    found = paper(id)
    assert found.id == id
    assert found.module == f"steppe.papers.{id.replace('-', '_')}"
    for figure in found.figures:
        assert figure.paper == id
        assert {"paper"} <= set(figure.runs) <= {"smoke", "laptop", "paper"}
        for specs in figure.runs.values():
            assert all(isinstance(spec, Experiment) for spec in specs)
            assert len({address(spec) for spec in specs}) == len(specs)
            assert specs or figure.show.numbers([])  # drawn from theory alone
    for claim in found.claims:
        assert claim.statement
        assert claim.source
        assert claim.expected
        assert all(figure in found.figures for figure in claim.needs)


def test_expected_seconds_are_of_figures_that_there_are():
    from steppe.experiments._seconds import _known

    figures = {f.name: f for p in papers().values() for f in p.figures}
    assert {name: set(scales) - set(figures[name].runs) for name, scales in _known().items()} == {
        name: set() for name in _known()
    }
    assert all(expected_seconds(f, "smoke") is not None for f in figures.values() if f.runs.get("smoke"))


@pytest.mark.parametrize("id", names())
def test_naming_a_paper_imports_no_other_and_nothing_heavy(id):
    code = (
        "import sys; from steppe.papers import paper\n"
        f"paper({id!r})\n"
        "others = {m for m in sys.modules if m.startswith('steppe.papers.')}\n"
        f"others = {{m for m in others if not m.startswith('steppe.papers.{id.replace('-', '_')}')}}\n"
        "heavy = {'jax', 'numba', 'scipy', 'matplotlib', 'duckdb'} & set(sys.modules)\n"
        "assert not others and not heavy, (others, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
