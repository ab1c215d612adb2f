"""The experiment of mulayoff2021: gradient descent with many step sizes from one start, and its minima measured.

The supplement leaves some choices open, which are ours: the data (`points`), the seeds, the scale of the initialisation
in figures 1 and 3, the warm-up in the experiment on initialisation, and when a run is given up. `figures` says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe import check
from steppe.experiments import Experiment, Paper
from steppe.outcome import OUTCOMES
from steppe.store import Computed, Entry

if TYPE_CHECKING:
    from steppe.papers.mulayoff2021.theory import PiecewiseLinear

PAPER = Paper(
    "mulayoff2021",
    "The implicit bias of minima stability: a view from function space",
    module="steppe.papers.mulayoff2021",
)

# A run stops at a loss of 1e-8, within about 1e-4 of a minimum: a kink this close to a training point counts as on it.
KINK = 1e-4
# Up to this number of modes λ_max^upper is exact.
CAP = 64
COLUMNS = (
    "sharpness", "mean", "product", "thresholds", "neurons", "function", "slack", "flattest", "flattest_lower",
    "flattest_gap", "top_gap", "weighted", "roughness", "centre", "variation", "kinks", "crowd", "upper_sharpness",
    "upper_sharpness_most", "entry", "theorem_2", "excursion",
)  # fmt: skip


@dataclass(frozen=True)
class Descent(Experiment, kind="mulayoff2021/descent"):
    """`count` step sizes, log-spaced on [low, high]; this run computes every `parts`-th of them, starting at `part`.

    A net of `width` neurons starts at PyTorch's initialisation times `scale` and is trained on n points until the loss
    (1/2n) Σ (f − y)² is at most `loss`. The step size grows linearly over `warmup` steps, and is multiplied by `factor`
    when the loss first falls below `below`.
    """

    scale: float
    low: float
    high: float
    count: int
    part: int = 0
    parts: int = 1
    warmup: int = 0
    below: float = 0.0
    factor: float = 1.0
    loss: float = 1e-8
    max_steps: int = 3_000_000
    width: int = 80
    n: int = 10
    seed: int = 0
    reach: float = 2.0
    gap: float = 0.2
    spread: float = 0.5

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        """Train; one row for each step size, with all numbers that the claims need of its minimum."""
        from steppe.dynamics import minima

        x, y = self.data()
        rates = self.rates()
        done = minima(
            x, y, self.start(), rates, loss=self.loss, max_steps=self.max_steps, warmup=self.warmup,
            below=self.below, factor=self.factor, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        reached = np.array([o == "reached" for o in done.outcome])
        counted = reached & ~done.warming
        # The step size with which a run that counts ended.
        final = rates * np.where(self.below > 0, self.factor, 1.0)
        rows = [measured(done.params(k), x, float(final[k])) if counted[k] else {} for k in range(len(rates))]
        columns: dict[str, Any] = {name: np.array([row.get(name, np.nan) for row in rows]) for name in COLUMNS}
        columns |= {
            "lr": rates, "step": done.steps, "loss": done.loss, "counted": counted, "warming": done.warming,
            "reached": reached, "diverged": np.array([o == "diverged" for o in done.outcome]),
        }  # fmt: skip
        params = {"x": x, "y": y, "moments": done.moments, "losses": done.losses}
        params |= {name: getattr(done, name) for name in ("W1", "b1", "W2", "b2")}
        outcomes = {name: done.outcome.count(name) for name in OUTCOMES}
        result = {"outcomes": outcomes, "warming": int(done.warming.sum()), "run_steps": int(done.steps.sum())}
        return Computed(columns, params, result)

    def data(self) -> tuple[Any, Any]:
        return points(self.n, reach=self.reach, gap=self.gap, spread=self.spread, seed=self.seed)

    def rates(self) -> Any:
        return np.geomspace(self.low, self.high, self.count)[self.part :: self.parts]

    def start(self) -> dict[str, Any]:
        from steppe.networks import OneHidden

        return OneHidden().init(1, self.width, np.random.default_rng([self.seed, 1]), scale=self.scale)


def points(n: int, *, reach: float, gap: float, spread: float, seed: int) -> tuple[Any, Any]:
    """x sorted, uniform on [−reach, reach] given that neighbours are at least `gap` apart; y normal, times `spread`.

    The paper only says "random". Without the gap, close neighbours with different y would keep gradient descent from
    converging, whatever its step size.
    """
    n = check.integer("n", n, minimum=1)
    reach, gap = check.number("reach", reach, above=0.0), check.number("gap", gap, minimum=0.0)
    room = 2 * reach - (n - 1) * gap
    if room <= 0:
        check.refuse("gap", f"below {2 * reach / max(n - 1, 1):g} for {n} points", gap, "Choose a smaller gap.")
    rng = np.random.default_rng([seed, 0])
    # Order statistics on the interval without the gaps, then moved apart by the gaps: exactly the conditional law.
    x = np.sort(rng.uniform(-reach, -reach + room, n)) + gap * np.arange(n)
    return x, check.number("spread", spread, above=0.0) * rng.normal(size=n)


def measured(params: Mapping[str, Any], x: Any, lr: float) -> dict[str, float]:
    """All of COLUMNS for one interpolator on inputs x that was reached with step size lr.

    `centre` is ∫|f″| over the middle half of the data's interval and `weighted` is ∫|f″|g. `excursion` is the largest
    distance from the minimum in simulations that start nearby, relative to their start.
    """
    from steppe.papers.mulayoff2021 import theory

    inputs = np.asarray(x)[:, None]
    chain = theory.chain(params, inputs)
    best = theory.flattest_implementation(params, inputs)
    f, low, width = theory.piecewise_linear(params), float(np.min(x)), float(np.ptp(x))
    modes = theory.modes(params, inputs, rtol=KINK)
    upper = theory.upper_sharpness(modes, cap=CAP)
    entry = modes.largest_entry()
    values = asdict(chain) | {
        "slack": chain.slack,
        "flattest": best.value,
        "flattest_lower": best.lower,
        "flattest_gap": best.gap,
        "top_gap": 1 - best.certificate.top / best.value,
        "weighted": theory.weighted_roughness(f, x),
        "roughness": f.roughness(low, low + width),
        "centre": f.roughness(low + width / 4, low + 3 * width / 4),
        "variation": f.variation(low, low + width),
        "kinks": len(modes.kinks),
        "crowd": modes.crowd,
        "upper_sharpness": upper.lower,
        "upper_sharpness_most": upper.upper,
        "entry": entry,
        "theorem_2": theory.theorem_2(lr, entry, modes.crowd, len(inputs)),
        "excursion": theory.excursion(modes, lr, starts=8, steps=100),
    }
    return {name: float(values[name]) for name in COLUMNS}


def merged(runs: Sequence[Entry]) -> dict[str, Any]:
    """The columns of all parts of an experiment, sorted by step size."""
    tables = [run.curves for run in runs]
    columns = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    order = np.argsort(columns["lr"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def network(params: Mapping[str, Any], k: int) -> dict[str, Any]:
    """The parameters of the k-th row, for a `OneHidden`."""
    return {"W1": params["W1"][k][:, None], "b1": params["b1"][k], "W2": params["W2"][k], "b2": params["b2"][k]}


def function(params: Mapping[str, Any], k: int) -> "PiecewiseLinear":
    """The function that the net of the k-th row computes."""
    from steppe.papers.mulayoff2021.theory import piecewise_linear

    return piecewise_linear(network(params, k))
