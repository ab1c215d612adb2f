"""`steppe bench` finds every benchmark beside steppe, and its help names all of them."""

import json
import os
import subprocess
import sys

import pytest

import bench
from steppe.cli import main
from steppe.cli._bench import _package


def test_every_module_without_an_underscore_is_a_benchmark():
    named = {"audit", "flatten", "flow", "minima", "monitor", "rates", "sam", "sharpness", "sweep"}
    assert set(bench.names()) == named
    assert all(callable(bench.benchmark(name)) for name in bench.names())
    assert _package() is bench


def test_the_help_names_every_benchmark(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in bench.names())


def test_the_keys_of_the_json(monkeypatch, capsys):
    row = bench.Ratio("a step", "a peer", 1.0, 2.0, "s", 2.0)
    monkeypatch.setattr(bench, "benchmark", lambda name: lambda: [row])
    with pytest.raises(SystemExit):
        main(["bench", "sam", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)
    assert {"subject", "peer", "ours", "theirs", "unit", "ratio"} <= shown.keys()
    assert shown["ratio"] == 2.0


def test_it_is_found_from_another_folder(tmp_path):
    """A folder called bench in the current one is not taken for it."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").write_text("raise AssertionError\n")
    command = [sys.executable, "-c", "from steppe.cli._bench import _package; print(_package().names())"]
    path = os.path.dirname(os.path.dirname(bench.__file__))
    environment = os.environ | {"PYTHONPATH": path}
    shown = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
    assert "minima" in shown
