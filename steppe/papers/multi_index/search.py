"""Do flattest interpolators that depend on the data generalise at n ∝ d? A search over inner weights, as a map.

Theorem 3 speaks of a model fixed before the data. Here the inner weights are found by descent on the flatness itself,
from inner weights nearly orthogonal to the true directions. A search is also kept away from them (‖Uw‖ ≤ cap), as an
adversary would; one more starts at inner weights of which half are planted along the true directions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Experiment, Finding, experiment
from steppe.papers.multi_index.scaling_laws import LAWS
from steppe.papers.multi_index.setting import PAPER, Activation, Law, drawn, exponent, fitted, label, listed
from steppe.store import Computed

Runs = Sequence[Any]
PLANTED = 2.0  # stands for the search that starts at planted directions; the others are caps on ‖Uw‖
# One row for each seed, search and block of steps. `bound`: below every interpolator of this width; `spoiled`: the
# largest loss found among outer weights that are sharper by a quarter, for the inner weights of the last row.
COLUMNS = ("seed", "search", "step", "flatness", "bound", "loss", "correlation", "spoiled")


@experiment("multi-index/searched")
def searched(
    checkpoint: Any, progress: Any, *, activation: Activation = "relu", r: int = 1, d: int = 16, n: int = 32,
    m: int = 128, level: float = 0.1, searches: tuple[float, ...] = (0.3, 0.6, 1.0, PLANTED), nu: float = 0.05,
    blocks: int = 12, steps: int = 20, seeds: int = 3, rtol: float = 1e-4,
) -> Computed:  # fmt: skip
    """Label noise of variance level/n. A search ends after `blocks` of `steps`, or where no step helps."""
    saved = None if checkpoint is None else checkpoint.load()
    rows = [] if saved is None else list(saved["rows"])
    done = {(row[0], row[1]) for row in rows}
    for seed in range(seeds):
        for search in searches:
            if (float(seed), search) in done:
                continue
            found = path(activation, r, d, n, m, level, search, nu, blocks, steps, seed, rtol)
            rows += [np.array([seed, search, *row], dtype=float) for row in found]
            if checkpoint is not None and checkpoint.due():
                checkpoint.save({"rows": np.array(rows)})
    return Computed(dict(zip(COLUMNS, np.array(rows).T, strict=True)), {}, {})


def path(
    activation: Activation, r: int, d: int, n: int, m: int, level: float, search: float, nu: float, blocks: int,
    steps: int, seed: int, rtol: float,
) -> list[tuple[float, ...]]:  # fmt: skip
    """The rows of one search, without seed and search."""
    from steppe.papers.multi_index import theory

    rng = np.random.default_rng([seed, d, n, m])
    act, link, U, x, y = drawn(activation, r, d, n, rng, noise=(level / n) ** 0.5)
    rows: list[tuple[float, ...]] = []
    bound, lr = theory.pointwise(x, y, m, act), 0.3

    def keep(W: Any) -> Any:
        return theory.capped(W, U, search) if search < 1 else W

    W = theory.correlated(m, U, min(nu, search), key=rng)
    if search == PLANTED:
        W[: m // 2] = theory.copies(link, U, m // 2).W
    f = theory.features(W, x, act)
    best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)
    for block in range(blocks + 1):
        f = theory.features(W, x, act)
        cost, along = f.q * np.abs(best.a) ** f.p, np.linalg.norm(W @ U.T, axis=1)
        loss = theory.population_loss(W, best.a, act, link, U)
        last = block == blocks or lr == 0
        worst = theory.spoiled(W, best.a, f, act, flatness=1.25 * best.flatness) if last else None
        spoiled = np.nan if worst is None else theory.population_loss(W, worst, act, link, U)
        rows.append((block * steps, best.flatness, bound, loss, float(cost @ along / cost.sum()), spoiled))
        if last:
            break
        moved = theory.descend(x, y, W, act, steps=steps, lr=lr, rtol=rtol, keep=keep)
        W, best, lr = moved.W, moved.interpolator, moved.lr
    return rows


def ends(run: Any, search: float) -> dict[str, Any]:
    """The last row of each seed of one search."""
    c = run.curves
    chosen = [np.flatnonzero((c["seed"] == s) & (c["search"] == search))[-1] for s in range(run.spec["seeds"])]
    return {name: column[chosen] for name, column in c.items()}


def power(run: Any) -> float:
    """E g², the loss of predicting 0."""
    return 0.5 if run.spec["activation"] == "relu" else 3.0


SMOKE = [searched(activation=a, d=d, n=2 * d, m=8 * d, blocks=3, seeds=2, rtol=1e-3) for a in LAWS for d in (6, 12)]
RATIO = {a: [searched(activation=a, n=16 * k, m=64 * k) for k in (1, 2, 4, 8)] for a in LAWS}
GROWN = {a: [searched(activation=a, d=d, n=2 * d, m=8 * d) for d in (16, 32, 64)] for a in LAWS}
WIDTH = {a: [searched(activation=a, n=64, m=64 * k) for k in (2, 4, 8)] for a in LAWS}
QUIET = {a: [searched(activation=a, n=16 * k, m=64 * k, level=0.0) for k in (2, 4, 8)] for a in LAWS}


def distinct(specs: Sequence[Experiment]) -> list[Experiment]:
    return list(dict.fromkeys(specs))


@PAPER.plot(
    "map", "population loss of the flattest interpolators found", figures.panels,
    runs={
        "smoke": SMOKE,
        "paper": distinct([spec for a in LAWS for part in (RATIO, GROWN, WIDTH, QUIET) for spec in part[a]]),
    },
)  # fmt: skip
def flatness_map(runs: Runs) -> dict[str, Any]:
    """Flatness over the proven bound against the loss: paths and ends of searches; a colour for each size."""
    panels = []
    for activation in LAWS:
        of = [run for run in runs if run.spec["activation"] == activation]
        loud = [run for run in of if run.spec["level"] > 0]
        least = min(run.spec["d"] for run in of)
        groups = (
            ("n/d, m = 4n", lambda s: f"n/d = {s['n'] / s['d']:g}", [s for s in loud if _is(s, d=least, width=4)]),
            ("d, n = 2d, m = 4n", lambda s: f"d = {s['d']}", [s for s in loud if _is(s, ratio=2, width=4)]),
            ("m/n, n = 4d", lambda s: f"m/n = {s['m'] / s['n']:g}", [s for s in loud if _is(s, d=least, ratio=4)]),
            ("n/d, no noise", lambda s: f"n/d = {s['n'] / s['d']:g}", [s for s in of if s.spec["level"] == 0]),
        )
        panels += [_panel(f"{label(of[0])}: {name}", chosen, named) for name, named, chosen in groups if chosen]
    title = "Population loss of the flattest interpolators found: ● free search, × kept away from U, ○ from planted U"
    return {"title": title, "panels": panels}


def _is(run: Any, **wanted: float) -> bool:
    s = run.spec
    sizes = {"d": s["d"], "ratio": s["n"] / s["d"], "width": s["m"] / s["n"]}
    return all(sizes[name] == value for name, value in wanted.items())


def _panel(title: str, runs: Runs, named: Any) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for run, colour in zip(runs, ("blue", "orange", "green", "red"), strict=False):
        c = {name: np.asarray(column) for name, column in run.curves.items()}
        x, y = c["flatness"] / c["bound"], np.maximum(c["loss"] / power(run), 1e-8)
        for seed in range(run.spec["seeds"]):
            at = (c["seed"] == seed) & (c["search"] == 1.0)
            series.append(figures.series(x[at], y[at], "thin", colour))
        for search in run.spec["searches"]:
            e = ends(run, search)
            kind = "points" if search == 1.0 else "circles" if search == PLANTED else "crosses"
            name = named(run.spec) if search == 1.0 else None
            level = np.maximum(e["loss"] / power(run), 1e-8)
            series.append(figures.series(e["flatness"] / e["bound"], level, kind, colour, name))
    axis = "population loss / that of predicting 0"
    return {"x": "flatness / proven lower bound", "y": axis, "log": "xy", "title": title, "series": series}


def in_proportion(runs: Runs) -> list[Any]:
    """The runs with noise along n = 2d, m = 4n."""
    return [run for run in runs if run.spec["level"] > 0 and _is(run, ratio=2, width=4)]


@PAPER.claim(
    "search-flatter", "Theorem 3, ours",
    "From ν = 0.05 a descent finds interpolators flatter than the flattest with half of the inner weights planted.",
    "flatness over that at the planted start < 1 in every draw, n = 2d", needs=(flatness_map,),
)  # fmt: skip
def search_beats_planting(runs: Runs) -> Finding:
    """The end of the free search over the start of the planted one: the largest ratio."""
    found = {}
    for run in in_proportion(runs):
        c = run.curves
        start = c["flatness"][(c["search"] == PLANTED) & (c["step"] == 0)]
        found[f"{label(run)}, d = {run.spec['d']}"] = ends(run, 1.0)["flatness"] / start
    worst = max(float(r.max()) for r in found.values())
    detail = "; ".join(f"{name}: {r.min():.2f} to {r.max():.2f}" for name, r in found.items())
    return Finding(worst, worst < 1, detail)


@PAPER.plot(
    "search-rate", "loss of the flattest interpolators found, against n", figures.panels,
    runs={"paper": distinct([spec for a in LAWS for part in (GROWN, RATIO) for spec in part[a]])},
)  # fmt: skip
def search_rate(runs: Runs) -> dict[str, Any]:
    """Along n = 2d, and with d = 16 fixed: the ends of the searches and their exponents."""
    panels = []
    for activation in LAWS:
        of = [run for run in runs if run.spec["activation"] == activation]
        least = min(run.spec["d"] for run in of)
        for name, chosen in (("n = 2d", in_proportion(of)), (f"d = {least}", [s for s in of if s.spec["d"] == least])):
            series = []
            for search, colour, text in (
                (0.3, "red", "‖Uw‖ ≤ 0.3"),
                (1.0, "blue", "free"),
                (PLANTED, "green", "planted"),
            ):
                series += fitted(*of_search(chosen, search), colour, text)
            title = f"{label(of[0])}, {name}"
            panels.append(
                {"x": "n = m/4", "y": "loss / that of predicting 0", "log": "xy", "title": title, "series": series}
            )
    return {"title": "Does the flattest interpolator found generalise?", "panels": panels}


def of_search(runs: Runs, search: float) -> tuple[Any, Any]:
    """(n, the loss over that of predicting 0) of the ends of a search, one entry for each draw."""
    n = np.concatenate([np.full(run.spec["seeds"], run.spec["n"]) for run in runs])
    loss = np.concatenate([ends(run, search)["loss"] / power(run) for run in runs])
    return n, np.maximum(loss, 1e-12)  # below is rounding


@PAPER.claim(
    "search-loss", "Theorem 3, ours",
    "Along n = 2d the loss of the flattest found from ν = 0.05 falls more slowly than a fixed model's n^{−½}.",
    "exponent of the free search above −½ with its interval", needs=(search_rate,),
)  # fmt: skip
def search_hardly_falls(runs: Runs) -> Finding:
    """The exponent in n of the loss of the free search: the smallest."""
    found = []
    for activation in LAWS:
        of = [run for run in in_proportion(runs) if run.spec["activation"] == activation]
        found.append(Law(label(of[0]), exponent(*of_search(of, 1.0)), -0.5))
    return Finding(min(law.found.value for law in found), all(law.found.low > -0.5 for law in found), listed(found))


@PAPER.claim(
    "search-adversary", "Theorem 3, ours",
    "At n = 2d inner weights kept away from U (‖Uw‖ ≤ 0.3) come within a factor of the planted flatness, and are bad.",
    "flatness ≤ 2 times the planted start's, loss ≥ half of predicting 0's, every draw", needs=(search_rate,),
)  # fmt: skip
def adversary_is_flat(runs: Runs) -> Finding:
    """The largest flatness of the adversary over that of the planted start, and its smallest loss."""
    ratios, losses = [], []
    for run in in_proportion(runs):
        c, away = run.curves, ends(run, min(run.spec["searches"]))
        ratios.append(away["flatness"] / c["flatness"][(c["search"] == PLANTED) & (c["step"] == 0)])
        losses.append(away["loss"] / power(run))
    ratio, loss = np.concatenate(ratios), np.concatenate(losses)
    detail = f"{len(ratio)} draws, {ratio.min():.2f} to {ratio.max():.2f}; loss {loss.min():.2f} to {loss.max():.2f}"
    return Finding(ratio.max(), bool(ratio.max() <= 2 and loss.min() >= 0.5), detail)


@PAPER.claim(
    "search-enough", "Theorem 3, ours",
    "With more data, n = 8d, the flattest found from ν = 0.05 generalise.",
    "loss ≤ 5% of predicting 0's in every draw", needs=(search_rate,),
)  # fmt: skip
def enough_data(runs: Runs) -> Finding:
    loss = np.concatenate([ends(run, 1.0)["loss"] / power(run) for run in runs if _is(run, ratio=8)])
    return Finding(loss.max(), bool(loss.max() <= 0.05), f"{len(loss)} draws, from {loss.min():.2g}")
