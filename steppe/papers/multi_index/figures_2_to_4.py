"""Section 6: figures 2, 3 and 4 with their claims, the negative ones too. Claims are about medians over the seeds."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, Scale, Shown, seeds
from steppe.papers.multi_index.interpolators import Group, groups, interpolators
from steppe.papers.multi_index.setting import ACTIVATIONS, CONSTANTS, PAPER, Activation

Runs = Sequence[Any]
NOISE, STRONG = 0.1, 1.0
DIRECTIONS = 5
PANELS_IN_A_ROW = 3
# A loss of 0 is drawn as rounding.
FLOOR = 1e-16


def at_each_scale(*settings: Any, **smoke: Any) -> dict[Scale, list[Any]]:
    """Every setting with ten seeds at paper scale; with one seed and small sizes at smoke scale, changed by `smoke`."""
    small = {"d": 20, "n": 64, "m": 256, "count": 6} | smoke
    return {
        "smoke": [replace(setting, **small) for setting in settings],
        "paper": [spec for setting in settings for spec in seeds(setting, 10)],
    }


def without_and_with_noise(r: int) -> list[Any]:
    return [interpolators(activation=a, r=r, noise=noise) for noise in (0.0, NOISE) for a in ACTIVATIONS]


def strong_noise(r: int) -> dict[Scale, list[Any]]:
    """Inner weights on one side of the true directions, and noise as strong as the signal: there the link breaks."""
    settings = [interpolators(activation=a, r=r, noise=STRONG, one_sided=True) for a in ACTIVATIONS]
    # A small grid shows where the link breaks only if all its ν have interpolators.
    return at_each_scale(*settings, low=0.05, high=0.7)


def scatter(title: str) -> Shown:
    """Flatness against population loss, one panel for each setting."""

    def numbers(runs: Runs) -> dict[str, Any]:
        panels = [panel(group) for group in groups(runs)]
        starts, s = range(0, len(panels), PANELS_IN_A_ROW), runs[0].spec
        sizes = f"d = {s['d']}, n = {s['n']}, m = {s['m']}"
        return {"title": f"{title}\n{sizes}", "rows": [panels[k : k + PANELS_IN_A_ROW] for k in starts]}

    return Shown(numbers, figures.flatness_loss)


def panel(group: Group) -> dict[str, Any]:
    kept = group.found.mean(axis=0) > 0.5
    missing = np.flatnonzero(~kept)
    link = {"linear": "linear link, ", "quadratic-form": "y = relu(xᵀAx), "}.get(group.spec["link"], "")

    def spread(values: Any) -> dict[str, list[float]]:
        """Median and middle 80% over the seeds with an interpolator, at the ν where more than half have one."""
        columns = [values[group.found[:, k], k] for k in np.flatnonzero(kept)]
        quantiles = (("low", 0.1), ("median", 0.5), ("high", 0.9))
        return {name: [float(np.quantile(c, q)) for c in columns] for name, q in quantiles}

    return {
        "title": f"{link}{group.name}",
        "nu": group.nu[kept].tolist(),
        "flatness": spread(group.columns["flatness"]),
        "loss": spread(np.maximum(group.loss, FLOOR)),
        "power": group.power(),
        "note": f"no interpolator for ν ≥ {group.nu[missing[0]]:.2g}" if len(missing) else "",
    }


def chosen(runs: Runs, activations: Sequence[Activation]) -> list[Group]:
    return [group for group in groups(runs) if group.spec["activation"] in activations]


def rank(x: Any, y: Any) -> float:
    """Spearman's rank correlation, over the entries where both are finite."""
    from scipy.stats import spearmanr

    kept = np.isfinite(x) & np.isfinite(y)
    return float(spearmanr(x[kept], y[kept]).statistic)


def link_rank(group: Group, highest: float = 0.9) -> float:
    """Rank correlation of flatness and loss over ν ≤ `highest`. For single-index models the paper sets extremely high ν
    apart."""
    usual = group.nu <= highest
    return rank(group.median("flatness")[usual], group.median("loss")[usual])


def listed(values: dict[str, float], form: str = ".3g") -> str:
    return "; ".join(f"{name}: {value:{form}}" for name, value in values.items())


