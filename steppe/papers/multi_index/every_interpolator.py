"""Claims on every interpolator of section 6: certificates, the loss in closed form, lower bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding
from steppe.papers.multi_index.figures_2_to_4 import FIG2, FIG2_LOUD, FIG3, FIG3_LOUD, FIG4
from steppe.papers.multi_index.interpolators import groups
from steppe.papers.multi_index.setting import COLOURS, PAPER

Runs = Sequence[Any]
ALL = (FIG2, FIG2_LOUD, FIG3, FIG3_LOUD, FIG4)


@PAPER.plot("lemma5", "the lower bound from the least norm against the flattest", figures.panels, runs=FIG2.runs)
def tightness(runs: Runs) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for group in groups(runs):
        ratio = group.median("lemma5") / group.median("flatness")
        kept, kind = np.isfinite(ratio), "dotted" if group.spec["noise"] else "line"
        colour = COLOURS[group.spec["activation"]]
        series.append(figures.series(group.nu[kept], ratio[kept], kind, colour, group.name))
    one = {"x": "correlation ν", "y": "bound / flattest", "log": "x", "series": series, "limits": {"y": [0, 1.05]}}
    return {"title": "Lemma 5 · the bound from the least norm", "panels": [one]}


@PAPER.claim(
    "eq3-certified", "Eq. 3", "The flattest interpolator of every system is found, or none exists.",
    "relative gap ≤ 1e-5", needs=ALL,
)  # fmt: skip
def certified(fig2: Runs, fig2_loud: Runs, fig3: Runs, fig3_loud: Runs, fig4: Runs) -> Finding:
    every = [*fig2, *fig2_loud, *fig3, *fig3_loud, *fig4]
    gap = max(run.result["gap"] for run in every)
    missing, total = sum(run.result["missing"] for run in every), sum(run.spec["count"] for run in every)
    # The runs ask the solver for 1e-5.
    return Finding(gap, gap <= 1e-5, f"{total} systems, {missing} of them without interpolator")


@PAPER.claim(
    "b1-closed-form", "Appendix B.1", "The population loss in closed form is that of a fresh sample.",
    "root mean square difference of about one standard error", needs=(FIG2, FIG3),
)  # fmt: skip
def closed_form_is_sampled(fig2: Runs, fig3: Runs) -> Finding:
    """The root mean square of (sampled − exact)/standard error over all interpolators."""
    scores = []
    for group in groups([*fig2, *fig3]):
        c = group.columns
        # A loss that is rounding cannot be compared.
        kept = group.found & np.isfinite(c["loss"]) & (c["loss"] > 1e-9)
        scores.append(((c["sampled"] - c["loss"]) / c["error"])[kept])
    every = np.concatenate(scores)
    size = float(np.sqrt(np.mean(every**2)))
    detail = f"{len(every)} interpolators; mean {every.mean():+.2f}, largest {np.abs(every).max():.2f}"
    # Four standard errors below 1; more above, since 2,000 samples often miss the tail where most of the error is.
    return Finding(size, bool(1 - 4 / np.sqrt(2 * len(every)) <= size <= 1.4), detail)


@PAPER.claim(
    "lemma5-bound", "Lemma 5", "The interpolator of least norm gives a lower bound of the flatness.",
    "bound over least flatness ≤ 1 for every system", needs=(FIG2, FIG3),
)  # fmt: skip
def least_norm_bounds(fig2: Runs, fig3: Runs) -> Finding:
    """The bound over the certified flatness: the largest."""
    ratios = np.concatenate([(g.columns["lemma5"] / g.columns["flatness"])[g.found] for g in groups([*fig2, *fig3])])
    detail = f"{len(ratios)} interpolators; median {np.median(ratios):.2f}, smallest {ratios.min():.2f}"
    # The flatness is known to 1e-5.
    return Finding(float(ratios.max()), bool(ratios.max() <= 1 + 1e-5), detail)


@PAPER.claim(
    "thm1-any", "Theorem 1, without its assumptions",
    "No interpolator is flatter than (2/n)(c+1)c^{c/(c+1)} α^{2/(c+1)} m^{1−p} Σ(|y|‖x‖)^p.",
    "least flatness over bound ≥ 1 for every system", needs=(FIG2, FIG3),
)  # fmt: skip
def none_below_pointwise(fig2: Runs, fig3: Runs) -> Finding:
    """Certified flatness over the bound that holds for any inner weights: the smallest."""
    ratios = np.concatenate([(g.columns["lower"] / g.columns["pointwise"])[g.found] for g in groups([*fig2, *fig3])])
    return Finding(float(ratios.min()), bool(ratios.min() >= 1), f"{len(ratios)} interpolators")
