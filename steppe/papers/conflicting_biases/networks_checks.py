"""What section 2 and appendix H say of sweeps of networks, measured on finished ones."""

from collections.abc import Iterable

import numpy as np

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.networks_ends import Ends, every_goal, last
from steppe.rates import Transition, corner, u_shape

# Where the transition may lie, as a factor of η_c either way: the grid's own distance there is η_c/4.
NEAR = 1.35

NORMS = ("l1", "l2", "nuclear")


def sweeps(evidence: Evidence, *, loss: str | None = None) -> list[Ends]:
    """Every sweep of the evidence once, at its last goal; only those of one loss if told."""
    found = {entry.id: last(entry) for entries in evidence.values() for entry in entries}
    return [e for e in found.values() if loss in (None, e.entry.spec["setting"]["loss"])]


def fitted(ends: Ends) -> Transition | None:
    """Where sharpness leaves its plateau on the fine grid: that of the end, with cross-entropy the smoothed maximum:
    there sharpness falls again before the end. None where too few rates reached the goal."""
    kind = "sharpness" if ends.entry.spec["setting"]["loss"] == "half_mse" else "smoothed_sharpness"
    return corner(ends.table, ends.critical, kind)


def at_the_critical_rate(evidence: Evidence) -> Finding:
    """The corner over η_c, of the sweep where it is farthest from 1."""
    swept = sweeps(evidence, loss="half_mse")
    found = [(fit, e.critical) for e in swept if (fit := fitted(e)) is not None]
    worst = _farthest(fit.rate / critical for fit, critical in found)
    holds = len(found) == len(swept) and all(fit.found for fit, _ in found) and 1 / NEAR <= worst <= NEAR
    intervals = "; ".join(f"{f.rate / c:.2f} in [{f.lower / c:.2f}, {f.upper / c:.2f}]" for f, c in found)
    return Finding(worst, holds, f"corner over η_c with its 95% interval: {intervals}")


def constant_below(evidence: Evidence) -> Finding:
    """The largest spread of a norm or of sharpness over the rates up to 0.8 η_c and the flow, relative to its mean."""
    spreads = []
    for ends in sweeps(evidence, loss="half_mse"):
        below = ends.table["lr"] < 0.8 * ends.critical
        columns = [np.append(ends.table[name][below], ends.flow.get(name, [])) for name in ("sharpness", *NORMS)]
        # One value alone has no spread, and shows nothing.
        spreads.append(max(float(np.ptp(c) / c.mean()) if len(c) > 1 else np.inf for c in columns))
    return Finding(max(spreads), max(spreads) < 0.05, f"{len(spreads)} sweeps")


def follows(evidence: Evidence) -> Finding:
    """The median of λ_max η/2 over the rates from 1.2 to 3 η_c, of the sweep where it is farthest from 1."""
    worst, told = _at_the_edge(evidence, "half_mse", "sharpness", above=1.2)
    return Finding(worst, 0.75 <= worst <= 1.15, told)


def norms_grow(evidence: Evidence) -> Finding:
    """The least rank correlation of the ℓ1 norm with the rate above η_c; and the largest value of every norm there over
    its level below: a norm may fall before it grows, and just before divergence."""
    correlations, grown = [], []
    for ends in sweeps(evidence):
        table = ends.table
        above = table["lr"] > ends.critical
        correlations.append(_rank_correlation(table["lr"][above], table["l1"][above]))
        grown += [float(table[name][above].max() / table[name][~above].mean()) for name in NORMS]
    least = min(correlations)
    detail = f"largest over the level below η_c: {min(grown):.3f} and more"
    return Finding(least, least > 0.3 and min(grown) > 1, detail)


def least_norm_is_not_best(evidence: Evidence) -> Finding:
    """The test loss of the smallest rate over the least one, of the sweep where it is least; which is where."""
    ratios, where = [], []
    for ends in sweeps(evidence):
        losses = ends.table["test_loss"]
        ratios.append(float(losses[0] / losses.min()))
        where.append(float(ends.table["lr"][np.argmin(losses)] / ends.critical))
    holds = min(ratios) > 1 and min(where) > 1
    return Finding(min(ratios), holds, "best at " + ", ".join(f"{w:.2f}" for w in where) + " η_c")


def marks(evidence: Evidence) -> Finding:
    """The share of sweeps whose smoothed test loss is least past η_c; each with its mark."""
    found = [(ends, u_shape(ends.table["test_loss"])) for ends in sweeps(evidence)]
    fine = [bool(ends.table["lr"][shape.best] > ends.critical) for ends, shape in found]
    detail = "; ".join(f"{shape.mark} {ends.title}".replace("\n", ", ") for ends, shape in found)
    return Finding(float(np.mean(fine)), all(fine), detail)


def speed(evidence: Evidence) -> Finding:
    """The slope of log iterations in log rate below η_c, of the sweep where it is farthest from −1."""
    slopes = []
    for ends in sweeps(evidence):
        table = ends.table
        below = table["lr"] <= 1.0001 * ends.critical
        slopes.append(float(np.polyfit(np.log(table["lr"][below]), np.log(table["steps"][below]), 1)[0]))
    worst = slopes[int(np.argmax(np.abs(np.array(slopes) + 1)))]
    return Finding(worst, abs(worst + 1) < 0.1, f"{len(slopes)} sweeps")


