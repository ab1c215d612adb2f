"""Beyond the paper: divergence, momentum, SAM, label noise, period doubling, more weights, more layers."""

from typing import Any

import numpy as np

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.diagonal_beyond import MOMENTA
from steppe.papers.conflicting_biases.diagonal_setting import Example
from steppe.papers.conflicting_biases.factors import Factors
from steppe.papers.conflicting_biases.finished import example_of, settled
from steppe.papers.conflicting_biases.theory import Manifold
from steppe.papers.conflicting_biases.theory.kkt import ESCAPE, FOUR, conserved, two_cycle
from steppe.papers.conflicting_biases.theory.manifold import flattest


def diverges_at_two(evidence: Evidence) -> Finding:
    """Where flat points of M remain beyond 2η₁: the rate up to which all converge, over 2η₁; else over the limit."""
    (entry, *_) = evidence["divergence"]
    c = entry.curves
    step = entry.result["step"]
    wide = c["limit"] > 2.2
    ratios = np.where(wide, c["all_below"] / ESCAPE, c["last"] / c["limit"])
    holds = bool((np.abs(ratios[wide] - 1) < 0.15).all() and (np.abs(ratios[c["limit"] < 1.9] - 1) < 0.02 + step).all())
    return Finding(float(ratios[wide].mean()), holds, f"from {ratios.min():.3f} to {ratios.max():.3f}")


def momentum(evidence: Evidence) -> Finding:
    """The largest S/(2/η) over 1 + β: at most 1 for every β, and above the edge of plain gradient descent for β > 0."""
    ratios = []
    for entry, beta in zip(evidence["edges"], MOMENTA, strict=False):
        c = settled(entry)
        ratios.append(float((c["sharpness"] * c["rate"]).max()) * example_of(entry).unit / 2 / (1 + beta))
    holds = max(ratios) <= 1 + 1e-9 and min(ratios) > 0.95
    return Finding(max(ratios), holds, ", ".join(f"β = {b:g}: {r:.4f}" for b, r in zip(MOMENTA, ratios, strict=True)))


def to_the_flattest(evidence: Evidence) -> Finding:
    """Sharpness of the end over the least on M: 1 for SAM and label noise, far above for descent and heavy ball."""
    example = example_of(evidence["algorithms"][0])
    least = 4 * example.y * min(example.x)
    gd, ball, sam, noise = (float(e.curves["sharpness"][0]) / least for e in evidence["algorithms"])
    detail = f"GD {gd:.3f}, heavy ball {ball:.3f}, SAM {sam:.4f}, label noise {noise:.4f}"
    return Finding(max(sam, noise), max(sam, noise) < 1.01 and min(gd, ball) > 2, detail)


def factors(evidence: Evidence) -> Finding:
    """tr ∇²L of the end over the least of all interpolators, by a linear program with its dual: 1-SAM, noise, GD."""
    gd, noise, sam = (e.result["trace"] / e.result["least"] for e in evidence["factors"])
    certified = all(abs(e.result["lower"] / e.result["least"] - 1) < 1e-9 for e in evidence["factors"])
    away = evidence["factors"][2].result["distance"]
    detail = f"1-SAM {sam:.4f} (u ⊙ v within {away:.3f}), label noise {noise:.4f}, GD {gd:.3f}"
    return Finding(sam, certified and abs(sam - 1) < 0.02 and abs(noise - 1) < 0.1 and gd > 2, detail)


def conservation() -> Finding:
    """How much u² − v² moves along the flow of ⟨u ⊙ v, x⟩, by an integrator."""
    from scipy.integrate import solve_ivp

    x, y, u, v = Factors("gd", 0.02).data()
    d = len(u)

    def slope(t: float, w: Any) -> Any:
        pull = x.T @ (x @ (w[:d] * w[d:]) - y) / len(y)
        return -np.concatenate([pull * w[d:], pull * w[:d]])

    end = solve_ivp(slope, (0, 50), np.concatenate([u, v]), method="LSODA", rtol=1e-10, atol=1e-12).y[:, -1]
    moved = float(np.abs(conserved(end[:d], end[d:]) - conserved(u, v)).max())
    return Finding(moved, moved < 1e-7, "12 coordinates, to time 50")


def sam_trap() -> Finding:
    """SAM with ρ = 2α: how far it is from 0 after 5,000 steps, over α; a radius across the origin holds it there."""
    example, rho = Example(), 2 * Example.alpha
    m, lr = example.manifold(), 0.3 * example.unit
    w = np.full(len(example.x), example.alpha)
    for _ in range(5000):
        g = m.gradient(w)
        w = w - lr * m.gradient(w + rho * g / np.linalg.norm(g))
    away = float(np.linalg.norm(w)) / example.alpha
    return Finding(away, away < 3, f"α = {example.alpha:g}, ρ = {rho:g}; the flow ends at distance 16 α")


def doubling(evidence: Evidence) -> Finding:
    """The orbits against theory: largest distance to the exact 2-cycle, and where more than two values appear."""
    (entry,) = evidence["bifurcation"]
    a, z = entry.curves["a"], entry.params["z"]
    cycling = (a > 1.02) & (a < FOUR - 0.02)
    exact = np.array([two_cycle(v) for v in a[cycling]])
    away = np.abs(np.sort(z[cycling, -2:], axis=1) - np.sort(exact, axis=1)).max()
    count = np.array([len(np.unique(row[-16:].round(4))) for row in z])
    four = float(a[np.argmax((count > 2) & (a > 1.1))])
    escape = float(a[np.isnan(z[:, -1])].min())
    step = float(a[1] - a[0])
    holds = float(away) < 1e-6 and abs(four - FOUR) < 2 * step + 5e-3 and abs(escape - ESCAPE) < 2 * step
    detail = f"period 4 from {four:.4f} (√5 − 1 = {FOUR:.4f}), escape from {escape:.4f}"
    return Finding(float(away), holds, detail)


def triangle(evidence: Evidence) -> Finding:
    """Three weights: the largest S/(2/η) of an end, and whether the ends generalise worse than the best there is."""
    (entry,) = evidence["triangle"]
    example, c = example_of(entry), settled(entry, above=1.05)
    ratio = c["sharpness"] * c["rate"] * example.unit / 2
    best = min(float(r) for r in c["risk"]) / example.risks()["optimal"]
    holds = float(ratio.max()) <= 1 and float(np.median(ratio)) > 0.95 and best >= 1
    detail = f"median {np.median(ratio):.3f}; least risk {best:.3f} times the best on M"
    return Finding(float(ratio.max()), holds, detail)


def depth_dense() -> Finding:
    """For L = 3 and 4 the flattest solution uses every weight: its sharpness over that of the best single weight."""
    x, y, ratios = np.array([1.0, 0.6, 0.3]), 0.9, []
    for L in (3, 4):
        m = Manifold(x, y, L)
        w = flattest(x, y, L)
        single = min(float(m.sharpness(m.onto(row))) for row in np.eye(3))
        ratios.append(float(m.sharpness(w)) / single)
        rng = np.random.default_rng(0)
        for _ in range(200):
            other = m.onto(np.abs(w + 0.3 * rng.normal(size=3)) + 1e-3)
            ratios.append(1.0 if float(m.sharpness(other)) < float(m.sharpness(w)) * (1 - 1e-12) else 0.0)
    return Finding(ratios[0], max(ratios) < 1, "no random neighbour on M is flatter")