# Figure 2: single-index models.

FIG2 = PAPER.figure(
    "fig2", "single-index models: flatness against population loss",
    runs=at_each_scale(*without_and_with_noise(1)),
    show=scatter("Fig. 2 · single-index models, without and with noise"),
)  # fmt: skip
FIG2_LOUD = PAPER.figure(
    "fig2-loud", "single-index models with one-sided inner weights and noise as strong as the signal",
    runs=strong_noise(1), show=scatter("Fig. 2 · single-index models, one-sided inner weights, strong noise"),
)  # fmt: skip


CONSTANT: list[Any] = [
    interpolators(link=name, activation=a) for name in ("sum+0.5", "sum+1", "sum+2") for a in ACTIVATIONS
]
MEDIUM = {"d": 30, "n": 120, "m": 480, "count": 12}
FIG2_CONSTANT = PAPER.figure(
    "fig2-constant", "single-index models with a constant added to the link, without noise",
    runs={
        # A small grid shows the large loss only where the largest ν has an interpolator.
        "smoke": [replace(s, d=16, n=64, m=384, count=10, low=0.2) for s in CONSTANT if s.activation != "relu"],
        "laptop": [spec for setting in CONSTANT for spec in seeds(replace(setting, **MEDIUM), 4)],
        "paper": [spec for setting in CONSTANT for spec in seeds(setting, 10)],
    },
    show=scatter("Fig. 2 · single-index models, a constant added to the link, no noise"),
)  # fmt: skip


def linked(activations: Sequence[Activation], runs: Runs, *, highest: float = 0.9) -> Finding:
    """The smallest rank correlation of flatness and loss over ν ≤ `highest`, of these activations."""
    ranks = {group.name: link_rank(group, highest) for group in chosen(runs, activations)}
    lowest = min(ranks.values())
    return Finding(lowest, lowest >= 0.5, listed(ranks, ".2f"))


PAPER.claim(
    "fig2-linked", "Section 6.2, Figure 2",
    "Single-index models, LeakyReLU and quadratic: where the flatness is low, so is the population loss.",
    "rank correlation over ν ≤ 0.9 at least 0.5, with and without noise", needs=(FIG2,),
)(partial(linked, ("leaky", "quadratic")))  # fmt: skip


@PAPER.claim(
    "fig2-flattest", "Section 6.2, Figure 2",
    "Single-index models, LeakyReLU and quadratic: the loss at the flattest ν is below the median over ν.",
    "ratio < 1, with and without noise", needs=(FIG2,),
)  # fmt: skip
def flattest_is_good(runs: Runs) -> Finding:
    """The loss at the flattest ν over the median loss of all ν: the largest ratio."""
    ratios = {}
    for group in chosen(runs, ("leaky", "quadratic")):
        flatness, loss = group.median("flatness"), group.median("loss")
        ratios[group.name] = float(loss[np.nanargmin(flatness)] / np.nanmedian(loss))
    worst = max(ratios.values())
    return Finding(worst, worst < 1, listed(ratios))


@PAPER.claim(
    "fig2-large-nu", "Section 6.2, Figure 2",
    "With noise, inner weights of extremely high correlation interpolate only with a large flatness.",
    "flatness at ν = 0.99 above 1.5 times the least, or no interpolator", needs=(FIG2,),
)  # fmt: skip
def sharp_at_largest(runs: Runs) -> Finding:
    """With noise: the flatness at the largest ν over the least; infinite where nothing interpolates."""
    ratios = over_least(runs)
    least = min(ratios.values())
    return Finding(least if np.isfinite(least) else 1e9, least > 1.5, at_end(ratios))


def over_least(runs: Runs) -> dict[str, float]:
    """With noise: the flatness at the largest ν over the least, infinite where nothing interpolates."""
    ratios = {}
    for group in groups(runs):
        if group.spec["noise"]:
            flatness = group.median("flatness")
            ratios[group.name] = float(flatness[-1] / np.nanmin(flatness)) if np.isfinite(flatness[-1]) else np.inf
    return ratios


