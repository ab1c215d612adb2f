"""Section 2 and appendices H.4, H.5 and H.8 to H.12 on networks, judged on all rows of table 1 that they speak of."""

import numpy as np

from steppe.papers.conflicting_biases.figures_of_networks import fig2, fig3, fig9, fig10, fig11
from steppe.papers.conflicting_biases.judged import Case, Verdict, judged
from steppe.papers.conflicting_biases.network_ends import Ends, at_every_goal
from steppe.papers.conflicting_biases.network_measures import MEASURES
from steppe.papers.conflicting_biases.network_scales import smallest_goal
from steppe.papers.conflicting_biases.table_1 import Row, shown_in

NORMS = ("l1", "l2", "nuclear")

# The corner may be off by this factor: the fine grid has the step η_c/4.
NEAR = 1.35
# Ends whose norm is within this share of the least one count as of least norm: below η_c all are, up to rounding.
_LEAST = 1e-3


def usual(row: Row) -> bool:
    """The paper excepts large starts (appendix H.6) and, for the edge, the kernel parameterisation (H.7)."""
    return row.setting.scale == 1


def squares(row: Row) -> bool:
    return usual(row) and row.setting.loss == "half_mse" and row.setting.parameterisation != "kernel"


def cross_entropy(row: Row) -> bool:
    return usual(row) and row.setting.loss == "cross_entropy"


def plain(row: Row) -> bool:
    """The FCN of the figures: two layers of 200 ReLUs on 5,000 images of MNIST or CIFAR-10."""
    s = row.setting
    same = (s.architecture, s.activation, s.depth, s.parameterisation) == ("fcn", "relu", 2, "standard")
    return usual(row) and same and s.width <= 200 and s.n > 0 and s.data in ("mnist", "cifar10", "digits")


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's; 0 if one of them is constant."""
    from scipy.stats import spearmanr

    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(spearmanr(x, y).statistic)


def corner_of(ends: Ends) -> tuple[float, float, float, bool] | None:
    """Corner over η_c, its 95% interval, and whether there is one; None with fewer than five rates up to 3 η_c.

    With cross-entropy sharpness falls again before the end, so its smoothed maximum is fitted.
    """
    from steppe.rates import corner

    kind = "sharpness" if ends.loss == "half_mse" else "smoothed_sharpness"
    fit = corner(ends.table, ends.critical, kind)
    if fit is None:
        return None
    return fit.rate / ends.critical, fit.lower / ends.critical, fit.upper / ends.critical, fit.found


def at_the_critical_rate(case: Case) -> Verdict | None:
    """The corner of the sharpness of the ends (with cross-entropy of its smoothed maximum) over η_c."""
    fit = corner_of(case.ends)
    if fit is None:
        return None
    rate, lower, upper, found = fit
    return Verdict(found and 1 / NEAR <= rate <= NEAR, f"{rate:.2f} in [{lower:.2f}, {upper:.2f}]")


judged(
    "net-transition", "section 2", "With squared loss the final sharpness leaves its plateau at η_c = 2/s_GF.",
    "corner/η_c between 1/1.35 and 1.35", lambda row: usual(row) and row.setting.loss == "half_mse",
    shown=(fig2, fig3),
)(at_the_critical_rate)  # fmt: skip
judged(
    "net-ce-transition", "appendix H.4", "With cross-entropy the largest sharpness leaves its plateau at η_c too.",
    "corner of the smoothed maximum over η_c between 1/1.35 and 1.35", cross_entropy,
)(at_the_critical_rate)  # fmt: skip


