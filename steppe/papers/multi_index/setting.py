"""The setting of multi-index: its activations, links and data, rows of runs, and exponents of scaling laws.

Our copy of the paper lacks the formulas of these choices, so they are ours: the sizes, the noise (standard deviations
0.1 and 1), the coefficients 1/√r of a sum of r = 5, and y = relu(xᵀAx) for the quadratic form. A has eigenvalues ±1/√d,
so that y depends on all d directions; ν is the correlation to the first r of its eigenvectors.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from steppe.experiments import Paper

PAPER = Paper(
    "multi-index",
    "Flatness and generalization: learning multi-index models with homogeneous neural networks",
    module="steppe.papers.multi_index",
)

Activation = Literal["relu", "leaky", "quadratic", "linear"]
LinkName = Literal["sum", "linear", "quadratic-form", "sum+0.5", "sum+1", "sum+2"]
CONSTANTS: dict[str, float] = {"sum+0.5": 0.5, "sum+1": 1.0, "sum+2": 2.0}
ACTIVATIONS: tuple[Activation, ...] = ("relu", "leaky", "quadratic")
LABELS = {"relu": "ReLU", "leaky": "LeakyReLU(0.1)", "quadratic": "quadratic", "linear": "linear"}
COLOURS = {"relu": "blue", "leaky": "orange", "quadratic": "green"}


def sigma(activation: Activation) -> Any:
    from steppe.activations import leaky, linear, quadratic, rectifier

    return {"relu": rectifier, "leaky": leaky(0.1), "quadratic": quadratic, "linear": linear}[activation]


def label(run: Any) -> str:
    return LABELS[run.spec["activation"]]


def model(link: LinkName, activation: Activation, r: int, d: int, rng: Any) -> tuple[Any, Any, Any]:
    """The link, its U, and the r directions to which inner weights are correlated.

    "sum" is a sum of r copies of the activation: for r = 1 the single-index model; "sum+1" adds the constant 1 to it.
    """
    from steppe.data import orthonormal
    from steppe.data.links import Composed, Linear, QuadraticForm, Shifted, SumOfSingleIndex

    coefficients = (1 / r**0.5,) * r
    if link == "quadratic-form":
        U = orthonormal(d, d, key=rng)
        signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0) / d**0.5
        form = QuadraticForm(tuple(tuple(row) for row in np.diag(signs).tolist()))
        return Composed(_relu, form), U, U[:r]
    U = orthonormal(r, d, key=rng)
    total = SumOfSingleIndex(sigma(activation), coefficients)
    if link in CONSTANTS:
        return Shifted(total, CONSTANTS[link]), U, U
    return Linear(coefficients) if link == "linear" else total, U, U


def drawn(activation: Activation, r: int, d: int, n: int, rng: Any, *, noise: float = 0.0) -> tuple[Any, ...]:
    """(σ, link, U, x, y): n examples of a sum of r single-index models in d dimensions."""
    from steppe.data import multi_index

    link, U, _ = model("sum", activation, r, d, rng)
    x, y, *_ = multi_index(link, U, n, noise=noise, key=rng)
    return sigma(activation), link, U, x, y


def drawn_at(
    k: int, seeds: int, activation: Activation, d: Any, n: Any, m: Any, *, r: int = 1, level: float = 0.0
) -> tuple[Any, ...]:
    """The k-th draw of `seeds` at each of the sizes (d, n, m): ({"d", "n", "m", "seed"}, rng, σ, link, U, x, y).

    The labels have noise of variance level/n.
    """
    size, seed = divmod(k, seeds)
    at = {"d": d[size], "n": n[size], "m": m[size], "seed": seed}
    rng = np.random.default_rng([seed, d[size], n[size], m[size]])
    return at, rng, *drawn(activation, r, d[size], n[size], rng, noise=(level / n[size]) ** 0.5)


def _relu(z: Any) -> Any:
    return z * (z > 0)


def rows(names: Sequence[str], count: int, row: Callable[[int], dict[str, float]], checkpoint: Any) -> dict[str, Any]:
    """The columns `names` of row(0), …, row(count − 1). A killed run continues after its last saved row."""
    done = [] if checkpoint is None else list((checkpoint.load() or {}).get("rows", ()))
    for k in range(len(done), count):
        found = row(k)
        done.append(np.array([found[name] for name in names], dtype=float))
        if checkpoint is not None and checkpoint.due():
            checkpoint.save({"rows": np.array(done)})
    return dict(zip(names, np.array(done).T, strict=True))


class Exponent(NamedTuple):
    """b of y ∝ x^b, and the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def exponent(x: Any, y: Any) -> Exponent:
    """Least squares of log y on log x, where every draw is a point; the interval is Student's.

    >>> round(exponent([1.0, 2.0, 4.0, 8.0], [3.0, 12.0, 48.0, 192.0]).value, 12)
    2.0
    """
    from scipy.stats import t

    x, y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    reach = float(t.ppf(0.975, len(x) - 2) * np.sqrt(left @ left / (len(x) - 2) / (centred @ centred)))
    return Exponent(slope, slope - reach, slope + reach)


class Law(NamedTuple):
    """A measured exponent beside the predicted one."""

    name: str
    found: Exponent
    predicted: float

    def __str__(self) -> str:
        return f"{self.name}: {self.found}, predicted {self.predicted:.2f}"

    @property
    def away(self) -> float:
        return abs(self.found.value - self.predicted)

    @property
    def at_most(self) -> bool:
        """The interval reaches down to the prediction, or lies below it."""
        return self.found.low <= self.predicted

    @property
    def at_least(self) -> bool:
        """The interval reaches up to the prediction, or lies above it."""
        return self.found.high >= self.predicted

    @property
    def met(self) -> bool:
        return self.at_most and self.at_least


def laws(
    runs: Sequence[Any], of: Callable[[Any], Any], size: str, predicted: Callable[[int], float] = lambda c: 0.0
) -> list[Law]:
    """The exponents of of(columns) in `size`, one run for each activation; `predicted` depends on its degree c."""
    found = []
    for run in runs:
        c = interpolated(run)
        found.append(Law(label(run), exponent(c[size], of(c)), predicted(degree(run))))
    return found


def degree(run: Any) -> int:
    return 2 if run.spec["activation"] == "quadratic" else 1


def interpolated(run: Any) -> dict[str, Any]:
    """The columns of a run, without rows where no interpolator exists."""
    curves = run.curves
    kept = curves["exists"] > 0 if "exists" in curves else slice(None)
    return {name: column[kept] for name, column in curves.items()}


def listed(laws: Sequence[Law]) -> str:
    return "; ".join(map(str, laws))


def fitted(size: Any, values: Any, colour: str, name: str) -> list[dict[str, Any]]:
    """Two series for a figure: the draws as points, and the fitted law as a line with its exponent in the label."""
    found = exponent(size, values)
    ends = np.unique(size)
    level = np.exp(np.mean(np.log(values)) - found.value * np.mean(np.log(size)))
    return [
        {"x": list(map(float, size)), "y": list(map(float, values)), "kind": "points", "colour": colour},
        {"x": ends.tolist(), "y": (level * ends**found.value).tolist(), "kind": "dashed", "colour": colour,
         "label": f"{name}: {found.value:.2f}"},
    ]  # fmt: skip
