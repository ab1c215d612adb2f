"""Axes, conditions and the file of a sweep: which runs there are, and that nothing in a file is executed."""

import itertools
import random

import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.sweep import axis, linear, log, parse_sweep, read_sweep

FILE = b"""
base = "mine:problem"
measures = ["sharpness"]
stop = { steps = 300 }
where = ["lr * rho < 0.2 or seed == 3", "not name == 'b' or lr > 0.01"]

[axes]
lr = { log = [0.01, 1.0, 5] }
rho = [0.1, 0.5]
seed = { seeds = 4 }

[[zip]]
width = [1, 2]
name = ["a", "b"]
"""


def test_points_by_another_route():
    found = [dict(point) for point in parse_sweep(FILE).axes]
    lrs = [float(f"{lr:.12g}") for lr in np.geomspace(0.01, 1, 5)]
    every = itertools.product(lrs, (0.1, 0.5), range(4), ((1, "a"), (2, "b")))
    expected = [
        {"lr": lr, "rho": rho, "seed": seed, "width": width, "name": name}
        for lr, rho, seed, (width, name) in every
        if (lr * rho < 0.2 or seed == 3) and (name != "b" or lr > 0.01)
    ]
    assert found == expected
    assert 0 < len(found) < 80


def test_python_and_file_agree():
    axes = axis(lr=log(0.01, 1, 5)) * axis(rho=[0.1, 0.5]) * axis(seed=range(4)) * axis(width=[1, 2], name=["a", "b"])
    for condition in ("lr * rho < 0.2 or seed == 3", "not name == 'b' or lr > 0.01"):
        axes = axes.where(condition)
    assert axes == parse_sweep(FILE).axes
    assert linear(-1, 1, 3) == [-1.0, 0.0, 1.0]
    assert axis(lr=np.array([0.5])).points == ({"lr": 0.5},)


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("axes = 3", "axes must be a table"),
        ("[axes]\nlr = 0.1", "lr"),
        ("[axes]\nlr = []", "lr"),
        ("[axes]\nlr = [0.1, 0.1]", "different"),
        ("[axes]\nlr = [inf]", "finite"),
        ("[axes]\nlr = { log = [0, 1, 3] }", "first"),
        ("[axes]\nlr = { log = [0.1, 1] }", "range"),
        ("[axes]\nlr = { lg = [0.1, 1, 2] }", "range"),
        ("[axes]\nseed = { seeds = 10000000000 }", "1,000,000"),
        ("[axes]\na = { seeds = 2000 }\nb = { seeds = 2000 }", "1,000,000"),
        ("[[zip]]\na = [1, 2]\nb = [1]", "equally many"),
        ("[axes]\na = [1]\n[[zip]]\na = [2]", "different names"),
        ("where = 'lr < 0'\n[axes]\nlr = [1]", "where"),
        ("where = 'rate < 0'\n[axes]\nlr = [1]", "rate"),
        ("where = 'lr.real < 0'\n[axes]\nlr = [1]", "where"),
        ("where = '__import__(\"os\")'\n[axes]\nlr = [1]", "where"),
        ('where = \'open("x", "w") == 1\'\n[axes]\nlr = [1]', "where"),
        ("where = 'lr < 9 ** 9 ** 9'\n[axes]\nlr = [1]", "where"),
        ("where = 'name * 999999999 == 1'\n[axes]\nname = ['a']", "where"),
        ("where = 'lr / 0 > 1'\n[axes]\nlr = [1]", "where"),
        ("bse = 1", "Did you mean"),
        ("stop = { steps = [{}] }", "stop"),
        ("measures = 'sharpness'", "measures"),
    ],
)
def test_refused(line, about, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(f'base = "x"\n{line}')
    with pytest.raises(ArgumentError, match=r"bad\.toml") as error:
        read_sweep(path)
    assert about in str(error.value)


def test_mutated_files():
    """Whatever is in the file: a sweep, or an ArgumentError."""
    rng = random.Random(0)
    for _ in range(2000):
        text = bytearray(FILE)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = bytes(rng.choices(range(256), k=rng.randint(0, 3)))
        try:
            found = parse_sweep(bytes(text))
        except ArgumentError:
            continue
        assert len(found.axes) <= 1_000_000