def slower_past_it(evidence: Evidence) -> Finding:
    """The slope past η_c less the one below it, of the sweep where it is least."""
    differences = []
    for ends in sweeps(evidence):
        x, y = np.log(ends.table["lr"]), np.log(ends.table["steps"])
        below = ends.table["lr"] <= 1.0001 * ends.critical
        slopes = [float(np.polyfit(x[part], y[part], 1)[0]) for part in (below, ~below)]
        differences.append(slopes[1] - slopes[0])
    return Finding(min(differences), min(differences) > 0.05, f"{len(differences)} sweeps")


def moves_with_the_goal(evidence: Evidence) -> Finding:
    """η_c at the last goal over that at the first one, and the corner moves the same way."""
    ratios, corners = [], []
    for entry in evidence["fig2"]:
        goals = every_goal(entry)
        ratios.append(goals[-1].critical / goals[0].critical)
        first, last_one = fitted(goals[0]), fitted(goals[-1])
        corners.append(last_one.rate / first.rate if first and last_one else np.inf)
    holds = max(ratios) < 1 and max(corners) < 1.05
    return Finding(max(ratios), holds, f"of the corners {max(corners):.2f}")


def cross_entropy_falls_again(evidence: Evidence) -> Finding:
    """The median of the last sharpness over the largest one, above η_c, with cross-entropy; and with squares.

    Up to 2/s₀: at larger rates the run starts above the edge, and the largest sharpness is not one it has risen to.
    """
    medians = {}
    for loss in ("cross_entropy", "half_mse"):
        shares = []
        for ends in sweeps(evidence, loss=loss):
            table = ends.table
            risen = (table["lr"] > ends.critical) & (table["lr"] <= 2 / ends.flow["initial_sharpness"])
            fallen = table["sharpness"][risen] / table["smoothed_sharpness"][risen]
            # Where no rate is in between nothing is shown.
            shares.append(float(np.median(fallen)) if len(fallen) else np.nan)
        medians[loss] = max(shares) if loss == "cross_entropy" else min(shares)
    holds = medians["cross_entropy"] < 0.7 and medians["cross_entropy"] < medians["half_mse"]
    return Finding(medians["cross_entropy"], holds, f"with squares {medians['half_mse']:.2f}")


def rises_to_the_edge(evidence: Evidence) -> Finding:
    """With cross-entropy: the same of the smoothed maximum of sharpness, from 1.1 to 3 η_c."""
    worst, told = _at_the_edge(evidence, "cross_entropy", "smoothed_sharpness", above=1.1)
    return Finding(worst, 0.7 <= worst <= 1.4, told)


def _at_the_edge(evidence: Evidence, loss: str, name: str, *, above: float) -> tuple[float, str]:
    medians = []
    for ends in sweeps(evidence, loss=loss):
        rates = ends.table["lr"]
        past = (rates > above * ends.critical) & (rates < 3.01 * ends.critical)
        medians.append(float(np.median(ends.table[name][past] * rates[past] / 2)))
    return _farthest(medians), f"{len(medians)} sweeps"


def norms_agree(evidence: Evidence) -> Finding:
    """The least rank correlation between two of the three norms over all rates."""
    found = [
        _rank_correlation(ends.table[a], ends.table[b])
        for ends in sweeps(evidence)
        for a, b in (("l1", "l2"), ("l1", "nuclear"))
    ]
    return Finding(min(found), min(found) > 0.5, f"{len(found)} pairs")


def away_from_the_flow(evidence: Evidence) -> Finding:
    """The ℓ1 distance to the flow's end at the largest rate over that at the smallest one."""
    ratios, shares = [], []
    for ends in sweeps(evidence):
        away = ends.table["from_flow_l1"]
        ratios.append(float(away[-1] / away[0]))
        shares.append(float((away[-1] - away[0]) / max(ends.table["l1"][-1] - ends.table["l1"][0], 1e-12)))
    return Finding(min(ratios), min(ratios) > 1 and min(shares) > 1, f"grows {min(shares):.2g} times as much as ℓ1")


def layers_grow(evidence: Evidence) -> Finding:
    """The least growth of a layer's ℓ2 norm from the smallest to the largest rate, relative to its size; and how many
    layers have a falling trend past η_c all the same."""
    grown, trends = [], []
    for ends in sweeps(evidence):
        table, above = ends.table, ends.table["lr"] > ends.critical
        layers = [table[name] for name in table if name.startswith("l2[") and name.endswith("['W']")]
        grown += [float(norm[-1] / norm[0] - 1) for norm in layers]
        trends += [_rank_correlation(table["lr"][above], norm[above]) for norm in layers]
    falling = sum(trend < 0 for trend in trends)
    return Finding(min(grown), min(grown) > 0, f"{len(grown)} layers; {falling} have a falling trend past η_c")


def measures_fall(evidence: Evidence) -> Finding:
    """The largest rank correlation with the rate above η_c of a measure of sharpness.

    Not of the Fisher trace, which the paper excepts; and not of the worst case of adaptive sharpness, which at a small
    radius is the size of the gradient, and gradient descent at the edge of stability stops where that is not small.
    """
    found: dict[str, float] = {}
    for ends in sweeps({"fig10": evidence["fig10"]}):
        above = ends.table["lr"] > ends.critical
        for name in ("sharpness", "trace", "adaptive_average", "fisher", "adaptive_worst"):
            value = _rank_correlation(ends.table["lr"][above], ends.table[name][above])
            found[name] = max(value, found.get(name, -1.0))
    beside = found.pop("adaptive_worst")
    largest = max(found, key=lambda name: found[name])
    return Finding(found[largest], found[largest] < 0, f"of {largest}; of the adaptive worst case {beside:.2f}")


def _farthest(ratios: Iterable[float]) -> float:
    return max(ratios, key=lambda ratio: abs(np.log(ratio)), default=np.nan)


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)
