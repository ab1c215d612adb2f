"""A row of table 1 at each scale: the paper's own, one for a laptop, and one for a test."""

from collections.abc import Mapping
from dataclasses import replace

from steppe.experiments._paper import Scale
from steppe.papers.conflicting_biases.networks_setting import Architecture, Data, Setting
from steppe.papers.conflicting_biases.networks_specs import Swept
from steppe.papers.conflicting_biases.networks_table import Row

# Width and depth; those of an FCN are scaled instead, so that wide stays wide and deep stays deep.
_LAPTOP: Mapping[Architecture, tuple[int, int]] = {
    "cnn": (8, 2), "cnn-bn": (8, 2), "resnet": (4, 1), "vit": (16, 1), "transformer": (32, 1),
}  # fmt: skip
_SMOKE: Mapping[Architecture, tuple[int, int]] = {
    "cnn": (8, 2), "cnn-bn": (4, 2), "resnet": (4, 1), "vit": (16, 1), "transformer": (16, 1),
}  # fmt: skip
# Examples: a gradient of those of few parameters takes as long as one of a wide FCN.
_LAPTOP_EXAMPLES: Mapping[Architecture, int] = {
    "cnn": 300, "cnn-bn": 100, "resnet": 40, "vit": 100, "transformer": 300,
}  # fmt: skip
# Rates in η_c, around it and up to divergence: a sixth of the steps that the grids take.
_AROUND = (0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
# The ResNet is the slowest: sixty images to loss 0.1 took two hours. Fewer rates, a larger goal, fewer looks.
_LAPTOP_RATES: Mapping[Architecture, tuple[float, ...]] = {
    "fcn": (), "resnet": (0.7, 1.0, 1.3, 1.75, 2.5),
}  # fmt: skip
# A thousand images of CIFAR-10 take 13 ms a step, and the grids of an FCN there some sixty rates: these, of both grids.
_LAPTOP_CIFAR = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
# From a start five or ten times as large it is a hundred thousand steps: fewer rates, to a larger loss.
_LAPTOP_LARGE, _LARGE_GOAL = (0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0), 0.3
# Ten times as wide a step takes ten times as long: half of the examples, and fewer rates.
_WIDE, _LAPTOP_WIDE, _WIDE_EXAMPLES = 300, (0.75, 1.0, 1.25, 1.5, 2.0, 4.0, 8.0), 500
# Products may cost so many times the gradients. Where a run takes a hundred short steps nothing would be seen on the
# way with fewer; where a step takes long they would take an hour.
_LAPTOP_SHARE: Mapping[Architecture, float] = {"fcn": 2.0, "resnet": 0.2}
# Kinks everywhere and a sharpness that grows steeply: at the rtol of the other rows w is right to 0.5% of its way and
# s_GF 8% (ViT) and 13% (ResNet) below what gradient descent meets at small rates.
_RTOL: Mapping[Architecture, float] = {"vit": 1e-3, "resnet": 1e-3}
# Rows of the paper's own scale whose grids would take a day (here 500,000 steps of 13 GFLOP, a fourth of them at the
# least rate): some of the fine grid's rates, and some up to divergence.
_THINNED: Mapping[str, tuple[float, ...]] = {
    "fcn-tanh-cifar-10-5k-mse-0.1": (0.75, 1.0, 1.5, 2.0, 3.0, 8.0, 16.0),
}
# The fine grid's, thinned out, and some up to divergence.
_FEW = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0)
# Where a gradient takes long to compile and to compute: fewer rates, fewer examples, and goals soon reached.
_FEWER = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_SMOKE_EXAMPLES: Mapping[Architecture, int] = {
    "cnn": 100, "cnn-bn": 100, "resnet": 60, "vit": 100, "transformer": 30,
}  # fmt: skip
_SMOKE_GOALS: Mapping[Architecture, tuple[float, ...]] = {
    "resnet": (1.0, 0.3), "vit": (1.5, 1.0), "transformer": (1.5, 1.0),
}  # fmt: skip
_STAND_INS: Mapping[Data, Data] = {"mnist": "digits", "cifar10": "digits", "housing": "breast-cancer"}