@judged(
    "net-flow-aligned", "section 2.2",
    "Below η_c gradient descent ends with the sharpness and norms of the flow's end, whatever η is.",
    "relative spread < 5%", usual,
)  # fmt: skip
def constant_below(case: Case) -> Verdict | None:
    """The spread of sharpness and norms over the flow's end and the rates up to 0.8 η_c, relative to their means."""
    ends = case.ends
    below = ends.table["lr"] < 0.8 * ends.critical
    spreads = {}
    for name in ("sharpness", *NORMS):
        values = np.append(ends.table[name][below], ends.flow.get(name, []))
        if len(values) < 2:  # a single value has no spread, and shows nothing
            return None
        spreads[name] = float(np.ptp(values) / values.mean())
    worst = max(spreads, key=lambda name: spreads[name])
    return Verdict(spreads[worst] < 0.05, f"{worst} {spreads[worst]:.1%}")


def _at_the_edge(case: Case, name: str, *, above: float, low: float, high: float) -> Verdict | None:
    """The median of λ η/2 over the rates from `above` to 3 η_c."""
    rates = case.ends.table["lr"]
    past = (rates > above * case.ends.critical) & (rates < 3.01 * case.ends.critical)
    if not past.any():
        return None
    middle = float(np.median(case.ends.table[name][past] * rates[past] / 2))
    return Verdict(low <= middle <= high, f"{middle:.2f}")


@judged(
    "net-edge", "section 2.2", "With squared loss the sharpness follows 2/η above η_c.",
    "median of sharpness · η/2 in [0.75, 1.15]", squares,
)  # fmt: skip
def follows(case: Case) -> Verdict | None:
    """The median of the sharpness of the ends times η/2, from 1.2 to 3 η_c."""
    return _at_the_edge(case, "sharpness", above=1.2, low=0.75, high=1.15)


@judged(
    "net-ce-edge", "appendix H.4", "With cross-entropy the smoothed maximum of the sharpness follows 2/η above η_c.",
    "median of the maximum · η/2 in [0.7, 1.4]", cross_entropy,
)  # fmt: skip
def rises_to_the_edge(case: Case) -> Verdict | None:
    """The median of the smoothed maximum times η/2, from 1.1 to 3 η_c."""
    return _at_the_edge(case, "smoothed_sharpness", above=1.1, low=0.7, high=1.4)


@judged(
    "net-ce-falls", "appendix H.4", "With cross-entropy the sharpness rises to the edge, then falls before the end.",
    "final over largest sharpness < 0.7", cross_entropy, shown=(fig3,),
)  # fmt: skip
def falls_again(case: Case) -> Verdict | None:
    """The median over rates above η_c of the last sharpness over the smoothed maximum.

    Only rates up to 2/s₀ count: at larger rates a run starts above the edge, and its sharpness does not rise to it.
    """
    table, ends = case.ends.table, case.ends
    risen = (table["lr"] > ends.critical) & (table["lr"] <= 2 / ends.flow["initial_sharpness"])
    if not risen.any():
        return None
    fallen = float(np.median(table["sharpness"][risen] / table["smoothed_sharpness"][risen]))
    return Verdict(fallen < 0.7, f"{fallen:.2f}")


@judged(
    "net-norms-grow", "section 2.2", "Above η_c the ℓ1, ℓ2 and nuclear norms tend to grow with η.",
    "each norm larger at the largest rate than below η_c, rank correlation with η above η_c > 0", usual,
)  # fmt: skip
def norms_grow(case: Case) -> Verdict | None:
    """Each norm at the largest rate over its mean below η_c, and its rank correlation with the rate from η_c on."""
    table, past = case.ends.table, case.ends.table["lr"] > 0.999 * case.ends.critical
    if past.sum() < 3 or past.all():
        return None
    against = []
    for name in NORMS:
        grown = float(table[name][-1] / table[name][~past].mean() - 1)
        trend = rank_correlation(table["lr"][past], table[name][past])
        if grown <= 0 or trend <= 0:
            against.append(f"{name} {grown:+.2%}, trend {trend:.2f}")
    return Verdict(not against, "; ".join(against))


