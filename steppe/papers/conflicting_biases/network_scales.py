"""A row of table 1 at each scale: the paper's sizes, sizes for a laptop, and sizes for a test."""

from collections.abc import Mapping
from dataclasses import replace

from steppe.experiments import Scale
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.table_1 import Architecture, Data, Row, Setting

# The error tolerance of the flow of networks with many kinks, whose sharpness grows steeply: with the tolerance of the
# other rows w is off by 0.5% of its path, and s_GF is 8% (ViT) and 13% (ResNet) below what gradient descent sees.
_RTOL: Mapping[Architecture, float] = {"vit": 1e-3, "resnet": 1e-3}
# Rows whose grids would take a day at the paper's scale (500,000 steps of 13 GFLOP, a fourth of them at the smallest
# rate): some rates of the fine grid, and some up to divergence.
_THINNED: Mapping[str, tuple[float, ...]] = {"fcn-tanh-cifar-10-5k-mse-0.1": (0.75, 1.0, 1.5, 2.0, 3.0, 8.0, 16.0)}

# Laptop: width and depth. An FCN keeps a quarter of its width, so that wide stays wide and deep stays deep.
_LAPTOP: Mapping[Architecture, tuple[int, int]] = {
    "cnn": (8, 2), "cnn-bn": (8, 2), "resnet": (4, 1), "vit": (16, 1), "transformer": (32, 1),
}  # fmt: skip
# Numbers of examples: for these networks a gradient is slow although they have few parameters.
_LAPTOP_EXAMPLES: Mapping[Architecture, int] = {
    "cnn": 300, "cnn-bn": 100, "resnet": 40, "vit": 100, "transformer": 300,
}  # fmt: skip
# Rates in units of η_c, up to divergence: they take a sixth of the steps of the grids.
_AROUND = (0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
# The ResNet is the slowest: with sixty images loss 0.1 took two hours. Fewer rates, a larger goal, fewer measurements.
_LAPTOP_RATES: Mapping[Architecture, tuple[float, ...]] = {
    "fcn": (), "resnet": (0.7, 1.0, 1.3, 1.75, 2.5),
}  # fmt: skip
# On a thousand images of CIFAR-10 a step takes 13 ms, and both grids of an FCN have about sixty rates: some of them.
_LAPTOP_CIFAR = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
# A start five or ten times as large needs a hundred thousand steps: fewer rates, a larger goal.
_LAPTOP_LARGE, _LARGE_GOAL = (0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0), 0.3
# With ten times the width a step takes ten times as long: half of the examples, fewer rates.
_WIDE, _LAPTOP_WIDE, _WIDE_EXAMPLES = 300, (0.75, 1.0, 1.25, 1.5, 2.0, 4.0, 8.0), 500
# The cost of products with ∇²L over that of the gradients. A run of a hundred short steps needs many products, to be
# measured at all before its end; for a run with slow steps that many products would take an hour.
_LAPTOP_SHARE: Mapping[Architecture, float] = {"fcn": 2.0, "resnet": 0.2}

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


def spec(row: Row, scale: Scale, *, all_sharpness: bool = False) -> NetworkSweep:
    """The sweep of a row.

    Laptop, at most an hour: a thousand examples, a quarter of the width, a larger loss goal. Networks other than FCNs
    have fewer examples. Five to fourteen rates replace the grids, except for FCNs on small images.
    Smoke: a hundred digits or other bundled data, and a tiny network of the same kind.
    """
    rtol = _RTOL.get(row.setting.architecture, NetworkSweep.rtol)
    if scale == "paper":
        multiples = _THINNED.get(row.name, ())
        return NetworkSweep(row.setting, goals(row.goal), all_sharpness=all_sharpness, rtol=rtol, multiples=multiples)
    if scale == "laptop":
        squares, slow = row.setting.loss == "half_mse", row.setting.architecture == "resnet"
        goal = max(row.goal, 0.03 if squares else 0.3 if slow else 0.1)
        multiples = _LAPTOP_RATES.get(row.setting.architecture, _AROUND)
        share = _LAPTOP_SHARE.get(row.setting.architecture, 0.5)
        if (row.setting.architecture, row.setting.data) == ("fcn", "cifar10"):
            multiples, share = _LAPTOP_CIFAR, 0.5 if squares else share
        if row.setting.scale > 1:
            multiples, goal = _LAPTOP_LARGE, max(goal, _LARGE_GOAL)
        setting = _laptop(row.setting)
        if _is_wide(setting):
            multiples = _LAPTOP_WIDE
        return NetworkSweep(
            setting, goals(goal), patience=5.0, steps=100_000, share=share, all_sharpness=all_sharpness,
            rtol=rtol, multiples=multiples,
        )  # fmt: skip
    return smoke_spec(row.setting, all_sharpness=all_sharpness)


def smoke_spec(setting: Setting, *, all_sharpness: bool = False) -> NetworkSweep:
    """A setting of the paper as a sweep of seconds."""
    squares, fcn = setting.loss == "half_mse", setting.architecture == "fcn"
    goals = _SMOKE_GOALS.get(setting.architecture, (0.1, 0.03) if squares else (0.3, 0.1))
    # With cross-entropy an FCN takes about fifty steps: without many products nothing is measured before the end.
    share = 4.0 if fcn and not squares else 1.0
    return NetworkSweep(
        _smoke(setting), goals, share=share, patience=4.0, steps=5_000, all_sharpness=all_sharpness,
        multiples=_FEW if fcn else _FEWER,
    )  # fmt: skip


def goals(last: float) -> tuple[float, ...]:
    """The powers of ten down to the last goal, and that one.

    >>> goals(0.001), goals(0.03)
    ((0.1, 0.01, 0.001), (0.1, 0.03))
    """
    powers = [round(10.0**-k, 9) for k in range(1, 9)]
    return (*(p for p in powers if p > last * 1.001), last)


def _laptop(setting: Setting) -> Setting:
    width, depth = _LAPTOP.get(setting.architecture, (max(16, setting.width // 4), setting.depth))
    if setting.data == "breast-cancer":  # it has only 456 examples: all of them
        return replace(setting, width=width, depth=depth)
    # Twice as many where the paper takes all examples.
    n = _LAPTOP_EXAMPLES.get(setting.architecture, 1000) * (1 if setting.n else 2)
    small = replace(setting, n=n, test=_test_examples(setting, 2000), width=width, depth=depth)
    return replace(small, n=_WIDE_EXAMPLES) if _is_wide(small) else small


def _is_wide(setting: Setting) -> bool:
    return setting.architecture == "fcn" and setting.width >= _WIDE


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
