"""Checks of section 6.2 on the medians over the seeds."""

from collections.abc import Iterator, Sequence
from typing import Any

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.multi_index.reading import NAMES, Group, groups

ALL = ("fig2", "fig2-loud", "fig3", "fig3-loud", "fig4")


def _rank(x: Any, y: Any) -> float:
    """Spearman's, where both are known."""
    import numpy as np
    from scipy.stats import spearmanr

    seen = np.isfinite(x) & np.isfinite(y)
    return float(spearmanr(x[seen], y[seen]).statistic)


def _link(group: Group) -> float:
    """Rank correlation of flatness and loss over ν; extremely high ν, which the paper sets apart, left out."""
    usual = group.columns["nu"][0] <= 0.9
    return _rank(group.median("flatness")[usual], group.median("loss")[usual])


def _name(group: Group) -> str:
    noise = f", noise {group.spec['noise']:g}" if group.spec["noise"] else ""
    return NAMES[group.spec["activation"]] + noise


def _chosen(evidence: Evidence, id: str, activations: Sequence[str]) -> list[Group]:
    return [g for g in groups(evidence[id]) if g.spec["activation"] in activations]


def linked(evidence: Evidence, id: str, activations: Sequence[str], least: float) -> Finding:
    """Rank correlation of flatness and loss over ν, the smallest of these settings."""
    ranks = {_name(g): _link(g) for g in _chosen(evidence, id, activations)}
    lowest = min(ranks.values())
    return Finding(lowest, lowest >= least, "; ".join(f"{name}: {r:.2f}" for name, r in ranks.items()))


def linked_linear(evidence: Evidence, least: float) -> Finding:
    """The same for the linear link with ReLU."""
    g = next(g for g in groups(evidence["fig4"]) if (g.spec["link"], g.spec["activation"]) == ("linear", "relu"))
    flatness = g.median("flatness")
    rank = _link(g)
    return Finding(rank, rank >= least, f"flatness {flatness[0]:.3g} to {flatness[-1]:.3g}")


def flattest_is_good(evidence: Evidence, id: str, activations: Sequence[str]) -> Finding:
    """The loss at the flattest ν over the median loss of all ν, the largest of these settings."""
    import numpy as np

    ratios = {}
    for g in _chosen(evidence, id, activations):
        flatness, loss = g.median("flatness"), g.median("loss")
        ratios[_name(g)] = float(loss[np.nanargmin(flatness)] / np.nanmedian(loss))
    worst = max(ratios.values())
    return Finding(worst, worst < 1, "; ".join(f"{name}: {r:.3g}" for name, r in ratios.items()))


def broken(evidence: Evidence) -> Finding:
    """ReLU, strong noise: the flatness at the smallest ν over the least, and its loss over the smallest."""
    import numpy as np

    (g,) = _chosen(evidence, "fig2-loud", ("relu",))
    flatness, loss = g.median("flatness"), g.median("loss")
    over, worse = float(flatness[0] / np.nanmin(flatness)), float(loss[0] / np.nanmin(loss))
    detail = f"loss there {worse:.3g} times the smallest; rank correlation over ν {_link(g):.2f}"
    return Finding(over, over <= 1.25 and worse >= 1.2, detail)


def large_nu(evidence: Evidence) -> Finding:
    """With noise: the flatness at the largest ν over the least; infinite where nothing interpolates."""
    import numpy as np

    ratios = {}
    for g in groups(evidence["fig2"]):
        if g.spec["noise"]:
            flatness = g.median("flatness")
            ratios[_name(g)] = float(flatness[-1] / np.nanmin(flatness)) if np.isfinite(flatness[-1]) else np.inf
    least = min(ratios.values())
    detail = "; ".join(f"{n}: " + ("no interpolator" if np.isinf(r) else f"{r:.3g} ×") for n, r in ratios.items())
    return Finding(least if np.isfinite(least) else 1e9, least > 1.5, detail)


def large_nu_is_bad(evidence: Evidence, activations: Sequence[str]) -> Finding:
    """Strong noise: the loss at the largest ν that interpolates over the loss at the flattest ν, the smallest."""
    import numpy as np

    ratios = {}
    for g in _chosen(evidence, "fig2-loud", activations):
        flatness, loss = g.median("flatness"), g.median("loss")
        last = np.flatnonzero(np.isfinite(flatness))[-1]
        ratios[f"{_name(g)}, ν = {g.columns['nu'][0][last]:.2g}"] = float(loss[last] / loss[np.nanargmin(flatness)])
    least = min(ratios.values())
    return Finding(least, least > 1, "; ".join(f"{name}: {r:.3g}" for name, r in ratios.items()))


def stronger(evidence: Evidence) -> Finding:
    """ReLU, noise 0.1: the loss at the flattest ν over that at the smallest ν, for a sum of five over that for one."""
    import numpy as np

    shares = {}
    for id in ("fig2", "fig3"):
        g = next(g for g in _chosen(evidence, id, ("relu",)) if g.spec["noise"])
        flatness, loss = g.median("flatness"), g.median("loss")
        shares[id] = float(loss[np.nanargmin(flatness)] / loss[0])
    ratio = shares["fig3"] / shares["fig2"]
    return Finding(ratio, ratio < 1, f"one: {shares['fig2']:.3g}, sum of five: {shares['fig3']:.3g}")