def at_end(ratios: dict[str, float]) -> str:
    return "; ".join(f"{n}: " + ("no interpolator" if np.isinf(r) else f"{r:.3g} ×") for n, r in ratios.items())


def at_largest(activations: Sequence[Activation], runs: Runs) -> dict[str, float]:
    """The loss at the largest ν that interpolates over the loss at the flattest ν, for each setting."""
    ratios = {}
    for group in chosen(runs, activations):
        flatness, loss = group.median("flatness"), group.median("loss")
        last = np.flatnonzero(np.isfinite(flatness))[-1]
        ratios[f"{group.name}, ν = {group.nu[last]:.2g}"] = float(loss[last] / loss[np.nanargmin(flatness)])
    return ratios


@PAPER.claim(
    "fig2-large-nu-loss", "Section 6.2, Figure 2",
    "With a constant added to the link, no noise: the largest correlation has a high loss (LeakyReLU and quadratic).",
    "loss at the largest ν over that at the flattest > 1, for constants 1 and 2 (½: see the detail)",
    needs=(FIG2_CONSTANT,),
)  # fmt: skip
def bad_at_largest(runs: Runs) -> Finding:
    """The smallest ratio for constants 1 and 2; with ½ it depends on the sizes. The paper's constant is lost."""
    small, large = ([r for r in runs if (CONSTANTS[r.spec["link"]] < 1) == below] for below in (True, False))
    ratios = at_largest(("leaky", "quadratic"), large)
    detail = listed(ratios | at_largest(("leaky", "quadratic"), small))
    return Finding(min(ratios.values()), min(ratios.values()) > 1, detail)


@PAPER.claim(
    "fig2-large-nu-noise", "Section 6.2, Figure 2, the other reading",
    "With label noise instead, the largest correlation has a high loss for LeakyReLU, a low one for the quadratic.",
    "loss at the largest ν over that at the flattest > 1 for LeakyReLU, < 1 for the quadratic", needs=(FIG2_LOUD,),
)  # fmt: skip
def bad_at_largest_with_noise(runs: Runs) -> Finding:
    """The ratio for LeakyReLU."""
    leaky, quadratic = (at_largest((a,), runs) for a in ("leaky", "quadratic"))
    holds = min(leaky.values()) > 1 and max(quadratic.values()) < 1
    return Finding(min(leaky.values()), holds, listed(leaky | quadratic))


@PAPER.claim(
    "fig2-relu-breaks", "Section 6.2, Figure 2",
    "ReLU: interpolators of small ν are flat but have a large loss; flatness and loss are poorly connected.",
    "strong noise: flatness at the smallest ν ≤ 1.25 of the least, loss there ≥ 1.2 of the smallest",
    needs=(FIG2_LOUD,),
)  # fmt: skip
def relu_breaks(runs: Runs) -> Finding:
    """The flatness at the smallest ν over the least, and its loss over the smallest."""
    (group,) = chosen(runs, ("relu",))
    flatness, loss = group.median("flatness"), group.median("loss")
    over, worse = float(flatness[0] / np.nanmin(flatness)), float(loss[0] / np.nanmin(loss))
    detail = f"loss there {worse:.3g} times the smallest; rank correlation over ν {link_rank(group):.2f}"
    return Finding(over, over <= 1.25 and worse >= 1.2, detail)


PAPER.claim(
    "fig2-relu-quiet", "Figure 2 with little noise, ours",
    "With noise 0 or 0.1, flatness and loss are connected for ReLU as for the others.",
    "rank correlation over ν ≤ 0.9 at least 0.5", needs=(FIG2,),
)(partial(linked, ("relu",)))  # fmt: skip


# Figure 3: sums of five single-index models.

FIG3 = PAPER.figure(
    "fig3", "sums of five single-index models", runs=at_each_scale(*without_and_with_noise(DIRECTIONS)),
    show=scatter("Fig. 3 · sums of five single-index models, without and with noise"),
)  # fmt: skip
FIG3_LOUD = PAPER.figure(
    "fig3-loud", "sums of five with one-sided inner weights and noise as strong as the signal",
    runs=strong_noise(DIRECTIONS), show=scatter("Fig. 3 · sums of five, one-sided inner weights, strong noise"),
)  # fmt: skip

