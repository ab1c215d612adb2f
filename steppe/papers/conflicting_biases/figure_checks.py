"""What section 3 and appendix H.13 say of figures 4, 15 and 16, measured on finished runs."""

import numpy as np

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.diagonal_setting import Example
from steppe.papers.conflicting_biases.finished import example_of, settled
from steppe.papers.conflicting_biases.theory import kkt_points


def flow_aligned(evidence: Evidence) -> Finding:
    """Spread of sharpness and norm of the ends below 0.95 η_c, relative to their mean."""
    (entry,) = evidence["fig15"]
    c = settled(entry, below=0.95 * example_of(entry).critical())
    spread = max(float(np.ptp(c[name]) / c[name].mean()) for name in ("sharpness", "norm"))
    return Finding(spread, spread < 0.02, f"{len(c['rate'])} rates")


def critical(evidence: Evidence) -> Finding:
    """The first rate whose end is 1% flatter than the flow's, over η_c = 2/s_GF."""
    (entry,) = evidence["fig15"]
    c, example = settled(entry), example_of(entry)
    flat = c["sharpness"] < 0.99 * c["sharpness"][0]
    ratio = float(c["rate"][np.argmax(flat)] / example.critical())
    return Finding(ratio, abs(ratio - 1) < 0.03, f"η_c = {example.critical():.4f} η₁")


def tracks(evidence: Evidence) -> Finding:
    """The median of S/(2/η) over the rates above η_c that converge; none above 1."""
    (entry,) = evidence["fig15"]
    example = example_of(entry)
    c = settled(entry, above=1.02 * example.critical())
    ratio = c["sharpness"] * c["rate"] * example.unit / 2
    middle = float(np.median(ratio))
    holds = middle > 0.95 and float(ratio.max()) <= 1
    return Finding(middle, holds, f"from {ratio.min():.3f} to {ratio.max():.3f}, {len(ratio)} rates")


def norm_predicted(evidence: Evidence) -> Finding:
    """The median relative distance of ‖w²‖₁ to the one on M at S = 2/η, above η_c; and the norm grows."""
    (entry,) = evidence["fig15"]
    example = example_of(entry)
    c = settled(entry, above=1.02 * example.critical())
    predicted = np.sum(example.at_sharpness(c["rate"]) ** 2, axis=1)
    away = float(np.median(np.abs(c["norm"] / predicted - 1)))
    grows = float(np.corrcoef(c["rate"], c["norm"])[0, 1])
    return Finding(away, away < 0.05 and grows > 0.9, f"correlation of rate and norm {grows:.3f}")


def u_shape(evidence: Evidence) -> Finding:
    """The rate of least risk over the one at which 2/η is the sharpness of M_G; the risk there over the optimum."""
    entry = evidence["fig4"][1]
    example, c = example_of(entry), settled(entry)
    best = int(np.argmin(c["risk"]))
    ratio = float(c["rate"][best] / example.best_rate())
    excess = float(c["risk"][best] / example.risks()["optimal"] - 1)
    ends = min(float(c["risk"][0]), float(c["risk"][-1])) / float(c["risk"][best])
    holds = abs(ratio - 1) < 0.05 and excess < 0.01 and ends > 1.1
    return Finding(ratio, holds, f"risk {excess:.2%} above the optimum; both ends ≥ {ends:.2f} times the least")


def order_of_risks() -> Finding:
    """R(M_ℓ1)/R(M_S), below 1, with R(M_G) below both."""
    risks = Example().risks()
    holds = risks["optimal"] < risks["norm"] < risks["sharpness"]
    return Finding(risks["norm"] / risks["sharpness"], holds, ", ".join(f"{k} {v:.4f}" for k, v in risks.items()))


def better_than_norm(evidence: Evidence) -> Finding:
    """The largest risk over R(M_ℓ1) among the twelve trajectories past η_c that converge."""
    example = example_of(evidence["fig16"][0])
    limit = example.risks()["norm"]
    twelve = settled(evidence["fig16"][0], above=example.critical())["risk"] / limit
    fine = settled(evidence["fig15"][0], above=example.critical())["risk"] / limit
    detail = f"{len(twelve)} trajectories; on the grid of figure 15 {(fine < 1).mean():.1%} of {len(fine)}"
    return Finding(float(twelve.max()), bool((twelve < 1).all()), detail)


def diverges_early(evidence: Evidence) -> Finding:
    """The last rate that converges over the limit of M."""
    (entry,) = evidence["fig15"]
    example = example_of(entry)
    last = float(settled(entry)["rate"].max())
    return Finding(last / example.limit, last < example.limit, f"{last:.4g} η₁ of {example.limit:.4g} η₁")


def near_kkt(evidence: Evidence) -> Finding:
    """The largest distance of an end to the KKT point with S = 2/η, for the rates at which there is one."""
    (entry,) = evidence["fig16"]
    example, away, missing = example_of(entry), [], 0
    for k, rate in enumerate(entry.spec["rates"]):
        if entry.curves["outcome"][k] != 0 or rate < example.critical():
            continue
        active = [p.w for p in kkt_points(example.x, example.y, rate * example.unit) if p.active]
        missing += not active
        away += [min(float(np.linalg.norm(np.abs(entry.params["w"][k]) - w)) for w in active)] if active else []
    detail = f"{len(away)} ends; {missing} rates between η_c and that of M_G have no such point"
    return Finding(max(away), max(away) < 0.1, detail)
