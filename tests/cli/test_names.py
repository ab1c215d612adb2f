"""Names of papers, figures and claims on the command line; what list, explain and --set say; shapes of JSON."""

import json
import re
from pathlib import Path

import pytest
from command_line import TINY, call

from steppe.check import ArgumentError
from steppe.cli._list import listing
from steppe.cli._names import find
from steppe.store import Store


def names(*targets, **options):
    return [name for chosen in find(targets, **options) for name in chosen.names]


def test_names_with_and_without_their_paper():
    assert names("wen2023/fig4b") == names("fig4b") == names("FIG4B") == ["wen2023/fig4b"]
    assert names("table1") == ["wen2023/table1"]
    assert names("eq5-printed") == ["wen2023/eq5-printed"]
    assert names("wen2023/fig1") == ["wen2023/fig1a", "wen2023/fig1b"]
    assert names("conflicting-biases/fig1") == ["conflicting-biases/fig1"]
    assert names("fig4b", "wen2023/fig4b", "wen2023/fig4*b") == ["wen2023/fig4b"]
    assert {"wen2023/fig10a", "mulayoff2021/fig1", "conflicting-biases/fig1"} <= set(names("fig1*"))
    assert set(names("*/fig1")) == {"conflicting-biases/fig1", "mulayoff2021/fig1", "wen2023/fig1a", "wen2023/fig1b"}
    assert names("wen2023") == names("wen2023/") == names("wen2023/*")
    assert [chosen.paper.id for chosen in find([])] == [chosen.paper.id for chosen in find(["*/*"])]


def test_a_name_of_several_papers_is_listed():
    with pytest.raises(ArgumentError, match=r"several papers. Name one: conflicting-biases/fig1, mulayoff2021/fig1"):
        find(["fig1"])
    assert len(find(["fig1"], ambiguous=True)) == 3
    assert call("list", "fig1").returncode == 0


@pytest.mark.parametrize("target", ["nothing", "nothing*", "wen2023/nothing", "no*/fig1", "", "/", "[", "*/nothing"])
def test_a_name_of_nothing(target):
    with pytest.raises(ArgumentError, match=r"Did you mean|steppe list|Known"):
        find([target])


@pytest.mark.parametrize("width", [80, 100])
def test_the_list_fits_a_terminal(width):
    chosen = find([])
    lines = listing(chosen, headed=True, width=width)
    assert max(map(len, lines)) <= width
    first = {line.split(" ")[0].rstrip(":") for line in lines}
    assert {c.paper.id for c in chosen} | {id for c in chosen for id in c.ids} <= first


def test_the_list_by_paper_and_kind():
    def kinds(*arguments):
        return {(e["kind"], e["id"].partition("/")[0]) for e in json.loads(call("list", *arguments, "--json").stdout)}

    assert kinds("wen2023", "--kind", "claim") == {("claim", "wen2023")}
    assert kinds("wen2023", "mulayoff2021", "--kind", "figure") == {("figure", "wen2023"), ("figure", "mulayoff2021")}
    assert {paper for _, paper in kinds("--kind", "paper")} == {c.paper.id for c in find([])}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("eq5-printed", ["Eq. 5", "trace = 4√31", "eq5-corrected", "fails", "62.0988"]),
        ("wen2023/fig11b-attains-bound", ["Theorem 4.1", "wen2023/fig11b", "not-run", "wen2023/test_run_claims.py"]),
        ("fig4b", ["bias, 1-SAM", "smoke: 2", "wen2023/fig4b-attains-bound"]),
    ],
)
def test_explain(name, said, tmp_path):
    text = " ".join(call("explain", name, "--store", tmp_path).stdout.split())
    for words in said:
        assert words in text
    facts = json.loads(call("explain", name, "--store", tmp_path, "--json").stdout)
    if facts["kind"] == "claim":
        assert {"statement", "source", "expected", "check", "control", "verdict", "measured", "detail"} <= set(facts)


