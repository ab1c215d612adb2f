"""Finished runs read together: the seeds of a setting as one table, and exponents with their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

NAMES = {"relu": "ReLU", "leaky": "LeakyReLU(0.1)", "quadratic": "quadratic", "linear": "linear"}


@dataclass(frozen=True, eq=False)
class Group:
    """One setting: its spec but for the seed, and the columns of its runs, (seeds, values of ν) each."""

    spec: Mapping[str, Any]
    columns: Mapping[str, Any]
    power: float

    @property
    def found(self) -> Any:
        """Where an interpolator exists."""
        return self.columns["exists"] > 0

    @property
    def loss(self) -> Any:
        """In closed form where there is one, else sampled."""
        return self.columns["sampled" if self.spec["link"] == "quadratic-form" else "loss"]

    def median(self, name: str) -> Any:
        """Over the seeds; NaN at a ν where half of the seeds or more have no interpolator."""
        import numpy as np

        values = self.loss if name == "loss" else self.columns[name]
        kept = np.where(self.found.mean(axis=0) > 0.5, values, np.nan)
        bare = np.isnan(kept).all(axis=0)
        return np.where(bare, np.nan, np.nanmedian(np.where(bare, 0.0, kept), axis=0))


def groups(entries: Sequence[Any]) -> list[Group]:
    """The settings in the order in which they come."""
    import numpy as np

    found: dict[str, list[Any]] = {}
    for e in entries:
        key = repr(sorted((k, v) for k, v in e.spec.items() if k != "seed"))
        found.setdefault(key, []).append(e)
    tables = []
    for runs in found.values():
        curves = [e.curves for e in runs]
        columns = {name: np.stack([c[name] for c in curves]) for name in curves[0]}
        spec = {k: v for k, v in runs[0].spec.items() if k != "seed"}
        tables.append(Group(spec, columns, power(spec)))
    return tables


def power(spec: Mapping[str, Any]) -> float:
    """E g², the loss of predicting 0: in closed form, or from a sample."""
    import numpy as np

    from steppe.data._multi_index import Expansion
    from steppe.papers.multi_index.setting import model, sigma
    from steppe.papers.multi_index.theory import population_loss, sampled_loss

    link, U, _ = model(spec["link"], spec["activation"], spec["r"], spec["d"], np.random.default_rng(0))
    nothing = np.eye(1, spec["d"]), [0.0], sigma(spec["activation"])
    if isinstance(link, Expansion):
        return population_loss(*nothing, link, U)
    return sampled_loss(*nothing, link, U).value


class Exponent(NamedTuple):
    """b of y ∝ x^b, and the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def exponent(x: Any, y: Any) -> Exponent:
    """Least squares of log y on log x, every draw a point; the interval is Student's.

    >>> round(exponent([1.0, 2.0, 4.0, 8.0], [3.0, 12.0, 48.0, 192.0]).value, 12)
    2.0
    """
    import numpy as np
    from scipy.stats import t

    x, y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    reach = float(t.ppf(0.975, len(x) - 2) * np.sqrt(left @ left / (len(x) - 2) / (centred @ centred)))
    return Exponent(slope, slope - reach, slope + reach)
