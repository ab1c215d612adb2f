"""The paper that CONTRIBUTING.md shows, written to a folder and run as a user would."""

import re
import sys
from pathlib import Path

import pytest

import steppe.papers
from steppe.cli import main

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def example(tmp_path, monkeypatch):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "example2026.py").write_text(code)
    monkeypatch.setattr(steppe.papers, "__path__", [*steppe.papers.__path__, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("steppe.papers.example2026", None)


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_verify_and_reproduce(example, capsys):
    assert call("verify", "example2026", "--workers", "1") == 0
    assert "3 of 3 claims are as expected" in capsys.readouterr().out
    assert call("reproduce", "example2026/fig1", "--workers", "1") == 0
    assert Path("figures/example2026/fig1-smoke.png").exists()
    assert call("explain", "example2026/fig1-rate") == 0
    assert "The largest relative deviation" in capsys.readouterr().out
