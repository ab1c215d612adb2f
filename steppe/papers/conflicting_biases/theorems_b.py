"""Theorems B.1 and B.2: the flow from a small start ends near the least norm; no limit is sharper than 2/η."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.conflicting_biases.diagonal_runs import Example
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory.flow import excess_rate, flow_limit
from steppe.papers.conflicting_biases.theory.manifold import Manifold, arc, flattest, least_sharpness
from steppe.store import Computed

# Theorem B.1.


@experiment("conflicting-biases/flow-bias")
def flow_ends(
    checkpoint: Any, progress: Any, *, x: tuple[float, ...] = (1.0, 0.4), y: float = 0.66, depth: int = 2,
    smallest: float = 1e-6, count: int = 25,
) -> Computed:  # fmt: skip
    """ε(α) = ‖w_∞^L‖₁ − min for each scale α of the start, by the closed form of the flow."""
    alphas, point = np.logspace(np.log10(smallest), -0.5, count), np.asarray(x)
    ends = np.stack([flow_limit(point, y, a, depth=depth) for a in alphas])
    # ‖w^L‖₁ − y/x_max = Σ uᵢ(1 − xᵢ/x_max) on M avoids the difference of two nearly equal numbers.
    excess = np.abs(ends) ** depth @ (1 - point / point.max())
    return Computed({"alpha": alphas, "excess": excess}, {"w": ends}, {"least": y / point.max()})


def exponent(entry: Any) -> float:
    """p in ε ∝ α^p: 2(1 − x₂/x_max) for two layers, L for more."""
    x, depth = entry.spec["x"], entry.spec["depth"]
    return excess_rate(x) if depth == 2 else float(depth)


_ENDS = (flow_ends(), flow_ends(x=(1.0, 0.8)), flow_ends(x=(1.0, 0.6, -0.3)), flow_ends(depth=3), flow_ends(depth=4))


@PAPER.plot(
    "thmB1", "the norm of the flow's end as the start shrinks", figures.panels, runs={"smoke": _ENDS, "paper": _ENDS}
)
def thm_b1(entries: Sequence[Any]) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    groups = (
        ("two layers, three inputs", [e for e in entries if e.spec["depth"] == 2]),
        ("one input, two to four layers", [e for e in entries if e.spec["x"] == entries[0].spec["x"]]),
    )
    for title, group in groups:
        series = []
        for entry, colour in zip(group, ("blue", "orange", "green"), strict=True):
            alpha, excess = entry.curves["alpha"], entry.curves["excess"]
            p = exponent(entry)
            name = f"x = {tuple(entry.spec['x'])}" if title[0] == "t" else f"L = {entry.spec['depth']}"
            series.append(figures.series(alpha, excess, "points", colour, f"{name}: ∝ α^{p:.3g}"))
            line = excess[0] * (alpha / alpha[0]) ** p
            shown = line < 3 * np.max(excess)
            series.append(figures.series(alpha[shown], line[shown], "dashed", colour))
        panels.append({"x": "scale α of the start", "y": "‖w^L‖₁ of the flow's end − least", "log": "xy",
                       "title": title, "series": series})  # fmt: skip
    return {"title": "Theorem B.1 · the flow from a small start ends near the least norm", "panels": panels}


@PAPER.claim(
    "thmB.1", "Theorem B.1", "The flow from α1 ends within ε(α) of the least norm, and ε falls to 0 with α.",
    "exponent of ε within 2% of 2(1 − x₂/x_max), or of L", needs=(thm_b1,),
)  # fmt: skip
def flow_bias(runs: Sequence[Any]) -> Finding:
    """The exponent of ε(α) over the last decades against 2(1 − x₂/x_max), or L: the largest relative difference."""
    worst, falling = 0.0, True
    for entry in runs:
        alpha, excess = entry.curves["alpha"], entry.curves["excess"]
        slope = float(np.log(excess[5] / excess[0]) / np.log(alpha[5] / alpha[0]))
        worst = max(worst, abs(slope / exponent(entry) - 1))
        falling &= bool((np.diff(excess) > 0).all())
    last = max(float(e.curves["excess"][0]) for e in runs)
    return Finding(worst, falling and worst < 0.02, f"ε falls with α throughout, to at most {last:.1e} at α = 1e-6")


@PAPER.claim(
    "thmB.1-closed-form",
    "Theorem B.1",
    "The closed form of the flow's limit agrees with an integrator.",
    "difference < 1e-8",
)
def flow_closed_form() -> Finding:
    """The limit of the flow in closed form against a stiff integrator, L = 2, 3, 4 and x of both signs."""
    from scipy.integrate import solve_ivp

    worst, x, y, w0 = 0.0, np.array([1.0, 0.4, -0.3]), 0.7, np.array([0.2, 0.3, 0.4])
    for L in (2, 3, 4):

        def slope(t: float, w: Any, L: int = L) -> Any:
            return -(w**L @ x - y) * L * x * w ** (L - 1)

        end = solve_ivp(slope, (0, 500), w0, method="LSODA", rtol=1e-11, atol=1e-13).y[:, -1]
        worst = max(worst, float(np.abs(end - flow_limit(x, y, w0, depth=L)).max()))
    return Finding(worst, worst < 1e-8, "largest difference of a weight")


# Theorem B.2.


@experiment("conflicting-biases/stability")
def random_starts(
    checkpoint: Any, progress: Any, *, d: int = 3, depth: int = 2, examples: int = 10, runs: int = 400,
    steps: int = 20_000, seed: int = 0,
) -> Computed:  # fmt: skip
    """Gradient descent on `examples` random (x, y), x of any sign: where do `runs` starts w₀ ~ N(0, 1) end?

    The rates are random too, up to the limit of M.
    """
    import jax.numpy as jnp

    from steppe import until
    from steppe.dynamics import GD, run_many
    from steppe.networks import diagonal_problem

    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {"limit": [], "sharpness": [], "started": [], "converged": [], "diverged": []}
    for _ in range(examples):
        x = rng.normal(size=d)
        y = abs(rng.normal()) * np.sign(x[np.argmax(np.abs(x))])
        manifold = Manifold(x, y, depth)
        least = least_sharpness(x, y).value if depth == 2 else float(manifold.sharpness(flattest(x, y, depth)))
        lr = 2 / least * rng.uniform(0.02, 1.2, runs)
        starts = rng.normal(size=(runs, d))
        stop = until.loss(1e-26) | until.steps(steps)
        ends = run_many(diagonal_problem(x, y, depth=depth), GD(jnp.asarray(lr)), starts, stop=stop)
        converged = ends.ended("reached")
        limits = np.where(converged[:, None], ends.w, 1.0)
        columns["limit"].append(2 / lr)
        columns["sharpness"].append(np.where(converged, manifold.sharpness(limits), np.nan))
        columns["started"].append(manifold.operator_norm(starts))
        columns["converged"].append(converged)
        columns["diverged"].append(ends.ended("diverged"))
    curves = {name: np.concatenate(parts) for name, parts in columns.items()}
    return Computed(curves, {}, {"converged": int(curves["converged"].sum()), "runs": len(curves["limit"])})


@PAPER.plot(
    "thmB2", "sharpness of the limits of gradient descent against 2/η", figures.panels,
    runs={"smoke": tuple(random_starts(depth=depth, examples=3, runs=200, steps=5_000) for depth in (2, 3)),
          "paper": (random_starts(), random_starts(depth=3))},
)  # fmt: skip
def thm_b2(entries: Sequence[Any]) -> dict[str, Any]:
    panels = []
    for entry in entries:
        curves = entry.curves
        done = curves["converged"].astype(bool)
        limit, sharpness = curves["limit"][done], curves["sharpness"][done]
        ends = [float(limit.min()), float(limit.max())]
        panels.append(
            {"x": "2/η", "y": "sharpness of the limit", "log": "xy",
             "title": f"L = {entry.spec['depth']}: {done.sum()} of {len(done)} runs converged", "series": [
                figures.series(limit, np.maximum(sharpness, 1e-3 * limit), "points", "blue", "gradient descent"),
                figures.series(ends, ends, "dashed", "ink", "sharpness = 2/η"),
            ]}
        )  # fmt: skip
    return {"title": "Theorem B.2 · no limit is sharper than 2/η", "panels": panels}


@PAPER.claim(
    "thmB.2", "Theorem B.2", "Gradient descent converges to no point sharper than 2/η.", "S η/2 ≤ 1", needs=(thm_b2,)
)
def stability(runs: Sequence[Any]) -> Finding:
    """The largest sharpness of a limit over 2/η, over all runs that converged."""
    ratios, count = [], 0
    for entry in runs:
        c = entry.curves
        done = c["converged"].astype(bool)
        ratios += (c["sharpness"][done] / c["limit"][done]).tolist()
        count += len(done)
    # A loss of 1e-26 leaves w within 1e-12 of its limit.
    return Finding(max(ratios), max(ratios) <= 1 + 1e-9, f"{len(ratios)} of {count} runs converged")


@PAPER.claim(
    "thmB.2-exception", "Theorem B.2",
    "The set of starts that the theorem excepts is not empty, but has measure zero.",
    "a start at S > 2/η stays; of 1,000 starts within 1e-6 of it none does",
)  # fmt: skip
def stability_exception() -> Finding:
    """The share of random starts near a point of M three times too sharp that stay; the point itself does."""
    return staying(3 * 2 / 4.0)


def staying(lr: float, draws: int = 1000, steps: int = 60) -> Finding:
    """Descent from (1, 0), where S = 4, and from starts drawn within 1e-6 of it: who stays within 0.01 of it?"""
    x, y, point = np.array([1.0, 0.25]), 1.0, np.array([1.0, 0.0])
    away = np.random.default_rng(0).uniform(-1e-6, 1e-6, (draws, 2))
    w = point + np.concatenate([np.zeros((1, 2)), away])
    stayed = np.full(len(w), True)
    for _ in range(steps):
        w = w - lr * ((w**2 @ x - y)[:, None] * 2 * x * w)
        stayed &= np.abs(w - point).max(axis=1) < 0.01
        w = np.where(stayed[:, None], w, point)  # what has left may diverge, and is not followed
    share = float(stayed[1:].mean())
    return Finding(share, bool(stayed[0]) and share == 0, f"start (1, 0), S = 4, 2/η = {2 / lr:.2f}: it is in A_X")


@PAPER.misprint(
    "thmB.2-conditions", "section 3",
    printed=("The conditions of Theorem B.2 hold in the paper's study: 1/η is no eigenvalue of ∇²L on M.",
             "for every rate"),
    corrected=("The conditions of Theorem B.2 hold iff η is not in [1/S_max, 1/S_min].", "for every rate"),
)  # fmt: skip
def stability_conditions(as_printed: bool) -> Finding:
    """The share of rates up to the limit of M for which 1/η is no eigenvalue of ∇²L at any stationary point."""
    example = Example()
    solutions = arc(example.x, example.y, 400)
    eigenvalues = np.linalg.eigvalsh(example.manifold().hessian(solutions))[:, -1]
    rates = np.linspace(0.05, example.limit, 500) * example.unit
    fine = (1 / rates < eigenvalues.min()) | (1 / rates > eigenvalues.max())
    share = float(fine.mean())
    if as_printed:
        return Finding(share, bool(fine.all()), "of 500 rates below the limit of M")
    outside = (rates < 0.5 * example.unit) | (rates > 0.5 * example.limit * example.unit)
    agree = float((fine == outside).mean())
    return Finding(agree, agree == 1.0, "share of rates on which both agree")
