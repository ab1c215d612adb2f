"""steppe critical on a problem of the user's own."""

import json

import numpy as np
import pytest

from steppe.cli import main

MODULE = """
import numpy as np, steppe

def product():
    return steppe.Problem(lambda w, x: w[0] * w[1] * x, np.array([2.0, 0.1]), np.ones(1), np.ones(1), steppe.losses.mse)

def flat():
    return steppe.Problem(lambda w, x: w[0] ** 3 * x, np.zeros(1), np.ones(1), np.ones(1), steppe.losses.mse)

def pair():
    return product(), product().on(np.full(1, 2.0), np.ones(1))

def argued(n):
    return n

def three():
    return 3
"""


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_a_user.py").write_text(MODULE)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["critical", *arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_one_object_a_loss(call):
    code, out, _ = call("of_a_user:product", "--losses", "0.1", "0.01", "--json")
    assert code == 0
    assert [found["loss"] for found in strict(out)] == [0.1, 0.01]


def test_no_curvature(call):
    """w³ at 0: the flow does not move, nothing is critical, and the output is JSON all the same."""
    code, out, _ = call("of_a_user:flat", "--json")
    (found,) = strict(out)
    assert code == 1
    assert (found["outcome"], found["critical_rate"], found["fine_grid"]) == ("stalled", None, [])


def test_a_sweep_is_that_of_the_library(call):
    import of_a_user

    from steppe import rates

    code, out, _ = call("of_a_user:pair", "--losses", "0.01", "--sweep", "--json")
    found, expected = strict(out), rates.sweep(of_a_user.product(), goals=[0.01], test=of_a_user.pair()[1])
    assert code == 0
    assert found["outcomes"] == [d.outcome for d in expected.descents]
    for name, column in expected.ends.items():
        np.testing.assert_array_equal(np.array(found["ends"][name], dtype=float), column)
    _, text, _ = call("of_a_user:pair", "--losses", "0.01", "--sweep")
    assert f"test loss: U-shape {found['u_shape']}, least at {found['best_over_critical']:.3g} η_c" in text
    assert f"reached: {found['reached']} of {len(found['outcomes'])} rates" in text
    assert f"sharpness at the end leaves its plateau at {found['sharpness']['leaves_over_critical']:.3g} η_c" in text


def test_a_sweep_goes_to_the_losses_that_the_flow_reached(call):
    """No loss is below 0, where the flow comes to rest; descent would run for a million steps at every rate."""
    code, out, _ = call("of_a_user:product", "--losses", "0.1", "-1", "--sweep", "--json")
    found = strict(out)
    assert code == 1
    assert [c["outcome"] == "reached" for c in found["critical"]] == [True, False]
    assert set(found["ends"]["goal"]) == {0.1}


def test_a_flow_that_has_no_more_time_says_what_it_came_to(call):
    code, out, _ = call("of_a_user:product", "--losses", "1e-12", "--seconds", "1e-9", "--json")
    (found,) = strict(out)
    assert (code, found["outcome"]) == (1, "exhausted")
    assert found["initial_sharpness"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["of_a_user:none"], "no attribute 'none'"),
        (["of_a_user:argued"], "a function of no arguments"),
        (["of_a_user:three"], "It must return a steppe.Problem"),
        ([":product"], "Empty module name"),
        (["of_a_user:product", "--seconds", "-1"], "seconds"),
        (["fcn-relu-mnist-5k-mse-0.01", "--losses", "0"], "--losses must be a finite number > 0"),
    ],
)
def test_wrong_use(call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_sweep_as_a_picture(call, tmp_path):
    code, out, _ = call("of_a_user:pair", "--losses", "0.01", "--sweep", "--out", "sub/mine")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("wrote")] == [
        f"wrote sub/mine{ending}" for ending in (".png", ".pdf", ".json")
    ]
    assert (tmp_path / "sub" / "mine.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("of_a_user:pair", "--out", "mine"), "Give --sweep too"),
        (("fcn-relu-mnist-5k-mse-0.01", "--sweep", "--out", "mine"), "steppe reproduce conflicting-biases/row-fcn"),
    ],
)
def test_no_picture_without_a_sweep_of_ones_own(call, arguments, message, tmp_path):
    code, _, err = call(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert not list(tmp_path.glob("mine*"))
