"""Networks in the appendices: architectures, initialisations, parameterisations, other measures, training, all rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Figure, Finding, Scale, Shown
from steppe.papers.conflicting_biases.network_ends import Ends, at_goal, layers_panel, panel, path_panel
from steppe.papers.conflicting_biases.network_figures import (
    at_the_edge,
    claim,
    ends_grid,
    figure,
    grid,
    honest,
    rank_correlation,
)
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.network_scales import spec
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.table_1 import Row, rows

# Figures 5 to 8: architectures, initialisations, parameterisations.

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

_WIDTHS = (64, 256, 1024)
_DRAWS, _STEPS = 20, 3


@PAPER.misprint(
    "net-kernel-outputs", "appendix H.7",
    printed=("Kernel parameterisation: f = W_L h_L keeps the outputs at the start O(1) for every width.",
             "outputs at the start ∝ width^p, |p| < 0.15"),
    corrected=("Kernel parameterisation: f = W_L h_L/√n_L keeps the outputs at the start O(1) for every width.",
               "outputs at the start ∝ width^p, |p| < 0.15"),
)  # fmt: skip
def outputs_of_kernel(as_printed: bool) -> Finding:
    """The power of the width with which the outputs of the kernel parameterisation grow at the start."""
    import jax.numpy as jnp

    from steppe.networks import FCN, Scaled, kernel

    # As printed the last layer has no 1/√n, unlike the hidden layers.
    parameterisation = Scaled("kernel as printed", -0.5) if as_printed else kernel
    sizes, x = [], jnp.asarray(np.random.default_rng(0).normal(size=(8, 10)))
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=parameterisation, bias=False)
        draws = (network.init((10,), 2, np.random.default_rng(k), np.float64) for k in range(_DRAWS))
        sizes.append(float(np.sqrt(np.mean([np.mean(np.square(network(w, x))) for w in draws]))))
    return _power_of_width(sizes)


@PAPER.misprint(
    "net-mup-features", "appendix H.7",
    printed=("μP: with f = W_L h_L/√n_L features are learned at every width.",
             "features move ∝ width^p, |p| < 0.15"),
    corrected=("μP: with f = W_L h_L/n_L and learning rates ∝ n features are learned at every width.",
               "features move ∝ width^p, |p| < 0.15"),
)  # fmt: skip
def features_of_mup(as_printed: bool) -> Finding:
    """The power of the width with which μP's features move in a few steps, at rates at which the outputs move by O(1).

    Those rates are ∝ n for μP; for the kernel parameterisation, which is what is printed, they do not depend on n.
    """
    from steppe.networks import FCN, kernel, mup

    moved = []
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=kernel if as_printed else mup, bias=False)
        moved.append(_movement(network, 0.1 * (1 if as_printed else width)))
    return _power_of_width(moved)


def _movement(network: Any, rate: float) -> float:
    """Root mean square change of the last hidden layer."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(8, 10))), jnp.asarray(rng.normal(size=(8, 2)))
    start = network.init((10,), 2, rng, np.float64)
    slope = jax.jit(jax.grad(lambda w: 0.5 * jnp.mean(jnp.sum((network(w, x) - y) ** 2, axis=1))))
    end = start
    for _ in range(_STEPS):
        end = jax.tree.map(lambda a, g: a - rate * g, end, slope(end))
    change = network.features(end, x)[-1] - network.features(start, x)[-1]
    return float(jnp.sqrt(jnp.mean(change**2)))


def _power_of_width(values: list[float]) -> Finding:
    power = float(np.polyfit(np.log(_WIDTHS), np.log(values), 1)[0])
    # A single draw at the smallest width changes an exponent by about 0.15.
    return Finding(power, abs(power) < 0.15, f"widths {_WIDTHS}: {np.round(values, 4).tolist()}")


# Figures 9 to 12: other norms, measures and distances.

fig9 = figure("fig9", "three norms", ("1a", "3a"), ends_grid("Fig. 9 · ℓ1, nuclear and ℓ2 norm", "l1", "nuclear", "l2"))


@claim("net-norms-agree", "Figure 9", "The three norms rise and fall together.", "rank correlation > 0.5", fig9)
def norms_agree(sweeps: list[Ends]) -> Finding:
    """The smallest rank correlation between two of the three norms over all rates."""
    found = [
        rank_correlation(ends.table[a], ends.table[b]) for ends in sweeps for a, b in (("l1", "l2"), ("l1", "nuclear"))
    ]
    return Finding(min(found), min(found) > 0.5, f"{len(found)} pairs")