PAPER.claim(
    "fig3-linked", "Section 6.2, Figure 3",
    "Sums of single-index models: flatness and population loss are connected for all activations.",
    "rank correlation over all ν at least 0.5, with and without noise", needs=(FIG3,),
)(partial(linked, ACTIVATIONS, highest=1.0))  # fmt: skip


def with_nu(runs: Runs, *, noise: bool) -> dict[str, tuple[float, float]]:
    """Rank correlations of ν with flatness and with loss, for each activation."""
    every = [group for group in groups(runs) if bool(group.spec["noise"]) == noise]
    return {g.name: (rank(g.nu, g.median("flatness")), rank(g.nu, g.median("loss"))) for g in every}


def both_listed(ranks: dict[str, tuple[float, float]]) -> str:
    return "; ".join(f"{name}: flatness {a:.2f}, loss {b:.2f}" for name, (a, b) in ranks.items())


@PAPER.claim(
    "fig3-falling", "Section 6.2, Figure 3", "Sums, no noise: as ν increases, both loss and flatness decrease.",
    "rank correlations with ν ≤ −0.7", needs=(FIG3,),
)  # fmt: skip
def both_fall(runs: Runs) -> Finding:
    """The largest of the rank correlations."""
    ranks = with_nu(runs, noise=False)
    highest = max(max(pair) for pair in ranks.values())
    return Finding(highest, highest <= -0.7, both_listed(ranks))


# Small nets interpolate the noise at every ν: at smoke scale the flatness does not turn up.
FIG3_NOISE = PAPER.figure(
    "fig3-noise", "sums of five single-index models with noise 0.1",
    runs={"paper": [s for s in FIG3.runs["paper"] if vars(s)["noise"]]}, show=scatter("Fig. 3 · sums of five, noise"),
)  # fmt: skip


@PAPER.claim(
    "fig3-turns-up", "Figure 3 with noise, ours",
    "Sums, noise 0.1: the loss still falls as ν increases, but at the largest ν the flatness turns up.",
    "rank correlation of loss ≤ −0.7; flatness at ν = 0.99 above the least, or no interpolator", needs=(FIG3_NOISE,),
)  # fmt: skip
def flatness_turns_up(runs: Runs) -> Finding:
    """The largest rank correlation of ν and the loss."""
    ranks, ratios = with_nu(runs, noise=True), over_least(runs)
    highest = max(loss for _, loss in ranks.values())
    detail = f"{at_end(ratios)}; {both_listed(ranks)}"
    return Finding(highest, highest <= -0.7 and min(ratios.values()) > 1, detail)


@PAPER.claim(
    "fig3-stronger", "Section 6.2, Figure 3",
    "For sums the connection is stronger than for single-index models, even for ReLU.",
    "loss at the flattest ν over that at the smallest ν: less than for one model", needs=(FIG2, FIG3),
)  # fmt: skip
def stronger_for_sums(fig2: Runs, fig3: Runs) -> Finding:
    """ReLU, noise 0.1: the loss at the flattest ν over that at the smallest ν, for a sum of five over that for one."""
    shares = []
    for runs in (fig2, fig3):
        group = next(g for g in chosen(runs, ("relu",)) if g.spec["noise"])
        flatness, loss = group.median("flatness"), group.median("loss")
        shares.append(float(loss[np.nanargmin(flatness)] / loss[0]))
    one, five = shares
    return Finding(five / one, five / one < 1, f"one: {one:.3g}, sum of five: {five:.3g}")


# Figure 4: special cases.

FIG4 = PAPER.figure(
    "fig4", "linear link with ReLU and with linear activation; quadratic form",
    runs=at_each_scale(
        interpolators(link="linear", activation="relu"),
        # Linear neurons fit no noise: n examples in d < n dimensions.
        interpolators(link="linear", activation="linear"),
        interpolators(link="quadratic-form", activation="relu", r=DIRECTIONS),
    ),
    show=scatter("Fig. 4 · special cases"),
)  # fmt: skip


def special_case(runs: Runs, link: str, activation: Activation) -> Group:
    return next(g for g in groups(runs) if (g.spec["link"], g.spec["activation"]) == (link, activation))