def test_changed_runs_carry_another_title_and_no_claims(tmp_path):
    places = "--store", tmp_path / "runs", "--out", tmp_path / "out"
    done = call("reproduce", "fig4b", *TINY, *places, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "changed: epochs=30, width=20, test=100. These are not the paper's runs" in done.stdout
    assert "its claims do not apply to them: wen2023/fig4b-flatter" in done.stdout
    (path,) = (tmp_path / "out" / "wen2023").glob("*.json")
    assert re.fullmatch(r"fig4b-smoke-[0-9a-f]{6}", path.stem)
    numbers = json.loads(path.read_text())
    assert "Fig. 4b · bias, 1-SAM" in numbers["title"]
    assert numbers["title"].endswith(" · changed: epochs=30, width=20, test=100")
    assert numbers["changed"] == ["epochs=30", "width=20", "test=100"]
    listed = json.loads(call("runs", "list", "--store", tmp_path / "runs", "--json").stdout)
    assert {run["version"] for run in listed} == {"0.1.0"}
    assert "0.1.0" in call("runs", "list", "--store", tmp_path / "runs").stdout


@pytest.mark.parametrize(
    "change",
    [
        "network=foo",
        "data=xxx",
        "activation=",
        "precision=float16",
        "width=1e999",
        "lr=nan",
        "lr=-Infinity",
        "seed=1e30x",
    ],
)
def test_changes_that_mean_nothing(change, tmp_path):
    done = call("reproduce", "fig4b", "--set", change, "--store", tmp_path / "runs", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be one of" in done.stderr or "is not of type" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_setting_inside_a_spec_is_changed_and_checked(tmp_path):
    from steppe.experiments import override
    from steppe.papers import paper

    spec = paper("conflicting-biases").find_figure("fig1").runs["smoke"][0]
    assert override(spec, ["activation=tanh"]).setting.activation == "tanh"
    with pytest.raises(ArgumentError, match="activation must be one of relu, tanh; got 'foo'"):
        override(spec, ["activation=foo"])


def test_one_default_store_for_all_commands(tmp_path, monkeypatch):
    import dataclasses
    import typing

    import steppe.cli
    from steppe.cli._runs import Action
    from steppe.cli._shared import Stored

    arms = [typing.get_args(arm)[0] for union in (steppe.cli.Command, Action) for arm in typing.get_args(union)]
    with_store = [arm for arm in arms if "store" in {f.name for f in dataclasses.fields(arm)}]
    assert {arm.__name__ for arm in with_store} >= {"Reproduce", "Verify", "Report", "Critical", "Explain", "ListRuns"}
    monkeypatch.setenv("STEPPE_STORE", str(tmp_path))
    for arm in with_store:
        assert issubclass(arm, Stored)
        assert arm.opened is Stored.opened
        assert {f.name: f.default for f in dataclasses.fields(arm)}["store"] is None
    assert Stored().opened().root == Store().root == tmp_path


CLAIM = {"id", "source", "statement", "expected", "measured", "verdict", "misprint", "scale", "seconds"}


def test_shapes_of_json(tmp_path, monkeypatch):
    place = "--store", tmp_path
    (claim,) = json.loads(call("verify", "wen2023/eq5-printed", *place, "--json").stdout)
    assert set(claim) >= CLAIM
    assert (claim["verdict"], claim["misprint"], claim["scale"]) == ("fails", True, "smoke")
    paths = json.loads(call("reproduce", "wen2023/fig3", *place, "--out", tmp_path / "out", "--json").stdout)
    assert all(Path(path).is_file() for path in paths)
    assert [Path(path).suffix for path in paths] == [".png", ".pdf", ".json"]
    from steppe.cli import _bench

    package = _bench._package()
    ratio = package.Ratio("a", "b", 1.0, 2.0, "s", 2.0)
    monkeypatch.setattr(package, "benchmark", lambda name: lambda: [ratio])
    (line,) = json.loads(call("bench", "sam", "--json").stdout)
    assert {"subject", "peer", "ours", "theirs", "unit", "ratio"} <= set(line)
    assert line["ratio"] == line["theirs"] / line["ours"]


@pytest.mark.parametrize(("claim", "code"), [("eq5-printed", 0), ("eq5-corrected", 0), ("nothing", 2)])
def test_exit_codes(claim, code, tmp_path):
    assert call("verify", f"wen2023/{claim}", "--store", tmp_path).returncode == code


def test_a_claim_that_fails_is_code_1(tmp_path, monkeypatch):
    from dataclasses import replace

    from steppe.experiments import Finding
    from steppe.papers import paper

    found = paper("wen2023")
    claims = [replace(c, check=lambda: Finding(1.0, False)) if c.id == "eq5-corrected" else c for c in found.claims]
    monkeypatch.setattr(found, "claims", claims)
    assert call("verify", "wen2023/eq5-corrected", "--store", tmp_path).returncode == 1