MEASURES = ("sharpness", "trace", "adaptive_average", "adaptive_worst", "fisher", "fisher_trace")
fig10 = figure(
    "fig10", "six measures of sharpness", ("57", "6c", "3b"),
    ends_grid("Fig. 10 · other measures of sharpness", *MEASURES), all_sharpness=True,
)  # fmt: skip


@claim(
    "net-measures", "Figure 10", "Trace, average adaptive sharpness and Fisher λ_max fall above η_c too.",
    "rank correlation with η above η_c < 0", fig10,
)  # fmt: skip
def measures_fall(sweeps: list[Ends]) -> Finding:
    """The largest rank correlation with the rate above η_c of a measure of sharpness.

    The paper makes an exception of the Fisher trace. The worst case of adaptive sharpness is only in the detail: at a
    small radius it is the size of the gradient, which is not small where gradient descent at the edge stops.
    """
    found: dict[str, float] = {}
    for ends in sweeps:
        above = ends.table["lr"] > ends.critical
        for name in ("sharpness", "trace", "adaptive_average", "fisher", "adaptive_worst"):
            value = rank_correlation(ends.table["lr"][above], ends.table[name][above])
            found[name] = max(value, found.get(name, -1.0))
    worst_case = found.pop("adaptive_worst")
    largest = max(found, key=lambda name: found[name])
    return Finding(found[largest], found[largest] < 0, f"of {largest}; of the adaptive worst case {worst_case:.2f}")


fig11 = figure(
    "fig11", "distance to the flow's end", ("1a", "3a"),
    ends_grid("Fig. 11 · distance to the flow's end", "from_flow_l1"),
)  # fmt: skip


@claim(
    "net-distance", "Figure 11", "The distance to the flow's end grows with η, by more than the norm.",
    "distance at the largest η over that at the smallest > 1", fig11,
)  # fmt: skip
def away_from_the_flow(sweeps: list[Ends]) -> Finding:
    """The ℓ1 distance to the flow's end at the largest rate over the distance at the smallest one."""
    ratios, shares = [], []
    for ends in sweeps:
        away = ends.table["from_flow_l1"]
        ratios.append(float(away[-1] / away[0]))
        shares.append(float((away[-1] - away[0]) / max(ends.table["l1"][-1] - ends.table["l1"][0], 1e-12)))
    return Finding(min(ratios), min(ratios) > 1 and min(shares) > 1, f"grows {min(shares):.2g} times as much as ℓ1")


figure(
    "fig12", "distance to the initialisation", ("3a", "3b", "3c"),
    ends_grid("Fig. 12 · distance to the initialisation, and norm", "from_start_l1", "l1"),
)  # fmt: skip

# Figures 13, 14, 17 and appendix I.8: training, layers, other data, speed.

fig13 = figure(
    "fig13", "sharpness, norm and loss during training", ("52", "19"),
    grid("Fig. 13 · during training", ("sharpness", "l1", "distance_l1", "loss"), path_panel),
)  # fmt: skip


@claim(
    "net-ce-falls", "appendix H.4", "With cross-entropy the sharpness rises to the edge, then falls before the end.",
    "final over largest sharpness < 0.7, and less than with squared loss", fig13,
)  # fmt: skip
def cross_entropy_falls_again(sweeps: list[Ends]) -> Finding:
    """The median over rates above η_c of the last sharpness over the largest, with cross-entropy and with squared loss.

    Only rates up to 2/s₀ count: at larger rates a run starts above the edge, and its sharpness does not rise to it.
    """
    medians = {}
    for loss in ("cross_entropy", "half_mse"):
        shares = []
        for ends in (e for e in sweeps if e.loss == loss):
            table = ends.table
            risen = (table["lr"] > ends.critical) & (table["lr"] <= 2 / ends.flow["initial_sharpness"])
            fallen = table["sharpness"][risen] / table["smoothed_sharpness"][risen]
            # If no rate lies between, the sweep shows nothing.
            shares.append(float(np.median(fallen)) if len(fallen) else np.nan)
        medians[loss] = max(shares) if loss == "cross_entropy" else min(shares)
    holds = medians["cross_entropy"] < 0.7 and medians["cross_entropy"] < medians["half_mse"]
    return Finding(medians["cross_entropy"], holds, f"with squared loss {medians['half_mse']:.2f}")


fig14 = figure(
    "fig14", "norms layer by layer", ("3a", "3b"), grid("Fig. 14 · norms layer by layer", ("l1", "l2"), layers_panel)
)


