"""steppe sweep on the command line."""

import json
from pathlib import Path

import pytest
from command_line import call

FILE = """
base = "cases.own_functions:numbers"
[axes]
a = [1.0, 13.0, 3.0]
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE)
    return lambda *more: call(
        "sweep", path, "cases.own_functions:numbers", "--store", tmp_path / "runs", "--workers", 1, *more
    )


def test_from_the_plan_to_the_figure(sweep, tmp_path):
    plan = json.loads(sweep("--dry-run", "--json").stdout)
    assert [run["state"] for run in plan["runs"]] == ["to compute"] * 3
    assert plan["core_seconds"] is None
    done = sweep("--json", "--out", tmp_path / "fig", "--y", "product", "--limit", 2)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [(run["a"], run["outcome"], run["product"]) for run in found["runs"]] == [
        (1.0, "reached", 2.0),
        (13.0, "failed", None),
    ]
    assert "thirteen" in found["failures"][found["runs"][1]["run"]]
    assert all(Path(path).is_file() for path in found["written"])
    plan = json.loads(sweep("--dry-run", "--json").stdout)
    assert [run["state"] for run in plan["runs"]] == ["stored", "failed before", "to compute"]
    assert plan["similar"] == 1
    assert [run["a"] for run in json.loads(sweep("--dry-run", "--only-failed", "--json").stdout)["runs"]] == [13.0]


def test_code_runs_only_if_it_is_named(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('base = "os:getcwd"\n[axes]\na = [1]')
    for named in ((), ("cases.own_functions:numbers",)):
        told = call("sweep", path, *named)
        assert told.returncode == 2
        assert "os:getcwd" in told.stderr


def test_an_array_job(sweep, tmp_path):
    script = sweep("--array", 20).stdout
    assert script.startswith("#!/bin/bash\n")
    assert "#SBATCH --array=0-19\n" in script
    assert f"sweep {tmp_path}/sweep.toml cases.own_functions:numbers --store {tmp_path}/runs --shuffle" in script


def test_a_figure_of_a_paper(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('base = "wen2023/fig4b"\nrun = 0\n[axes]\nwidth = [20, 30]\n')
    plan = json.loads(call("sweep", path, "--dry-run", "--json", "--store", tmp_path).stdout)
    assert [run["width"] for run in plan["runs"]] == [20, 30]
    path.write_text('base = "wen2023"\n[axes]\nwidth = [20, 30]\n')
    assert "one figure" in call("sweep", path, "--dry-run").stderr
