"""Section 2: what happens to sharpness, norms and test loss when the learning rate exceeds η_c = 2/s_GF."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.conflicting_biases.network_ends import Ends, at_every_goal, panel
from steppe.papers.conflicting_biases.network_figures import (
    NORMS,
    at_the_edge,
    ends_grid,
    farthest_from_one,
    figure,
    rank_correlation,
    sweeps,
)
from steppe.papers.conflicting_biases.paper import PAPER

if TYPE_CHECKING:
    from steppe.rates import Transition

# The corner may be off by this factor: the fine grid has the step η_c/4.
_NEAR = 1.35


def goals_grid(entries: Sequence[Any]) -> dict[str, Any]:
    """A column for each loss goal of one sweep."""
    columns = [ends for entry in entries for ends in at_every_goal(entry)]
    grid = [[panel(ends, q, titled=k == 0) for ends in columns] for k, q in enumerate(("sharpness", "l1"))]
    return {"title": "Fig. 2 · the transition moves with the loss goal", "grid": grid}


fig1 = figure(
    "fig1", "sharpness falls and norm grows past the critical rate", ("1a", "1b", "1c"),
    ends_grid("Fig. 1 · sharpness and norm of the ends", "sharpness", "l1"),
)  # fmt: skip
fig2 = figure("fig2", "the transition for three loss goals", ("2c",), goals_grid)
fig3 = figure(
    "fig3", "sharpness, nuclear norm and test loss", ("3a", "3b", "3c"),
    ends_grid("Fig. 3 · who generalises best", "sharpness", "nuclear", "test_loss"),
)  # fmt: skip


def fitted(ends: Ends) -> "Transition | None":
    """Where sharpness leaves its plateau on the fine grid; None if too few rates reached the goal.

    With cross-entropy sharpness falls again before the end, so its smoothed maximum is fitted.
    """
    from steppe.rates import corner

    kind = "sharpness" if ends.loss == "half_mse" else "smoothed_sharpness"
    return corner(ends.table, ends.critical, kind)


@PAPER.claim(
    "net-transition", "section 2", "Final sharpness leaves its plateau at η_c = 2/s_GF.",
    "corner/η_c within a factor 1.35", needs=(fig2, fig3),
)  # fmt: skip
def at_the_critical_rate(*runs: Any) -> Finding:
    """The corner over η_c, of the sweep where it is farthest from 1."""
    swept = sweeps(*runs, loss="half_mse")
    found = [(fit, e.critical) for e in swept if (fit := fitted(e)) is not None]
    worst = farthest_from_one(fit.rate / critical for fit, critical in found)
    holds = len(found) == len(swept) and all(fit.found for fit, _ in found) and 1 / _NEAR <= worst <= _NEAR
    intervals = "; ".join(f"{f.rate / c:.2f} in [{f.lower / c:.2f}, {f.upper / c:.2f}]" for f, c in found)
    return Finding(worst, holds, f"corner over η_c with its 95% interval: {intervals}")


@PAPER.claim(
    "net-flow-aligned", "section 2.2", "Below η_c sharpness and norms of the end are the flow's, whatever η.",
    "spread < 5%", needs=(fig2, fig3),
)  # fmt: skip
def constant_below(*runs: Any) -> Finding:
    """The largest spread of a norm or of sharpness over the flow and the rates up to 0.8 η_c, relative to its mean."""
    spreads = []
    for ends in sweeps(*runs, loss="half_mse"):
        below = ends.table["lr"] < 0.8 * ends.critical
        columns = [np.append(ends.table[name][below], ends.flow.get(name, [])) for name in ("sharpness", *NORMS)]
        # A single value has no spread, and shows nothing.
        spreads.append(max(float(np.ptp(c) / c.mean()) if len(c) > 1 else np.inf for c in columns))
    return Finding(max(spreads), max(spreads) < 0.05, f"{len(spreads)} sweeps")


@PAPER.claim(
    "net-edge", "section 2.2", "Above η_c the sharpness of the end follows 2/η.", "median ratio in [0.75, 1.15]",
    needs=(fig2, fig3),
)  # fmt: skip
def follows(*runs: Any) -> Finding:
    worst, count = at_the_edge(sweeps(*runs, loss="half_mse"), "sharpness", above=1.2)
    return Finding(worst, 0.75 <= worst <= 1.15, count)


@PAPER.claim(
    "net-norms-grow", "section 2.2", "… while ℓ1, ℓ2 and nuclear norm grow.",
    "rank correlation of ℓ1 > 0.3; each above its plateau", needs=(fig3,),
)  # fmt: skip
def norms_grow(*runs: Any) -> Finding:
    """The smallest rank correlation of the ℓ1 norm with the rate above η_c.

    Also the largest value of every norm there over its level below: a norm may fall first, and just before divergence.
    """
    correlations, grown = [], []
    for ends in sweeps(*runs):
        table = ends.table
        above = table["lr"] > ends.critical
        correlations.append(rank_correlation(table["lr"][above], table["l1"][above]))
        grown += [float(table[name][above].max() / table[name][~above].mean()) for name in NORMS]
    least = min(correlations)
    detail = f"largest over the level below η_c: {min(grown):.3f} and more"
    return Finding(least, least > 0.3 and min(grown) > 1, detail)


@PAPER.claim(
    "net-least-norm", "section 2.2", "Solutions of least norm never generalise best.", "ratio of test losses > 1",
    needs=(fig3,),
)  # fmt: skip
def least_norm_is_not_best(*runs: Any) -> Finding:
    """The test loss at the smallest rate over the smallest test loss, of the sweep where this ratio is smallest."""
    ratios, where = [], []
    for ends in sweeps(*runs):
        losses = ends.table["test_loss"]
        ratios.append(float(losses[0] / losses.min()))
        where.append(float(ends.table["lr"][np.argmin(losses)] / ends.critical))
    holds = min(ratios) > 1 and min(where) > 1
    return Finding(min(ratios), holds, "best at " + ", ".join(f"{w:.2f}" for w in where) + " η_c")


@PAPER.claim(
    "net-u-shape", "Table 1", "Test loss is U-shaped in η or least at large η, never below η_c.", "all", needs=(fig3,)
)
def marks(*runs: Any) -> Finding:
    """The share of sweeps whose smoothed test loss is least past η_c; the detail has the mark of each."""
    from steppe.rates import u_shape

    found = [(ends, u_shape(ends.table["test_loss"])) for ends in sweeps(*runs)]
    fine = [bool(ends.table["lr"][shape.best] > ends.critical) for ends, shape in found]
    detail = "; ".join(f"{shape.mark} {ends.title}".replace("\n", ", ") for ends, shape in found)
    return Finding(float(np.mean(fine)), all(fine), detail)


@PAPER.claim(
    "net-goal", "Figure 2", "A smaller loss goal moves η_c, and the transition, to smaller rates.", "ratio < 1",
    needs=(fig2,),
)  # fmt: skip
def moves_with_the_goal(runs: Sequence[Any]) -> Finding:
    """η_c at the last goal over η_c at the first one; the corner must not move the other way."""
    ratios, corners = [], []
    for entry in runs:
        goals = at_every_goal(entry)
        ratios.append(goals[-1].critical / goals[0].critical)
        first, last = fitted(goals[0]), fitted(goals[-1])
        corners.append(last.rate / first.rate if first and last else np.inf)
    holds = max(ratios) < 1 and max(corners) < 1.05
    return Finding(max(ratios), holds, f"of the corners {max(corners):.2f}")