@claim(
    "net-layers", "Figure 14", "The ℓ2 norm of every layer is larger at the largest rate than at the smallest.",
    "relative growth > 0", fig14,
)  # fmt: skip
def layers_grow(sweeps: list[Ends]) -> Finding:
    """The smallest relative growth of a layer's ℓ2 norm from the smallest to the largest rate.

    The detail says how many layers have a norm that tends to fall above η_c nevertheless.
    """
    grown, trends = [], []
    for ends in sweeps:
        table, above = ends.table, ends.table["lr"] > ends.critical
        layers = [table[name] for name in table if name.startswith("l2[") and name.endswith("['W']")]
        grown += [float(norm[-1] / norm[0] - 1) for norm in layers]
        trends += [rank_correlation(table["lr"][above], norm[above]) for norm in layers]
    falling = sum(trend < 0 for trend in trends)
    return Finding(min(grown), min(grown) > 0, f"{len(grown)} layers; {falling} tend to fall above η_c")


figure(
    "fig17", "tables and sequences", ("17a", "17b", "17c"),
    ends_grid("Fig. 17 · other kinds of data", "sharpness", "l1", "test_loss"),
)  # fmt: skip
fig_speed = figure(
    "figI.8", "convergence speed and test accuracy", ("52", "19"),
    ends_grid("Appendix I.8 · iterations and test accuracy", "steps", "test_accuracy"),
)  # fmt: skip


@claim(
    "net-speed", "appendix H.8", "Below η_c the number of iterations needed is proportional to 1/η.",
    "slope of log iterations in log η within 0.1 of −1", fig_speed,
)  # fmt: skip
def speed(sweeps: list[Ends]) -> Finding:
    """The slope of log iterations in log rate below η_c, of the sweep where it is farthest from −1."""
    slopes = []
    for ends in sweeps:
        table = ends.table
        below = table["lr"] <= 1.0001 * ends.critical
        slopes.append(float(np.polyfit(np.log(table["lr"][below]), np.log(table["steps"][below]), 1)[0]))
    worst = slopes[int(np.argmax(np.abs(np.array(slopes) + 1)))]
    return Finding(worst, abs(worst + 1) < 0.1, f"{len(slopes)} sweeps")


@claim(
    "net-speed-past", "appendix H.8", "Above η_c the number of iterations falls more slowly with η than below.",
    "slope above η_c minus slope below > 0.05", fig_speed,
)  # fmt: skip
def slower_past_it(sweeps: list[Ends]) -> Finding:
    """The slope past η_c minus the slope below it, of the sweep where the difference is smallest."""
    differences = []
    for ends in sweeps:
        x, y = np.log(ends.table["lr"]), np.log(ends.table["steps"])
        below = ends.table["lr"] <= 1.0001 * ends.critical
        slopes = [float(np.polyfit(x[part], y[part], 1)[0]) for part in (below, ~below)]
        differences.append(slopes[1] - slopes[0])
    return Finding(min(differences), min(differences) > 0.05, f"{len(differences)} sweeps")


# Appendix I: the panels of every row of table 1, fine grid above, coarse grid below.


def _row_figure(row: Row) -> Figure:
    """At smoke scale it is run by its name only: the other figures show the same there."""

    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        (entry,) = entries
        ends, quantities = at_goal(entry, row.goal), ("sharpness", "l1", "test_loss")
        both = [[panel(ends, q, fine=fine, titled=fine and k == 0) for k, q in enumerate(quantities)]
                for fine in (True, False)]  # fmt: skip
        return {"title": honest(f"Table 1 · {row.name}", [ends]), "grid": both}

    scales: tuple[Scale, ...] = ("smoke", "laptop", "paper")
    runs: dict[Scale, tuple[NetworkSweep, ...]] = {scale: (spec(row, scale),) for scale in scales}
    show = Shown(numbers, figures.rates)
    return PAPER.figure(f"row-{row.name}", f"appendix I: {row.name}", runs=runs, show=show, by_name=("smoke",))


ROW_FIGURES = {row.name: _row_figure(row) for row in rows().values()}


@claim(
    "net-ce-edge", "appendix H.4", "With cross-entropy the smoothed maximum of the sharpness follows 2/η above η_c.",
    "median of the maximum · η/2 in [0.7, 1.4]", ROW_FIGURES["fcn-relu-mnist-5k-ce-0.01"], loss="cross_entropy",
)  # fmt: skip
def rises_to_the_edge(sweeps: list[Ends]) -> Finding:
    worst, count = at_the_edge(sweeps, "smoothed_sharpness", above=1.1)
    return Finding(worst, 0.7 <= worst <= 1.4, count)
