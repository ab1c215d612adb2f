"""steppe runs: compare, tag, verify, merge, clean up, and run again."""

import json

import pytest
from command_line import call

from steppe.experiments import own, sweep
from steppe.store import Store
from steppe.sweep import axis


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    sweep(own("cases.own_functions:numbers"), axis(a=[1.0, 3.0]), store=Store(root), workers=1)
    return root


def run(*arguments):
    done = call("runs", *arguments, "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_diff_names_what_differs(store):
    one, two = Store(store).ids()
    code, found = run("diff", one, two[:8], "--store", store)
    assert code == 0
    values = found["differ"]["spec.arguments.a"]
    assert sorted(values) == [1.0, 3.0]
    assert "spec.target" not in found["differ"]
    assert call("runs", "diff", one, "--store", store).returncode == 2


def test_tags_filter_lists(store):
    one, _ = Store(store).ids()
    assert run("tag", "good", one, "--store", store) == (0, {"good": [one]})
    assert [row["id"] for row in run("list", "--tag", "good", "--store", store)[1]] == [one]
    assert run("list", "--tag", "x' OR '1' = '1", "--store", store) == (0, [])
    assert run("tag", "good", one, "--remove", "--store", store) == (0, {})


def test_replay_gives_the_same_bytes_and_asks_before_it_calls_code(store):
    one, _ = Store(store).ids()
    refused = call("runs", "replay", one, "--store", store)
    assert refused.returncode == 2
    assert "cases.own_functions:numbers" in refused.stderr
    code, told = run("replay", one, "cases.own_functions:numbers", "--store", store)
    assert (code, all(told["same"].values()), told["changed"]) == (0, True, [])


def test_verify_and_merge(store, tmp_path):
    other = tmp_path / "other"
    assert set(run("merge", store, "--store", other)[1].values()) == {"copied"}
    assert run("verify", "--store", other) == (0, {"runs": 2, "damaged": {}})
    bad = Store(other).ids()[0]
    (other / bad / "params.safetensors").write_bytes(b"x")
    code, told = run("verify", "--store", other)
    assert code == 1
    assert "params.safetensors" in told["damaged"][bad]
    assert run("gc", "--store", other) == (0, [])
    assert call("runs", "merge", tmp_path / "none", "--store", other).returncode == 1
