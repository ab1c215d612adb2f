"""Appendices H.1 to H.3, H.6, H.7 and H.14: what data, architecture, activation and start change, row by row."""

import numpy as np

from steppe.papers.conflicting_biases.claims_section_2 import (
    at_the_critical_rate,
    follows,
    norms_grow,
    rank_correlation,
)
from steppe.papers.conflicting_biases.judged import Case, Verdict, judged
from steppe.papers.conflicting_biases.table_1 import Row

_IMAGES = ("mnist", "cifar10")


def _trade_off(case: Case) -> Verdict | None:
    """The sharpness leaves its plateau at η_c, and all norms tend to grow above it."""
    both = at_the_critical_rate(case), norms_grow(case)
    if both[0] is None or both[1] is None:
        return None
    numbers = [
        f"{name} {one.number}" for name, one in zip(("corner", "norms"), both, strict=True) if one and not one.holds
    ]
    return Verdict(not numbers, "; ".join(numbers))


def _varied(row: Row) -> bool:
    s = row.setting
    return s.architecture == "fcn" and (s.width, s.depth) != (200, 2) and s.parameterisation == "standard"


_RULE = "corner within 1.35 of η_c, norms larger and rising above it"

judged(
    "net-dataset-size", "appendix H.1", "On all images the trade-off of sharpness and norm persists.", _RULE,
    lambda row: row.setting.n == 0 and row.setting.data in _IMAGES,
)(_trade_off)  # fmt: skip
judged(
    "net-architectures", "appendix H.2", "CNN, ResNet and ViT show the same trade-off.", _RULE,
    lambda row: row.setting.architecture in ("cnn", "cnn-bn", "resnet", "vit"),
)(_trade_off)  # fmt: skip
judged(
    "net-width-depth", "appendix H.2", "For most widths and depths of the FCN the trade-off persists.", _RULE, _varied,
    most=True,
)(_trade_off)  # fmt: skip
judged(
    "net-activation", "appendix H.3", "With tanh the sharpness leaves its plateau at η_c, and the norms grow.", _RULE,
    lambda row: row.setting.activation == "tanh",
)(_trade_off)  # fmt: skip


@judged(
    "net-wide-mnist", "appendix H.2", "On MNIST, width alone dissolves the growth: the norm falls, then stays.",
    "ℓ1 at the largest rate at most 1% above its level below η_c",
    lambda row: _varied(row) and row.setting.depth == 2 and row.setting.data == "mnist",
)  # fmt: skip
def growth_dissolves(case: Case) -> Verdict | None:
    """The ℓ1 norm at the largest rate over its mean below η_c."""
    grown = _growth(case)
    return grown and Verdict(grown[0] < 1.01, f"{grown[0] - 1:+.2%}")


@judged(
    "net-wide-deep-mnist", "appendix H.2", "On MNIST, with width and depth the norm falls at first, then grows.",
    "ℓ1 above its level below η_c at the largest rate, below it at some rate",
    lambda row: _varied(row) and row.setting.depth > 2 and row.setting.width > 200 and row.setting.data == "mnist",
)  # fmt: skip
def falls_then_grows(case: Case) -> Verdict | None:
    """The ℓ1 norm at the largest rate, and the least one past η_c, over the mean below η_c."""
    grown = _growth(case)
    return grown and Verdict(grown[1] < 1 < grown[0], f"{grown[0] - 1:+.2%}, least {grown[1] - 1:+.3%}")


def _growth(case: Case) -> tuple[float, float] | None:
    """ℓ1 at the largest rate, and its least value past η_c, over the mean below η_c."""
    lr, l1 = case.ends.table["lr"], case.ends.table["l1"]
    past = lr > 1.001 * case.ends.critical
    if past.sum() < 2 or past.all():
        return None
    level = float(l1[~past].mean())
    return float(l1[-1]) / level, float(l1[past].min()) / level


@judged(
    "net-seeds", "appendix H.6", "With other seeds the transition stays at η_c and the sharpness at 2/η.",
    "corner within 1.35 of η_c, median of sharpness · η/2 in [0.75, 1.15]", lambda row: row.setting.seed != 43,
)  # fmt: skip
def other_seeds(case: Case) -> Verdict | None:
    """The corner over η_c, and the sharpness over 2/η above it."""
    corner, edge = at_the_critical_rate(case), follows(case)
    if corner is None or edge is None:
        return None
    return Verdict(corner.holds and edge.holds, f"corner {corner.number}, edge {edge.number}")


@judged(
    "net-large-start", "appendix H.6", "From a large start the flow is sharpest at the start.",
    "s_GF/s₀ < 1.01", lambda row: row.setting.scale > 1,
)  # fmt: skip
def sharpest_at_the_start(case: Case) -> Verdict:
    """s_GF over s₀."""
    return _of_start(case)


@judged(
    "net-larger-start", "appendix H.6", "From a start ten times as large runs diverge below η_c, and ℓ1 falls with η.",
    "largest rate that reaches the loss < η_c, rank correlation of ℓ1 with η < 0", lambda row: row.setting.scale == 10,
)  # fmt: skip
def diverges_below(case: Case) -> Verdict | None:
    """The largest rate that reaches the goal over η_c, and the rank correlation of ℓ1 with the rate."""
    lr, l1 = case.ends.table["lr"], case.ends.table["l1"]
    if len(lr) < 3:
        return None
    last, trend = float(lr[-1] / case.ends.critical), rank_correlation(lr, l1)
    return Verdict(last < 1 and trend < 0, f"up to {last:.2f} η_c, trend {trend:.2f}")


@judged(
    "net-kernel", "appendix H.7", "In the kernel parameterisation the flow is sharpest at the start.",
    "s_GF/s₀ < 1.01", lambda row: row.setting.parameterisation == "kernel",
)  # fmt: skip
def kernel_starts_sharpest(case: Case) -> Verdict:
    """s_GF over s₀."""
    return _of_start(case)


def _of_start(case: Case) -> Verdict:
    ratio = case.ends.flow["largest_sharpness"] / case.ends.flow["initial_sharpness"]
    return Verdict(ratio < 1.01, f"{ratio:.3f}")


@judged(
    "net-tables", "appendix H.14", "On tables and sequences the trade-off is similar.", _RULE,
    lambda row: row.setting.data in ("housing", "breast-cancer", "reversal"),
)  # fmt: skip
def on_tables(case: Case) -> Verdict | None:
    """The corner over η_c, and the growth of the norms."""
    return _trade_off(case)


@judged(
    "net-tables-rising", "appendix H.14", "On tables and sequences the sharpness below η_c rises as η falls.",
    "rank correlation of sharpness with η below η_c < 0, spread > 1%",
    lambda row: row.setting.data in ("housing", "breast-cancer", "reversal"),
)  # fmt: skip
def rises_below(case: Case) -> Verdict | None:
    """The rank correlation of the final sharpness with the rate up to η_c, and its spread there."""
    table, below = case.ends.table, case.ends.table["lr"] < 1.001 * case.ends.critical
    if below.sum() < 3:
        return None
    values = table["sharpness"][below]
    trend, spread = rank_correlation(table["lr"][below], values), float(np.ptp(values) / values.mean())
    return Verdict(trend < 0 and spread > 0.01, f"trend {trend:.2f}, spread {spread:.1%}")
