"""Beyond the paper: approximate interpolation, and descent on the inner weights to the flattest interpolators."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.multi_index.scaling_laws import LAWS
from steppe.papers.multi_index.setting import ACTIVATIONS, COLOURS, PAPER, Activation, drawn, label, rows
from steppe.store import Computed

Runs = Sequence[Any]

# Approximate interpolation.


@experiment("multi-index/approximate")
def approximated(
    checkpoint: Any, progress: Any, *, activation: Activation = "relu",
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2), nu: float = 0.5, r: int = 1,
    noise: float = 0.5, d: int = 30, n: int = 150, m: int = 600, seeds: int = 10, rtol: float = 1e-5,
) -> Computed:  # fmt: skip
    """‖Φa − y‖ ≤ τ for labels with noise of standard deviation `noise` and inner weights of correlation ν.

    One row for each seed and each share = τ/(noise √n): at 1 the residual is as large as the noise. The population
    loss excludes the noise.
    """
    from steppe.papers.multi_index import theory

    def row(k: int) -> dict[str, float]:
        seed, which = divmod(k, len(shares))
        rng = np.random.default_rng([seed, 0])
        act, link, U, x, y = drawn(activation, r, d, n, rng, noise=noise)
        W = theory.correlated(m, U, nu, key=rng)
        f = theory.features(W, x, act)
        best = theory.flattest_interpolator(f.phi, y, f.q, f.p, tau=shares[which] * noise * n**0.5, rtol=rtol)
        return {
            "seed": seed, "share": shares[which], "flatness": best.flatness, "lower": best.lower,
            "residual": best.residual, "loss": theory.population_loss(W, best.a, act, link, U),
        }  # fmt: skip

    names = ("seed", "share", "flatness", "lower", "residual", "loss")
    return Computed(rows(names, seeds * len(shares), row, checkpoint), {}, {})


def by_share(run: Any, name: str) -> Any:
    """A column as (seeds, shares); the first share is τ = 0."""
    return run.curves[name].reshape(-1, len(run.spec["shares"]))


@PAPER.plot(
    "approximate", "approximate interpolation of noisy labels", figures.panels,
    runs={"smoke": [approximated(activation=a, shares=(0.0, 0.4, 0.8, 1.0), d=10, n=50, m=200, seeds=2) for a in LAWS],
          "paper": [approximated(activation=a) for a in LAWS]},
)  # fmt: skip
def approximate(runs: Runs) -> dict[str, Any]:
    panels = []
    for name, axis in (("flatness", "flatness / that at τ = 0"), ("loss", "population loss / that at τ = 0")):
        series = []
        for run, colour in zip(runs, ("blue", "orange"), strict=True):
            values = by_share(run, name)
            ratios = values / values[:, :1]
            middle, (low, high) = np.median(ratios, axis=0), np.quantile(ratios, (0.1, 0.9), axis=0)
            error = [(middle - low).tolist(), (high - middle).tolist()]
            series.append(figures.series(run.spec["shares"], middle, "points", colour, label(run), error=error))
        panels.append({"x": "τ / (noise √n)", "y": axis, "log": "y", "series": series})
    return {"title": "Beyond · approximate interpolation, ‖Φa − y‖ ≤ τ, noise 0.5", "panels": panels}


@PAPER.claim(
    "approximate-better", "Section 7, future work, ours",
    "With noise of constant size, approximate interpolation generalises better than interpolation.",
    "least loss over τ over that at τ = 0 < 0.7", needs=(approximate,),
)  # fmt: skip
def noise_is_better_left(runs: Runs) -> Finding:
    """The median of the draws, for the activation that gains least."""
    shares = {}
    for run in runs:
        loss = by_share(run, "loss")
        shares[label(run)] = float(np.median(loss.min(axis=1) / loss[:, 0]))
    worst = max(shares.values())
    return Finding(worst, worst < 0.7, "; ".join(f"{name}: {s:.3g}" for name, s in shares.items()))


# The flattest of all interpolators: descent on the inner weights too.


@experiment("multi-index/alternating")
def alternating(
    checkpoint: Any, progress: Any, *, activation: Activation = "relu", bias: bool = False, noise: float = 0.0,
    r: int = 1, d: int = 20, n: int = 100, m: int = 300, nu: float = 0.05, rounds: int = 20, steps: int = 10,
    fresh: int = 4000, rtol: float = 1e-5, seed: int = 0,
) -> Computed:  # fmt: skip
    """Descent from inner weights of correlation ν in `rounds` of `steps` steps; a row at the start and for each round.

    With `bias` an example is (x, 1) and an inner weight (w, b) of unit norm; the flatness then has ‖(x, 1)‖, as in D.6.
    """
    from steppe.papers.multi_index import theory

    rng = np.random.default_rng([seed, 0])
    act, link, U, x, y = drawn(activation, r, d, n, rng, noise=noise)
    W = theory.correlated(m, U, nu, key=rng)
    if bias:
        # As large as a coordinate of w, so that no direction is preferred.
        W = np.column_stack([W, rng.standard_normal(m) / d**0.5])
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    points = np.column_stack([x, np.ones(n)]) if bias else x
    columns: dict[str, list[float]] = {"step": [], "flatness": [], "loss": [], "error": [], "correlation": []}
    lr, step = 0.3, 0
    for round_ in range(rounds + 1):
        if round_ == 0:
            f = theory.features(W, points, act)
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)
        elif lr > 0:
            done = theory.descend(points, y, W, act, steps=steps, lr=lr, rtol=rtol)
            W, best, lr, step = done.W, done.interpolator, done.lr, step + len(done.values) - 1
        cost = theory.features(W, points, act).q * np.abs(best.a) ** (2 - 2 / (act.degree + 1))
        inner, b = (W[:, :-1], W[:, -1]) if bias else (W, None)
        sampled = theory.sampled_loss(inner, best.a, act, link, U, b=b, n=fresh, key=1)
        along = np.linalg.norm(inner @ U.T, axis=1)
        error = (sampled.upper - sampled.value) / 4
        found = (step, best.flatness, sampled.value, error, float(cost @ along / cost.sum()))
        for column, value in zip(columns.values(), found, strict=True):
            column.append(value)
    result = {
        "bias": 0.0 if b is None else float(cost @ np.abs(b) / cost.sum()),
        "teacher": theory.flatness(theory.copies(link, U, m), x, act, b=np.zeros(m) if bias else None),
        "pointwise": theory.pointwise(x, y, m, act, bias=bias),
    }
    return Computed({k: np.array(v) for k, v in columns.items()}, {"W": W, "a": best.a}, result)


@PAPER.plot(
    "flattest", "descent on the inner weights too", figures.panels,
    runs={
        "smoke": [
            alternating(activation=activation, bias=bias, d=8, n=24, m=60, rounds=5, rtol=1e-4)
            for bias in (False, True)
            for activation in LAWS
        ],
        "paper": [
            alternating(activation=activation, bias=bias, noise=noise, seed=seed)
            for bias, noise in ((False, 0.0), (False, 0.1), (True, 0.0))
            for activation in ACTIVATIONS
            for seed in range(2)
        ],
    },
)  # fmt: skip
def flattest(runs: Runs) -> dict[str, Any]:
    """The first seed of every setting: a kind of line for noise and bias, a colour for the activation."""
    kinds = {(False, True): "line", (False, False): "dotted", (True, True): "dashed"}
    styles = {"line": "neither noise nor bias", "dotted": "noise 0.1", "dashed": "inner biases"}
    panels = []
    for name, axis in (
        ("flatness", "flatness / Theorem 4"), ("loss", "population loss"), ("correlation", "‖Uw‖, weighted by cost"),
    ):  # fmt: skip
        series: list[dict[str, Any]] = []
        for run in (run for run in runs if run.spec["seed"] == 0):
            kind, activation = kinds[run.spec["bias"], run.spec["noise"] == 0], run.spec["activation"]
            scale = run.result["teacher"] if name == "flatness" else 1.0
            one = figures.series(run.curves["step"] + 1, run.curves[name] / scale, kind, COLOURS[activation])
            if name == "flatness" and kind == "line":
                one["label"] = label(run)
            if name == "loss" and activation == "relu":
                one["label"] = styles[kind]
            series.append(one)
        log = "x" if name == "correlation" else "xy"
        panels.append({"x": "1 + steps", "y": axis, "log": log, "series": series, "legend": "upper right"})
    return {"title": "Beyond · descent on the inner weights, towards the flattest of all", "panels": panels}


@PAPER.claim(
    "flattest-of-all", "Section 7, ours",
    "Descent on the inner weights as well, from ν = 0.05, finds interpolators that generalise.",
    "without noise final loss ≤ 5% of the loss at the start", needs=(flattest,),
)  # fmt: skip
def descent_generalises(runs: Runs) -> Finding:
    """Without noise and bias: the loss at the end of the descent over that at its start, the largest."""
    shares, parts = [], []
    for run in runs:
        if run.spec["noise"] == 0 and not run.spec["bias"]:
            flatness, loss = run.curves["flatness"], run.curves["loss"]
            shares.append(float(loss[-1] / loss[0]))
            parts.append(
                f"{label(run)}: flatness {flatness[0]:.3g} → {flatness[-1]:.3g} (Theorem 4: "
                f"{run.result['teacher']:.3g}), loss {loss[0]:.2g} → {loss[-1]:.2g}, "
                f"‖Uw‖ {run.curves['correlation'][-1]:.2f}"
            )
    return Finding(max(shares), max(shares) <= 0.05, "; ".join(parts))
