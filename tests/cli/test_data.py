"""steppe data, as a user meets it."""

import gzip
import hashlib
import json

import pytest

from steppe.cli import main
from steppe.data._registry import SETS, DataSet, File, Source

A = bytes(range(256)) * 4
PACKED = gzip.compress(A, mtime=0)
# A port that nothing listens on.
NOWHERE = "http://127.0.0.1:9/a.gz"


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch):
    """One data set of one small file, and folders of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPPE_DATA", str(tmp_path / "data"))
    file = File("a", len(A), hashlib.sha256(A).hexdigest())
    source = Source("a.gz", len(PACKED), hashlib.sha256(PACKED).hexdigest(), (NOWHERE,), (file,))
    for name in list(SETS):
        monkeypatch.delitem(SETS, name)
    monkeypatch.setitem(SETS, "tiny", DataSet("tiny", "one file", (source,)))


@pytest.fixture
def call(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["data", *map(str, arguments)])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return ended.value.code or 0, printed.out, printed.err

    return run


def test_from_nothing_to_checked(call, tmp_path):
    code, out, _ = call()
    assert code == 0
    assert "1 missing" in out
    assert "steppe data download tiny" in out
    assert "digits" in out
    (tmp_path / "a.gz").write_bytes(PACKED)
    code, out, _ = call("import", tmp_path)
    assert code == 0
    assert f"wrote {tmp_path / 'data' / 'tiny' / 'a'}" in out
    listed = json.loads(call("--json")[1])
    assert listed[0] | {"bytes": 0} == {
        "data_set": "tiny", "file": "a", "path": str(tmp_path / "data" / "tiny" / "a"), "bytes": 0,
        "state": "checked", "trouble": "",
    }  # fmt: skip
    assert listed[0]["bytes"] == len(A)
    assert {entry["data_set"] for entry in listed} == {"tiny", "digits", "breast_cancer", "reversal"}
    assert call("check")[0] == 0
    assert "everything is there already" in call("download", "tiny")[1]


def test_check_finds_damage(call, tmp_path):
    assert call("check")[0] == 0
    assert call("check", "tiny")[0] == 1
    path = tmp_path / "data" / "tiny" / "a"
    path.parent.mkdir(parents=True)
    path.write_bytes(A[:-1] + b"!")
    assert "1 unchecked" in call()[1]
    code, out, _ = call("check", "--json")
    assert code == 1
    (found,) = json.loads(out)
    assert found["state"] == "damaged"
    assert "sha256" in found["trouble"]
    path.write_bytes(A[:-1])
    assert "1 damaged" in call()[1]


def test_another_data_folder(call, tmp_path):
    (tmp_path / "a").write_bytes(A)
    assert call("import", tmp_path / "a", "--data", tmp_path / "other", "--json")[0] == 0
    assert (tmp_path / "other" / "tiny" / "a").read_bytes() == A
    assert "1 checked" in call("list", "--data", tmp_path / "other")[1]
    assert "1 missing" in call()[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["download", "tiny"], 1, "With no network here"),
        (["download"], 2, "NAME must be a data set: tiny"),
        (["download", "tini"], 2, "Did you mean 'tiny'"),
        (["check", "tini"], 2, "Did you mean 'tiny'"),
        (["import"], 2, "FOLDER must be one folder"),
        (["import", "nowhere"], 1, "nowhere does not exist"),
    ],
)
def test_wrong_use(call, arguments, code, message):
    returned, _, err = call(*arguments)
    assert returned == code
    assert message in err