@PAPER.claim(
    "fig4a-linked", "Section 6.2, Figure 4a",
    "A linear link learned by ReLU: flatness and population loss are strongly connected.",
    "rank correlation over ν ≤ 0.9 at least 0.8", needs=(FIG4,),
)  # fmt: skip
def linear_link_linked(runs: Runs) -> Finding:
    group = special_case(runs, "linear", "relu")
    flatness, found = group.median("flatness"), link_rank(group)
    return Finding(found, found >= 0.8, f"flatness {flatness[0]:.3g} to {flatness[-1]:.3g}")


# At smoke scale this panel has too few ν to say what most of them do.
FIG4B = PAPER.figure(
    "fig4-linear", "linear link with linear activation",
    runs={"paper": seeds(interpolators(link="linear", activation="linear"), 10)}, show=scatter("Fig. 4b · linear"),
)  # fmt: skip


@PAPER.claim(
    "fig4b-flatness", "Section 6.2, Figure 4b",
    "Linear link, linear activation: most interpolators have the same flatness.",
    "upper over lower quartile of the flatness over ν ≤ 2", needs=(FIG4B,),
)  # fmt: skip
def same_flatness(runs: Runs) -> Finding:
    """The upper over the lower quartile over ν. ν is log-spaced on [0.01, 0.99] here; on a grid of high ν alone it
    would be closer to 1."""
    flatness = special_case(runs, "linear", "linear").median("flatness")
    low, high = np.quantile(flatness, (0.25, 0.75))
    return Finding(high / low, high / low <= 2, f"from {flatness.min():.4g} to {flatness.max():.4g}")


@PAPER.claim(
    "fig4b-law", "Figure 4b, ours",
    "Linear link, linear activation: the flatness is ∝ 1/ν, because Σ a_k w_k = u needs Σ|a_k| ≥ 1/ν.",
    "largest over smallest flatness × ν ≤ 2", needs=(FIG4,),
)  # fmt: skip
def inverse_to_correlation(runs: Runs) -> Finding:
    """The largest over the smallest flatness × ν."""
    group = special_case(runs, "linear", "linear")
    flatness = group.median("flatness") * group.nu
    spread = float(flatness.max() / flatness.min())
    return Finding(spread, spread <= 2, f"from {flatness.min():.4g} to {flatness.max():.4g}")


@PAPER.claim(
    "fig4b-loss", "Section 6.2, Figure 4b",
    "Linear link, linear activation: all population losses are very small.", "≤ 1e-12", needs=(FIG4,),
)  # fmt: skip
def linear_loss_is_zero(runs: Runs) -> Finding:
    worst = float(special_case(runs, "linear", "linear").loss.max())
    # Outer weights of size 1/ν = 100 cancel, in float64.
    return Finding(worst, worst <= 1e-12, "largest over all ν and seeds, where predicting 0 costs 1")


@PAPER.claim(
    "fig4c-no-link", "Section 6.2, Figure 4c",
    "y = g(xᵀAx): flatness and population loss are not connected, and the flattest solution has a high loss.",
    "rank correlation over ν not distinguishable from 0 at 5%; loss at the flattest ν ≥ half of predicting 0's",
    needs=(FIG4,),
)  # fmt: skip
def quadratic_form_is_bad(runs: Runs) -> Finding:
    """The rank correlation of flatness and loss over all ν."""
    from scipy.stats import spearmanr

    group = special_case(runs, "quadratic-form", "relu")
    flatness, loss, power = group.median("flatness"), group.median("loss"), group.power()
    kept = np.isfinite(flatness)
    found, flattest = spearmanr(flatness[kept], loss[kept]), int(np.nanargmin(flatness))
    share = float(loss[flattest] / power)
    detail = (
        f"p = {found.pvalue:.2g}; flattest at ν = {group.nu[flattest]:.2g}, loss {share:.3g} of predicting 0's; "
        f"largest over smallest loss {np.nanmax(loss) / np.nanmin(loss):.3g}"
    )
    return Finding(found.statistic, bool(found.pvalue > 0.05 and share >= 0.5), detail)