def spec(row: Row, scale: Scale, *, all_sharpness: bool = False) -> Swept:
    """The sweep of a row.

    Laptop, at most an hour: a thousand examples, a quarter of the width, a loss goal that is reached in time; networks
    other than FCNs on few examples; five or fourteen rates instead of the grids, but for FCNs on small images.
    Smoke: a hundred digits or other bundled data, a tiny network of the same kind.
    """
    rtol = _RTOL.get(row.setting.architecture, Swept.rtol)
    if scale == "paper":
        multiples = _THINNED.get(row.name, ())
        return Swept(row.setting, goals(row.goal), all_sharpness=all_sharpness, rtol=rtol, multiples=multiples)
    if scale == "laptop":
        squares, slow = row.setting.loss == "half_mse", row.setting.architecture == "resnet"
        goal = max(row.goal, 0.03 if squares else 0.3 if slow else 0.1)
        multiples = _LAPTOP_RATES.get(row.setting.architecture, _AROUND)
        share = _LAPTOP_SHARE.get(row.setting.architecture, 0.5)
        if (row.setting.architecture, row.setting.data) == ("fcn", "cifar10"):
            multiples, share = _LAPTOP_CIFAR, 0.5 if squares else share
        if row.setting.scale > 1:
            multiples, goal = _LAPTOP_LARGE, max(goal, _LARGE_GOAL)
        setting = laptop(row.setting)
        if _is_wide(setting):
            multiples = _LAPTOP_WIDE
        return Swept(
            setting, goals(goal), patience=5.0, steps=100_000, share=share, all_sharpness=all_sharpness,
            rtol=rtol, multiples=multiples,
        )  # fmt: skip
    return smoke_spec(smoke(row.setting), all_sharpness=all_sharpness)


def smoke_spec(setting: Setting, *, all_sharpness: bool = False) -> Swept:
    squares, fcn = setting.loss == "half_mse", setting.architecture == "fcn"
    goals = _SMOKE_GOALS.get(setting.architecture, (0.1, 0.03) if squares else (0.3, 0.1))
    # With cross-entropy an FCN takes some fifty steps: products may cost more, or nothing would be seen on the way.
    share = 4.0 if fcn and not squares else 1.0
    return Swept(
        setting, goals, share=share, patience=4.0, steps=5_000, all_sharpness=all_sharpness,
        multiples=_FEW if fcn else _FEWER,
    )  # fmt: skip


def goals(last: float) -> tuple[float, ...]:
    """The powers of ten down to the last goal, and that one.

    >>> goals(0.001), goals(0.03)
    ((0.1, 0.01, 0.001), (0.1, 0.03))
    """
    powers = [round(10.0**-k, 9) for k in range(1, 9)]
    return (*(p for p in powers if p > last * 1.001), last)


def laptop(setting: Setting) -> Setting:
    width, depth = _LAPTOP.get(setting.architecture, (max(16, setting.width // 4), setting.depth))
    # Twice as many where the paper takes all; breast cancer has only 456.
    if setting.data == "breast-cancer":
        return replace(setting, width=width, depth=depth)
    n = _LAPTOP_EXAMPLES.get(setting.architecture, 1000) * (1 if setting.n else 2)
    small = replace(setting, n=n, test=_fewer(setting, 2000), width=width, depth=depth)
    return replace(small, n=_WIDE_EXAMPLES) if _is_wide(small) else small


def _is_wide(setting: Setting) -> bool:
    return setting.architecture == "fcn" and setting.width >= _WIDE


def smoke(setting: Setting) -> Setting:
    # The least widths whose flows reach the goals; a large start leaves few ReLUs that fire.
    narrow = max(12, setting.width // 12) if setting.scale == 1 else setting.width // 4
    width, depth = _SMOKE.get(setting.architecture, (narrow, setting.depth))
    data = _STAND_INS.get(setting.data, setting.data)
    # With cross-entropy an FCN fits a hundred digits before sharpness can rise.
    few = 400 if setting.loss == "cross_entropy" and data == "digits" else 100
    n = _SMOKE_EXAMPLES.get(setting.architecture, few)
    return replace(setting, data=data, n=n, test=_fewer(replace(setting, data=data), 300), width=width, depth=depth)


def _fewer(setting: Setting, most: int) -> int:
    """Breast cancer has only about a hundred to test on: all of them."""
    return 0 if setting.data == "breast-cancer" else most
