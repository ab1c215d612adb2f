"""A row of table 1 at each scale: the paper's sizes, sizes for a laptop, and sizes for a test."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from steppe.experiments import Scale
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.table_1 import Architecture, Data, Row, Setting, rows
from steppe.store import address
from steppe.store._spec import address_of

# The error tolerance of the flow of networks with many kinks, whose sharpness grows steeply: with the tolerance of the
# other rows w is off by 0.5% of its path, and s_GF is 8% (ViT) and 13% (ResNet) below what gradient descent sees.
_RTOL: Mapping[Architecture, float] = {"vit": 1e-3, "resnet": 1e-3}
# Paper: three sweeps have the grids and goals that they were run with. The other rows take nine rates in place of the
# grids, because the grids take three to a hundred core hours.
_CIFAR = 10_000
_NINE = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
_FINISHED: Mapping[str, tuple[float, ...]] = {
    "fcn-relu-mnist-5k-mse-0.01": (), "fcn-relu-mnist-5k-ce-0.01": (),
    "fcn-tanh-cifar-10-5k-mse-0.1": (0.75, 1.0, 1.5, 2.0, 3.0, 8.0, 16.0),
}  # fmt: skip

# Laptop: width, depth and number of examples; twice as many examples where the paper takes all. An FCN keeps a quarter
# of its width, up to the widest, so that wide stays wide and deep stays deep. The sizes are chosen by cost alone.
_LAPTOP: Mapping[Architecture, tuple[int, int, int]] = {
    "cnn": (8, 2, 60), "cnn-bn": (4, 2, 40), "resnet": (4, 1, 20), "vit": (16, 1, 40), "transformer": (16, 1, 60),
}  # fmt: skip
_WIDEST = 200
_LAPTOP_EXAMPLES: Mapping[Data, int] = {"mnist": 200, "cifar10": 150, "housing": 500}
# Rates in units of η_c of the smallest goal, up to divergence; fewer for networks whose gradients are slow.
_AROUND = (
    0.5, 0.7, 0.85, 1.0, 1.2, 1.45, 1.75, 2.1, 2.5, 3.5, 5.0, 6.5, 8.0, 10.0, 12.0, 15.0, 18.0, 22.0, 27.0,
)  # fmt: skip
_FEW_AROUND = (0.5, 0.75, 1.0, 1.3, 1.75, 2.5, 4.0, 7.0, 12.0)
# A row has the seed 43, as in the paper, and two more.
_SEED, _SEEDS = 43, 3
_SLOW: frozenset[Architecture] = frozenset(("cnn", "cnn-bn", "resnet", "vit", "transformer"))
# The cost of products with ∇²L over that of the gradients. With cross-entropy an FCN needs few steps to its goal, and
# its sharpness peaks on the way: it is measured more often.
_LAPTOP_SHARE, _LAPTOP_SHARE_CE = 0.5, 2.0

# Smoke: width and depth.
_SMOKE: Mapping[Architecture, tuple[int, int]] = {
    "cnn": (8, 2), "cnn-bn": (4, 2), "resnet": (4, 1), "vit": (16, 1), "transformer": (16, 1),
}  # fmt: skip
# Some rates of the fine grid, and some up to divergence; fewer for networks that are slow to compile.
_FEW = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0)
_FEWER = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_SMOKE_EXAMPLES: Mapping[Architecture, int] = {
    "cnn": 100, "cnn-bn": 100, "resnet": 60, "vit": 100, "transformer": 30,
}  # fmt: skip
_SMOKE_GOALS: Mapping[Architecture, tuple[float, ...]] = {
    "resnet": (1.0, 0.3), "vit": (1.5, 1.0), "transformer": (1.5, 1.0),
}  # fmt: skip
_STAND_INS: Mapping[Data, Data] = {"mnist": "digits", "cifar10": "digits", "housing": "breast-cancer"}


def sweeps(row: Row, scale: Scale) -> tuple[NetworkSweep, ...]:
    """The sweep of a row, and at laptop scale those of two more seeds, if the row is not itself about its seed."""
    first = spec(row, scale)
    more = range(1, _SEEDS) if scale == "laptop" and row.setting.seed == _SEED else ()
    return first, *(replace(first, setting=replace(first.setting, seed=_SEED + k)) for k in more)


def served_by(entry: Any) -> list[tuple[Row, int]]:
    """The rows that a finished sweep serves, each with its seed; none at smoke scale."""
    measured = entry.spec.get("sweep")
    return _served().get(address_of({"kind": NetworkSweep.KIND} | measured) if measured else entry.id, [])


@cache
def _served() -> dict[str, list[tuple[Row, int]]]:
    """By the address of the sweep."""
    found: dict[str, list[tuple[Row, int]]] = {}
    scales: tuple[Scale, ...] = ("laptop", "paper")
    for scale, row in product(scales, rows().values()):
        for one in sweeps(row, scale):
            found.setdefault(address(one), []).append((row, one.setting.seed))
    return found


def spec(row: Row, scale: Scale) -> NetworkSweep:
    """The sweep of a row.

    Laptop, minutes of a core: a quarter of the width, 20 to 500 examples, and nine or nineteen rates in place of the
    grids. Rows that differ in their goal alone share one sweep, to the smallest of their goals.
    Smoke: a hundred digits or other bundled data, and a tiny network of the same kind.
    """
    rtol = _RTOL.get(row.setting.architecture, NetworkSweep.rtol)
    if scale == "paper":
        last, multiples = _at_paper_scale(row)
        return NetworkSweep(_there(row.setting), goals(last), rtol=rtol, multiples=multiples)
    if scale == "laptop":
        fcn = row.setting.architecture == "fcn"
        often = fcn and row.setting.loss == "cross_entropy"
        return NetworkSweep(
            _laptop(row.setting), goals(smallest_goal(row)), patience=5.0, steps=200_000,
            share=_LAPTOP_SHARE_CE if often else _LAPTOP_SHARE, rtol=rtol,
            multiples=_FEW_AROUND if row.setting.architecture in _SLOW else _AROUND,
        )  # fmt: skip
    return smoke_spec(row.setting)


def smoke_spec(setting: Setting) -> NetworkSweep:
    """A setting of the paper as a sweep of seconds."""
    squares, fcn = setting.loss == "half_mse", setting.architecture == "fcn"
    goals = _SMOKE_GOALS.get(setting.architecture, (0.1, 0.03) if squares else (0.3, 0.1))
    # With cross-entropy an FCN takes about fifty steps: without many products nothing is measured before the end.
    share = 4.0 if fcn and not squares else 1.0
    return NetworkSweep(
        _smoke(setting), goals, share=share, patience=4.0, steps=5_000,
        multiples=_FEW if fcn else _FEWER,
    )  # fmt: skip


def goals(last: float) -> tuple[float, ...]:
    """The powers of ten down to the last goal, and that one.

    >>> goals(0.001), goals(0.03)
    ((0.1, 0.01, 0.001), (0.1, 0.03))
    """
    powers = [round(10.0**-k, 9) for k in range(1, 9)]
    return (*(p for p in powers if p > last * 1.001), last)


def _at_paper_scale(row: Row) -> tuple[float, tuple[float, ...]]:
    """The last goal and the rates of the sweep that serves this row: a finished one if it reached the row's goal."""
    for name, multiples in _FINISHED.items():
        done = rows()[name]
        if done.setting == row.setting and done.goal <= row.goal:
            return done.goal, multiples
    return smallest_goal(row), _NINE