@judged(
    "net-least-norm", "section 2.2", "Solutions of least norm never generalise best.",
    "the end of least test loss has a norm more than 0.1% above the least one", usual,
)  # fmt: skip
def least_norm_is_not_best(case: Case) -> Verdict | None:
    """By how much the ℓ1 norm of the end of least test loss exceeds the least ℓ1 norm of all ends."""
    table = case.ends.table
    if len(table["lr"]) < 3:
        return None
    best = int(np.argmin(table["test_loss"]))
    above = float(table["l1"][best] / table["l1"].min() - 1)
    return Verdict(above > _LEAST, f"{above:.2%} above at {table['lr'][best] / case.ends.critical:.2f} η_c")


def _mark(case: Case) -> str | None:
    from steppe.rates import u_shape

    losses = case.ends.table["test_loss"]
    return u_shape(losses).mark if len(losses) >= 5 else None


@judged(
    "net-u-shape", "Table 1", "The test loss is U-shaped in η where the table says so, and not where it does not.",
    "our mark and the printed one agree, brackets aside", lambda row: row.mark != "-",
)  # fmt: skip
def marks(case: Case) -> Verdict | None:
    """✓ or (✓) against × or (×), by the rule of `steppe.rates.u_shape`."""
    ours = _mark(case)
    return None if ours is None else Verdict(("✓" in ours) == ("✓" in case.row.mark), f"{ours} for {case.row.mark}")


@judged(
    "net-extreme", "appendix I", "Where the test loss is clearly least at one end, it is at the large rates.",
    "no row with our mark × has its least test loss below η_c", usual,
)  # fmt: skip
def towards_large_rates(case: Case) -> Verdict | None:
    """Of a row with our mark ×: where the test loss is least, in units of η_c. Other rows are fine."""
    ours, table = _mark(case), case.ends.table
    if ours is None:
        return None
    best = float(table["lr"][np.argmin(table["test_loss"])] / case.ends.critical)
    return Verdict(ours != "×" or best > 1, f"{best:.2f} η_c")


def _of_several_goals(row: Row) -> bool:
    """The last goal of a sweep that has others; a stand-in has."""
    return usual(row) and row.goal == smallest_goal(row) and (row.goal < 0.1 or not row.figures)


@judged(
    "net-goal", "appendix H.5", "A smaller loss goal moves η_c and the transition to smaller rates.",
    "η_c at the last goal over η_c at the first < 1, ratio of the corners < 1.05",
    _of_several_goals, shown=(fig2,),
)  # fmt: skip
def moves_with_the_goal(case: Case) -> Verdict | None:
    """η_c at the last goal over η_c at the first one; the corner must not move the other way."""
    goals = at_every_goal(case.ends.entry)
    first, last = goals[0], goals[-1]
    corners = corner_of(first), corner_of(last)
    if len(goals) < 2 or corners[0] is None or corners[1] is None:
        return None
    ratio = last.critical / first.critical
    moved = ratio * corners[1][0] / corners[0][0]
    return Verdict(ratio < 1 and moved < 1.05, f"{ratio:.2f}, corners {moved:.2f}")


@judged(
    "net-speed", "appendix H.8", "Below η_c the number of iterations needed is proportional to 1/η.",
    "slope of log iterations in log η within 0.1 of −1", usual, shown=(fig2, fig3),
)  # fmt: skip
def speed(case: Case) -> Verdict | None:
    """The slope of log iterations in log rate up to η_c."""
    x, y, below = _log_speed(case)
    if below.sum() < 2:
        return None
    slope = float(np.polyfit(x[below], y[below], 1)[0])
    return Verdict(abs(slope + 1) < 0.1, f"{slope:.2f}")


