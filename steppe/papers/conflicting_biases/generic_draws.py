"""Section 3 on generic examples, drawn as the paper draws them: does past η_c every limit beat the least norm?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.conflicting_biases.diagonal_runs import Example, converged, example_of
from steppe.papers.conflicting_biases.figures_4_15_16 import fig15, fig16
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory.risks import risk
from steppe.store import Computed


def draw(rng: np.random.Generator, alpha: float) -> Example:
    """x ~ N(0, I) and y = ⟨1, x⟩ + ε given x ≥ 0, y > 0 and, as in the text, R(M_ℓ1) < R(M_S); d = 2."""
    while True:
        x = np.abs(rng.normal(size=2))
        y = float(x.sum() + rng.normal())
        if y <= 0:
            continue
        example = Example(tuple(x.tolist()), y, alpha)
        if example.risks()["norm"] < example.risks()["sharpness"]:
            return example


@experiment("conflicting-biases/draws")
def drawn_examples(
    checkpoint: Any, progress: Any, *, examples: int = 200, rates: int = 60, steps: int = 40_000, alpha: float = 0.05,
    seed: int = 0,
) -> Computed:  # fmt: skip
    """Gradient descent from α·1 on each example, at even rates between η_c and the limit of M.

    `better` counts the limits with less risk than the least norm, `converged` all limits; `worst` is the largest risk
    of a limit over R(M_ℓ1), 0 if no rate converged.
    """
    import jax.numpy as jnp

    from steppe import until
    from steppe.dynamics import GD, run_many
    from steppe.networks import diagonal_problem

    rng = np.random.default_rng(seed)
    columns: dict[str, list[float]] = {"better": [], "converged": [], "worst": []}
    for _ in range(examples):
        example = draw(rng, alpha)
        critical = example.critical()
        lr = np.linspace(critical, example.limit, rates + 1)[1:] * example.unit
        stop = until.loss(1e-24) | until.steps(steps)
        ends = run_many(diagonal_problem(example.x, example.y, start=alpha), GD(jnp.asarray(lr)), stop=stop)
        reached = ends.ended("reached")
        ratios = risk(np.asarray(ends.w)[reached]) / example.risks()["norm"]
        columns["better"].append(float((ratios < 1).sum()))
        columns["converged"].append(float(reached.sum()))
        columns["worst"].append(float(ratios.max(initial=0.0)))
    return Computed({name: np.array(column) for name, column in columns.items()}, {}, {})


@PAPER.plot(
    "draws", "the worst limit past the critical rate, on generic examples", figures.panels,
    runs={"smoke": (drawn_examples(examples=16, rates=20, steps=5_000),), "paper": (drawn_examples(),)},
)  # fmt: skip
def draws(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    worst = np.sort(entry.curves["worst"][entry.curves["converged"] > 0])
    share = np.arange(1, len(worst) + 1) / len(worst)
    series = [
        figures.series(worst, share, "line", "blue", f"{len(worst)} examples"),
        figures.series([1.0, 1.0], [0.0, 1.0], "dashed", "ink", "as good as the least norm"),
    ]
    panel = {"x": "largest risk of a limit past $\\eta_c$ over that of the least norm", "y": "share of the examples",
             "series": series, "log": "x", "legend": "lower right"}  # fmt: skip
    return {"title": "Section 3 · the worst limit on generic examples", "panels": [panel]}


@PAPER.claim(
    "fig16-better", "section 3", "All trajectories above η_c that converge generalise better than the least norm.",
    "on every example, at every rate", needs=(draws, fig15, fig16), fails_at=("smoke", "paper"),
)  # fmt: skip
def better_than_norm(drawn: Sequence[Any], rates: Sequence[Any], twelve: Sequence[Any]) -> Finding:
    """The share of generic examples on which every limit past η_c has less risk than the least norm.

    The detail has the share of all limits, and that of the two sets of rates on our example.
    """
    c = drawn[0].curves
    some = c["converged"] > 0
    share = float((c["better"][some] == c["converged"][some]).mean())
    example = example_of(twelve[0])
    limit = example.risks()["norm"]
    few, fine = (converged(runs[0], above=example.critical())["risk"] < limit for runs in (twelve, rates))
    detail = (
        f"{some.sum()} examples, {c['better'].sum() / c['converged'].sum():.1%} of {c['converged'].sum():.0f} limits; "
        f"on our example {fine.mean():.1%} of {len(fine)} rates, and {few.sum()} of the {len(few)} of figure 16"
    )
    return Finding(share, share == 1 and bool(fine.all()) and bool(few.all()), detail)