def falling(evidence: Evidence, id: str, activations: Sequence[str], most: float) -> Finding:
    """Rank correlations of ν with flatness and with loss, the largest."""
    ranks = {}
    for g in _chosen(evidence, id, activations):
        if g.spec["link"] != "quadratic-form" and g.spec["noise"] == 0:
            nu = g.columns["nu"][0]
            ranks[_name(g)] = _rank(nu, g.median("flatness")), _rank(nu, g.median("loss"))
    highest = max(max(pair) for pair in ranks.values())
    detail = "; ".join(f"{name}: flatness {a:.2f}, loss {b:.2f}" for name, (a, b) in ranks.items())
    return Finding(highest, highest <= most, detail)


def _linear(evidence: Evidence) -> Group:
    return next(g for g in groups(evidence["fig4"]) if g.spec["activation"] == "linear")


def same_flatness(evidence: Evidence, *, as_printed: bool) -> Finding:
    """Linear activation: largest over smallest flatness, as it is and times ν."""
    g = _linear(evidence)
    flatness = g.median("flatness") * (1.0 if as_printed else g.columns["nu"][0])
    spread = float(flatness.max() / flatness.min())
    return Finding(spread, spread <= 2, f"from {flatness.min():.4g} to {flatness.max():.4g}")


def linear_loss(evidence: Evidence) -> Finding:
    worst = float(_linear(evidence).loss.max())
    # Outer weights of size 1/ν = 100 cancel, in float64.
    return Finding(worst, worst <= 1e-12, "largest over all ν and seeds, where predicting 0 costs 1")


def quadratic_form(evidence: Evidence) -> Finding:
    """The loss at the flattest ν over that of predicting 0."""
    import numpy as np

    g = next(g for g in groups(evidence["fig4"]) if g.spec["link"] == "quadratic-form")
    flatness, loss = g.median("flatness"), g.median("loss")
    flat = int(np.nanargmin(flatness))
    detail = f"flattest at ν = {g.columns['nu'][0][flat]:.2g}; least loss over ν {np.nanmin(loss) / g.power:.3g}"
    share = float(loss[flat] / g.power)
    return Finding(share, share >= 0.5 and float(np.nanmin(loss)) >= 0.5 * g.power, detail)


def _every(evidence: Evidence) -> Iterator[Group]:
    for id in ("fig2", "fig3"):
        yield from groups(evidence[id])


def certified(evidence: Evidence) -> Finding:
    gaps = [e.result["gap"] for id in ALL for e in evidence[id]]
    missing = sum(e.result["missing"] for id in ALL for e in evidence[id])
    total = sum(e.spec["count"] for id in ALL for e in evidence[id])
    # The solver is asked for 1e-5.
    return Finding(max(gaps), max(gaps) <= 1e-5, f"{total} systems, {missing} of them without interpolator")


def sampled(evidence: Evidence) -> Finding:
    """(sampled − exact)/standard error over all interpolators: its root mean square."""
    import numpy as np

    scores = []
    for g in _every(evidence):
        seen = g.found & np.isfinite(g.columns["loss"])
        # Where the loss is rounding there is nothing to compare.
        seen &= g.columns["loss"] > 1e-9
        scores.append(((g.columns["sampled"] - g.columns["loss"]) / g.columns["error"])[seen])
    every = np.concatenate(scores)
    size = float(np.sqrt(np.mean(every**2)))
    detail = f"{len(every)} interpolators; mean {every.mean():+.2f}, largest {np.abs(every).max():.2f}"
    # Four standard errors below 1; above, a sample of 2,000 often misses the tail that most of the error comes from.
    return Finding(size, bool(1 - 4 / np.sqrt(2 * len(every)) <= size <= 1.4), detail)


def lemma5(evidence: Evidence) -> Finding:
    """The bound over the certified flatness, the largest; every interpolator of section 6."""
    import numpy as np

    ratios = np.concatenate([(g.columns["lemma5"] / g.columns["flatness"])[g.found] for g in _every(evidence)])
    detail = f"{len(ratios)} interpolators; median {np.median(ratios):.2f}, smallest {ratios.min():.2f}"
    # The flatness is known to 1e-5.
    return Finding(float(ratios.max()), bool(ratios.max() <= 1 + 1e-5), detail)


def pointwise(evidence: Evidence) -> Finding:
    """Certified flatness over the bound that holds for any inner weights, the smallest."""
    import numpy as np

    ratios = np.concatenate([(g.columns["lower"] / g.columns["pointwise"])[g.found] for g in _every(evidence)])
    return Finding(float(ratios.min()), bool(ratios.min() >= 1), f"{len(ratios)} interpolators")


def spans_everything(evidence: Evidence) -> Finding:
    """The largest cosine between the span of the inner weights and that of U, the smallest of all runs."""
    least = min(float(g.columns["alignment"].min()) for g in _every(evidence))
    closest = max(float(g.columns["closest"].max()) for g in _every(evidence))
    return Finding(least, least >= 1 - 1e-9, f"for every ν; closest pair of inner weights has cosine {closest:.4f}")
