"""Section 2: what happens to sharpness, norms and test loss when the learning rate exceeds η_c = 2/s_GF."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.conflicting_biases import network_figures as networks
from steppe.papers.conflicting_biases.network_ends import Ends, at_every_goal, panel
from steppe.papers.conflicting_biases.network_figures import NORMS, ends_grid, farthest_from_one

if TYPE_CHECKING:
    from steppe.rates import Transition

# The corner may be off by this factor: the fine grid has the step η_c/4.
_NEAR = 1.35


def goals_grid(entries: Sequence[Any]) -> dict[str, Any]:
    """A column for each loss goal of one sweep."""
    columns = [ends for entry in entries for ends in at_every_goal(entry)]
    grid = [[panel(ends, q, titled=k == 0) for ends in columns] for k, q in enumerate(("sharpness", "l1"))]
    return {"title": networks.honest("Fig. 2 · the transition moves with the loss goal", columns), "grid": grid}


fig1 = networks.figure(
    "fig1", "sharpness falls and norm grows past the critical rate", ("1a", "1b", "1c"),
    ends_grid("Fig. 1 · sharpness and norm of the ends", "sharpness", "l1"),
)  # fmt: skip
fig2 = networks.figure("fig2", "the transition for three loss goals", ("2c",), goals_grid)
fig3 = networks.figure(
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


@networks.claim(
    "net-transition", "section 2", "The final sharpness leaves its plateau at η_c = 2/s_GF.",
    "corner/η_c between 1/1.35 and 1.35", fig2, fig3, loss="half_mse",
)  # fmt: skip
def at_the_critical_rate(sweeps: list[Ends]) -> Finding:
    """The corner over η_c, of the sweep where it is farthest from 1."""
    found = [(fit, e.critical) for e in sweeps if (fit := fitted(e)) is not None]
    worst = farthest_from_one(fit.rate / critical for fit, critical in found)
    holds = len(found) == len(sweeps) and all(fit.found for fit, _ in found) and 1 / _NEAR <= worst <= _NEAR
    intervals = ", ".join(f"{f.rate / c:.2f} in [{f.lower / c:.2f}, {f.upper / c:.2f}]" for f, c in found)
    return Finding(worst, holds, f"corner over η_c with its 95% interval: {intervals}")


@networks.claim(
    "net-flow-aligned", "section 2.2",
    "Below η_c gradient descent ends with the sharpness and norms of the flow's end, whatever η is.",
    "relative spread < 5%", fig2, fig3, loss="half_mse",
)  # fmt: skip
def constant_below(sweeps: list[Ends]) -> Finding:
    """The largest spread of a norm or of sharpness over the flow and the rates up to 0.8 η_c, relative to its mean."""
    spreads = []
    for ends in sweeps:
        below = ends.table["lr"] < 0.8 * ends.critical
        columns = [np.append(ends.table[name][below], ends.flow.get(name, [])) for name in ("sharpness", *NORMS)]
        # A single value has no spread, and shows nothing.
        spreads.append(max(float(np.ptp(c) / c.mean()) if len(c) > 1 else np.inf for c in columns))
    return Finding(max(spreads), max(spreads) < 0.05, f"{len(spreads)} sweeps")


@networks.claim(
    "net-edge", "section 2.2", "Above η_c the final sharpness follows 2/η.",
    "median of sharpness · η/2 in [0.75, 1.15]", fig2, fig3, loss="half_mse",
)  # fmt: skip
def follows(sweeps: list[Ends]) -> Finding:
    worst, count = networks.at_the_edge(sweeps, "sharpness", above=1.2)
    return Finding(worst, 0.75 <= worst <= 1.15, count)


@networks.claim(
    "net-norms-grow", "section 2.2", "Above η_c the ℓ1, ℓ2 and nuclear norms grow with η.",
    "rank correlation of ℓ1 with η > 0.3; each norm exceeds its plateau", fig3,
)  # fmt: skip
def norms_grow(sweeps: list[Ends]) -> Finding:
    """The smallest rank correlation of the ℓ1 norm with the rate above η_c.

    Also the largest value of every norm there over its level below: a norm may fall just above η_c, and just before
    divergence.
    """
    correlations, grown = [], []
    for ends in sweeps:
        table = ends.table
        above = table["lr"] > ends.critical
        correlations.append(networks.rank_correlation(table["lr"][above], table["l1"][above]))
        grown += [float(table[name][above].max() / table[name][~above].mean()) for name in NORMS]
    least = min(correlations)
    detail = f"largest norm over its level below η_c: at least {min(grown):.3f}"
    return Finding(least, least > 0.3 and min(grown) > 1, detail)


@networks.claim(
    "net-least-norm", "section 2.2", "Solutions of least norm never generalise best.",
    "test loss at the smallest η over the least test loss > 1", fig3,
)  # fmt: skip
def least_norm_is_not_best(sweeps: list[Ends]) -> Finding:
    """The test loss at the smallest rate over the smallest test loss, of the sweep where this ratio is smallest."""
    ratios, where = [], []
    for ends in sweeps:
        losses = ends.table["test_loss"]
        ratios.append(float(losses[0] / losses.min()))
        where.append(float(ends.table["lr"][np.argmin(losses)] / ends.critical))
    holds = min(ratios) > 1 and min(where) > 1
    return Finding(min(ratios), holds, "best at " + ", ".join(f"{w:.2f}" for w in where) + " η_c")


@networks.claim(
    "net-u-shape", "Table 1", "The test loss is U-shaped in η or least at large η, never least below η_c.",
    "in every sweep", fig3,
)  # fmt: skip
def marks(sweeps: list[Ends]) -> Finding:
    """The share of sweeps whose smoothed test loss is least past η_c; the detail has the mark of each."""
    from steppe.rates import u_shape

    found = [(ends, u_shape(ends.table["test_loss"])) for ends in sweeps]
    fine = [bool(ends.table["lr"][shape.best] > ends.critical) for ends, shape in found]
    detail = "; ".join(f"{shape.mark} {ends.title}".replace("\n", ", ") for ends, shape in found)
    return Finding(float(np.mean(fine)), all(fine), detail)


@networks.claim(
    "net-goal", "Figure 2", "A smaller loss goal moves η_c and the transition to smaller rates.",
    "η_c at the last goal over η_c at the first < 1", fig2,
)  # fmt: skip
def moves_with_the_goal(sweeps: list[Ends]) -> Finding:
    """η_c at the last goal over η_c at the first one; the corner must not move the other way."""
    ratios, corners = [], []
    for ends in sweeps:
        goals = at_every_goal(ends.entry)
        ratios.append(goals[-1].critical / goals[0].critical)
        first, last = fitted(goals[0]), fitted(goals[-1])
        corners.append(last.rate / first.rate if first and last else np.inf)
    holds = max(ratios) < 1 and max(corners) < 1.05
    return Finding(max(ratios), holds, f"ratio of the corners {max(corners):.2f}")
