"""Figures 1 to 14, 17 and those of appendix I on networks, and the panels of every row of table 1."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steppe import figures
from steppe.experiments import Figure, Scale, Shown
from steppe.papers.conflicting_biases.network_ends import (
    at_every_goal,
    at_goal,
    layers_panel,
    panel,
    path_panel,
    row_summary,
    seeds_panel,
)
from steppe.papers.conflicting_biases.network_figures import ends_grid, figure, grid, honest
from steppe.papers.conflicting_biases.network_measures import MEASURES, SCALE_FREE, MeasuredEnds
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.network_scales import sweeps
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.table_1 import Row, rows, shown_in
from steppe.store._spec import plain

# Section 2.

fig1 = figure(
    "fig1", "sharpness falls and norm grows past the critical rate", ("1a", "1b", "1c"),
    ends_grid("Fig. 1 · sharpness and norm of the ends", "sharpness", "l2"),
)  # fmt: skip


def goals_grid(entries: Sequence[Any], shown: Sequence[Row]) -> dict[str, Any]:
    """A column for each loss goal of one sweep, with equal axes."""
    columns = [ends for entry in entries for ends in at_every_goal(entry)]
    panels = [[panel(ends, q, titled=k == 0) for ends in columns] for k, q in enumerate(("sharpness", "l1"))]
    return {
        "title": honest("Fig. 2 · the transition moves with the loss goal", columns), "grid": panels, "equal_axes": True
    }  # fmt: skip


fig2 = figure("fig2", "the transition for three loss goals", ("2c",), goals_grid)
fig3 = figure(
    "fig3", "sharpness, nuclear norm and test loss", ("3a", "3b", "3c"),
    ends_grid("Fig. 3 · who generalises best", "sharpness", "nuclear", "test_loss"),
)  # fmt: skip

# Appendix H: architectures, initialisations, parameterisations.

figure(
    "fig5", "convolutional networks", ("5a", "5b", "5c"),
    ends_grid("Fig. 5 · convolutional networks", "sharpness", "l1"),
)  # fmt: skip
figure(
    "fig6", "seeds and scales of the initialisation", ("6a", "6b", "6c"),
    ends_grid("Fig. 6 · seeds and scales of the initialisation", "sharpness", "l1"),
)  # fmt: skip
figure("fig7", "μP parameterisation", ("7a", "7b", "7c"), ends_grid("Fig. 7 · μP parameterisation", "sharpness", "l1"))
figure(
    "fig8", "kernel parameterisation", ("8a", "8b", "8c"),
    ends_grid("Fig. 8 · kernel parameterisation", "sharpness", "l1"),
)  # fmt: skip

# Other norms, measures and distances; training, layers, other data.

fig9 = figure("fig9", "three norms", ("1a", "3a"), ends_grid("Fig. 9 · ℓ1, nuclear and ℓ2 norm", "l1", "nuclear", "l2"))
fig10 = figure(
    "fig10", "six measures of sharpness, and five without scale or with labels", ("57", "6c", "3b"),
    ends_grid("Fig. 10 · other measures of sharpness", "sharpness", *MEASURES, *SCALE_FREE), runs_of=MeasuredEnds,
    scales=("laptop", "paper"),
)  # fmt: skip
fig11 = figure(
    "fig11", "distance to the flow's end", ("1a", "3a"),
    ends_grid("Fig. 11 · distance to the flow's end", "from_flow_l1"),
)  # fmt: skip
figure(
    "fig12", "distance to the initialisation", ("3a", "3b", "3c"),
    ends_grid("Fig. 12 · distance to the initialisation, and norm", "from_start_l1", "l1"),
)  # fmt: skip


def watched(sweep: NetworkSweep) -> NetworkSweep:
    """Three rates, and a measurement at almost every step: enough to see the sharpness oscillate around 2/η."""
    return replace(sweep, multiples=(0.5, 1.5, 3.0), share=20.0)


fig13 = figure(
    "fig13", "sharpness, norm and loss during training", ("52", "19"),
    grid("Fig. 13 · during training", ("sharpness", "l1", "distance_l1", "loss"), path_panel),
    runs_of={"laptop": watched},
)  # fmt: skip
fig14 = figure(
    "fig14", "norms layer by layer", ("3a", "3b"), grid("Fig. 14 · norms layer by layer", ("l1", "l2"), layers_panel)
)
figure(
    "fig17", "tables and sequences", ("17a", "17b", "17c"),
    ends_grid("Fig. 17 · other kinds of data", "sharpness", "l1", "test_loss"),
)  # fmt: skip

# Appendix I.8: norms and distances (figures 64 to 71), iterations and accuracy (72 to 79), of one row each.

for number in range(64, 72):
    figure(
        f"fig{number}", f"norms and distance to the flow's end, {shown_in(str(number)).name}", (str(number),),
        ends_grid(f"Fig. {number} · norms, and distance to the flow's end", "l2", "nuclear", "from_flow_l1"),
        scales=("laptop", "paper"),
    )  # fmt: skip
for number in range(72, 80):
    figure(
        f"fig{number}", f"iterations and test accuracy, {shown_in(str(number)).name}", (str(number),),
        ends_grid(f"Fig. {number} · iterations and test accuracy", "steps", "test_accuracy"),
        scales=("laptop", "paper"),
    )  # fmt: skip

# Appendix I: the panels of every row. At paper scale with the paper's grids: fine grid above, coarse grid below.


def _row_figure(row: Row) -> Figure:
    """At smoke scale it is run by its name only: the other figures show the same there."""

    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        ends, quantities = [at_goal(entry, row.goal) for entry in entries], ("sharpness", "l1", "test_loss")
        thinned = bool(entries[0].spec.get("multiples"))
        panels = [[panel(ends[0], q, fine=not thinned, titled=k == 0) for k, q in enumerate(quantities)]]
        if len(ends) > 1:
            panels.append([seeds_panel(ends, q) for q in quantities])
        elif not thinned:
            panels.append([panel(ends[0], q) for q in quantities])
        title = f"{'Table 1' if row.figures else 'Beyond table 1'} · {row.name}"
        rates = f" ({len(ends[0].rates)} rates in place of the grids)" if thinned else ""
        summaries = [{"row": row.name, "printed": row.mark} | row_summary(one) for one in ends]
        return {"title": honest(title + rates, ends), "grid": panels, "rows": plain(summaries)}

    scales: tuple[Scale, ...] = ("smoke", "laptop", "paper")
    runs: Mapping[Scale, tuple[NetworkSweep, ...]] = {scale: sweeps(row, scale) for scale in scales}
    show = Shown(numbers, figures.rates)
    return PAPER.figure(f"row-{row.name}", f"appendix I: {row.name}", runs=runs, show=show, by_name=("smoke",))


ROW_FIGURES = {row.name: _row_figure(row) for row in rows().values()}