def _there(setting: Setting) -> Setting:
    """Of the 50,000 images of CIFAR-10 the 10,000 of the first file: a stand-in, which titles name."""
    return replace(setting, n=_CIFAR) if (setting.data, setting.n) == ("cifar10", 0) else setting


def smallest_goal(row: Row) -> float:
    """Of all rows with the same setting: one sweep to it serves them all."""
    return min((other.goal for other in rows().values() if other.setting == row.setting), default=row.goal)


def _laptop(setting: Setting) -> Setting:
    narrow = max(16, min(_WIDEST, setting.width // 4))
    few = _LAPTOP_EXAMPLES.get(setting.data, 0)  # 0 are all: breast cancer has only 456
    width, depth, few = _LAPTOP.get(setting.architecture, (narrow, setting.depth, few))
    n = few if setting.n or setting.data == "housing" else 2 * few
    return replace(setting, n=n, test=_test_examples(setting, 2000), width=width, depth=depth)


def _smoke(setting: Setting) -> Setting:
    # The smallest widths whose flows reach the goals; with a large start few ReLUs are active.
    narrow = max(12, setting.width // 12) if setting.scale == 1 else setting.width // 4
    width, depth = _SMOKE.get(setting.architecture, (narrow, setting.depth))
    data = _STAND_INS.get(setting.data, setting.data)
    # With cross-entropy an FCN fits a hundred digits before its sharpness can rise.
    few = 400 if setting.loss == "cross_entropy" and data == "digits" else 100
    n = _SMOKE_EXAMPLES.get(setting.architecture, few)
    test = _test_examples(replace(setting, data=data), 300)
    return replace(setting, data=data, n=n, test=test, width=width, depth=depth)


def _test_examples(setting: Setting, most: int) -> int:
    """Breast cancer has only about a hundred test examples: all of them."""
    return 0 if setting.data == "breast-cancer" else most
