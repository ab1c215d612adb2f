"""Every option of every command, found by reflection, with values that nobody should give: never a traceback."""

import dataclasses
import itertools
import os
import typing

import pytest
from command_line import call

import steppe.cli
from steppe.cli._runs import Action
from steppe.store import StoreError

# Relative to a folder of the test: as root, absolute ones could overwrite what is not ours.
HOSTILE = [
    "", " ", "-1", "0", "1e400", "nan", "é", "\0", "\ud800", "\x1b[2J", "x" * 5000, "[", "*", "?", "/nothing", "a/b",
    "a:b", ":", "x:", "=", "a=", "lr=nan", "width=1e999", "network=foo", "stages=[]", "wen2023", "fig1", "file", "pipe",
    "file/x", "{}", "--", "--json", "@file", "SELECT error('x')", "os:getcwd", "file.html", "None",
]  # fmt: skip
GIVEN = {
    "Explain": ["eq5-printed"],
    "Reproduce": ["wen2023/fig3"],
    "Verify": ["eq5-printed"],
    "Report": ["eq5-printed"],
}


def arms(union, *before):
    for arm in typing.get_args(union):
        kind, *notes = typing.get_args(arm)
        (name,) = {note.name for note in notes if hasattr(note, "name")}
        yield from arms(Action, *before, name) if kind.__name__ == "Runs" else [(kind, [*before, name])]


COMMANDS = {" ".join(name): kind for kind, name in arms(steppe.cli.Command)}


def lines(kind, count=8):
    """Arguments: `count` values for each field, by its name and as a positional one; all values come in turn."""
    values, given = itertools.cycle(HOSTILE), GIVEN.get(kind.__name__, [])
    yield []
    for field in dataclasses.fields(kind):
        option = f"--{field.name.replace('_', '-')}"
        for value in itertools.islice(values, count):
            yield from ([value], [*given, option, value])


@pytest.fixture(autouse=True)
def _cheap(tmp_path, monkeypatch):
    """What is wrong with arguments is found before anything is computed, judged, drawn or downloaded."""
    monkeypatch.chdir(tmp_path)
    for name in ("STEPPE_STORE", "STEPPE_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")

    def computed(specs, *a, **k):
        if specs:
            raise StoreError("would be computed")
        return []

    monkeypatch.setattr("steppe.sweep.execute", computed)
    for name in ("measure_all", "write"):
        monkeypatch.setattr(f"steppe.experiments.{name}", lambda *a, **k: [])
    monkeypatch.setattr("steppe.cli._verify._write_page", lambda *a, **k: None)
    monkeypatch.setattr("uvicorn.Server.run", lambda *a, **k: None)
    monkeypatch.setattr("webbrowser.open", lambda *a, **k: None)
    monkeypatch.setattr("steppe.cli._list.listing", lambda *a, **k: [])
    monkeypatch.setattr("steppe.cli._list.Explain._claim", lambda *a: {})


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"bench", "completion", "runs seconds"}))
def test_hostile_arguments(name, monkeypatch):
    # Parsed alone: the parser of all commands takes most of the time.
    monkeypatch.setattr("steppe.cli.Command", COMMANDS[name])
    for arguments in lines(COMMANDS[name]):
        done = call(*arguments)
        assert done.returncode in (0, 1, 2), arguments
        assert done.returncode == 0 or done.stderr or done.stdout, arguments
        assert "Traceback" not in done.stderr, arguments
        if done.stderr.startswith("steppe: "):
            assert done.stderr.count("\n") == 1, arguments