@judged(
    "net-speed-past", "appendix H.8", "Above η_c the number of iterations falls more slowly with η than below.",
    "slope above η_c minus slope below > 0", usual, shown=(fig2, fig3),
)  # fmt: skip
def slower_past_it(case: Case) -> Verdict | None:
    """The slope of log iterations in log rate past η_c minus the slope up to it."""
    x, y, below = _log_speed(case)
    if below.sum() < 2 or (~below).sum() < 2:
        return None
    difference = float(np.polyfit(x[~below], y[~below], 1)[0] - np.polyfit(x[below], y[below], 1)[0])
    return Verdict(difference > 0, f"{difference:.2f}")


def _log_speed(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = case.ends.table
    return np.log(table["lr"]), np.log(table["steps"]), table["lr"] <= 1.0001 * case.ends.critical


def _in(*panels: str) -> set[str]:
    return {shown_in(panel).name for panel in panels}


@judged(
    "net-norms-agree", "Figure 9", "The three norms rise and fall together.", "rank correlations > 0.5", plain,
    shown=(fig9,),
)  # fmt: skip
def norms_agree(case: Case) -> Verdict | None:
    """The smaller rank correlation of the ℓ1 norm with the ℓ2 and with the nuclear norm over all rates."""
    table = case.ends.table
    if len(table["lr"]) < 4:
        return None
    least = min(rank_correlation(table["l1"], table[name]) for name in ("l2", "nuclear"))
    return Verdict(least > 0.5, f"{least:.2f}")


@judged(
    "net-measures", "Figure 10", "All six measures of sharpness fall above η_c, except the Fisher trace with squares.",
    "rank correlation with η above η_c < 0", lambda row: row.name in _in("57", "6c", "3b") or not row.figures,
    shown=(fig10,), elsewhere=False,
)  # fmt: skip
def measures_fall(case: Case) -> Verdict | None:
    """The rank correlation of each measure with the rate above η_c."""
    table, past = case.ends.table, case.ends.table["lr"] > case.ends.critical
    if past.sum() < 3 or "fisher" not in table:
        return None
    squares_at_usual_scale = case.row.setting.loss == "half_mse" and case.row.setting.scale == 1
    excepted = {"fisher_trace"} if squares_at_usual_scale else set()
    names = [name for name in ("sharpness", *MEASURES) if name not in excepted]
    trends = {name: rank_correlation(table["lr"][past], table[name][past]) for name in names}
    against = [f"{name} {trend:.2f}" for name, trend in trends.items() if not trend < 0]
    return Verdict(not against, ", ".join(against))


@judged(
    "net-distance", "Figure 11", "The distance to the flow's end grows with η, by more than the norm.",
    "distance at the largest η over that at the smallest > 1", plain, shown=(fig11,),
)  # fmt: skip
def away_from_the_flow(case: Case) -> Verdict | None:
    """The ℓ1 distance to the flow's end at the largest rate over the distance at the smallest one."""
    table = case.ends.table
    away = table.get("from_flow_l1", np.zeros(0))
    if len(away) < 2:
        return None
    ratio = float(away[-1] / away[0])
    share = float((away[-1] - away[0]) / max(table["l1"][-1] - table["l1"][0], 1e-12))
    return Verdict(ratio > 1 and share > 1, f"{ratio:.2f}, {share:.2g} times as much as ℓ1")


@judged(
    "net-layers", "appendix H.12", "The ℓ1 norms of all layers show an increasing trend.",
    "rank correlation of each layer's ℓ1 norm with η > 0", plain,
)  # fmt: skip
def layers_grow(case: Case) -> Verdict | None:
    """The rank correlation of the ℓ1 norm of each weight matrix with the rate, from η_c on."""
    table, past = case.ends.table, case.ends.table["lr"] > 0.999 * case.ends.critical
    layers = [name for name in table if name.startswith("l1[") and name.endswith("['W']")]
    if past.sum() < 3 or not layers:
        return None
    trends = [rank_correlation(table["lr"][past], table[name][past]) for name in layers]
    return Verdict(min(trends) > 0, "layers " + ", ".join(f"{trend:.2f}" for trend in trends))
