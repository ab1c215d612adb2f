"""Reading a sweep: the corner where sharpness leaves its plateau, the U-shape of the test loss, a summary."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steppe import check
from steppe._result import Result, Table, columns, panel, picture

# Candidates for the corner between two neighbouring rates.
_PLACES = 50
_FEWEST = 5

# The fine grid ends at 6/s_GF = 3 η_c; beyond it sharpness need not follow 2/η.
_FARTHEST = 3.0

# The lower side of a U divided by the higher one: ✓ needs CLEAR, (✓) needs VISIBLE.
CLEAR, VISIBLE = 0.2, 0.05

# A side counts if it is more than this many standard errors of the curve's jitter.
SIGMAS = 3.0

# With cross-entropy sharpness falls again after its time at the edge; its smoothed maximum still shows the edge.
_KINDS = {"sharpness": "sharpness at the end", "smoothed_sharpness": "its smoothed maximum"}

Mark = Literal["✓", "(✓)", "(×)", "×"]


@dataclass(frozen=True, repr=False)
class Transition(Result):
    """The rate at which values leave their plateau, with lower ≤ truth ≤ upper at the stated confidence.

    `level` is the value before that corner. After it the logarithm of the value is a line in the logarithm of the rate,
    with this `slope`: −1 if values follow 2/η.
    `found` is False if, at this confidence, no corner fits better than a constant; then the interval is (0, ∞).
    """

    rate: float
    lower: float
    upper: float
    confidence: float
    level: float
    slope: float
    found: bool

    def table(self) -> Table:
        return columns({name: [value] for name, value in asdict(self).items()})

    def draw(self) -> Any:
        """The fitted line: constant up to the corner, a power of the rate after it."""
        rates = self.rate * np.geomspace(0.25, 4, 41)
        line = self.level * np.maximum(1.0, rates / self.rate) ** self.slope
        title = f"corner at η = {self.rate:.4g}" if self.found else "no corner"
        return picture(title, [panel("learning rate η", rates, "fitted value", {"": line})])


def transition(rates: ArrayLike, values: ArrayLike, *, confidence: float = 0.95) -> Transition:
    """Fit log v = a for η ≤ η*, a + b log(η/η*) above, by least squares.

    The interval is that of the profile likelihood: all η* whose residual sum of squares is at most (1 + F/(n − 3))
    times the least, where F is the quantile of the F(1, n − 3) distribution. It is exact for normal noise if the model
    is linear in the other parameters. A constant has two parameters fewer; the F(2, n − 3) test rejects it or not.

    >>> eta = np.arange(1, 13) / 4
    >>> fit = transition(eta, np.where(eta < 1.1, 8.0, 8.8 / eta))
    >>> round(fit.rate, 2), round(fit.slope, 2), fit.found
    (1.1, -1.0, True)
    """
    from scipy.stats import f as fisher

    if not 0 < check.number("confidence", confidence) < 1:
        check.refuse("confidence", "between 0 and 1", confidence, "Pass for example 0.95.")
    rates, values = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    positive = all(((v > 0) & (v < np.inf)).all() for v in (rates, values))
    if rates.ndim != 1 or rates.shape != values.shape or len(np.unique(rates)) < _FEWEST or not positive:
        remedy = "Pass only runs that reached their loss, at five rates or more."
        rule = "lists of equal length of positive numbers, at five different rates or more"
        check.refuse("rates and values", rule, f"shapes {rates.shape} and {values.shape}", remedy)
    order = np.argsort(rates)
    x, y = np.log(rates[order]), np.log(values[order])
    corners = np.unique(np.concatenate([np.linspace(a, b, _PLACES) for a, b in pairwise(np.unique(x)[:-1])]))
    rss, levels, slopes = _hinges(x, y, corners)
    best = int(np.argmin(rss))
    least, level, slope = (float(column[best]) for column in (rss, levels, slopes))
    free = len(x) - 3
    # Residuals below the rounding of the logarithms count as zero.
    floor = len(x) * (np.finfo(float).eps * max(1.0, float(np.abs(y).max()))) ** 2
    kept = corners[rss <= least * (1 + fisher.ppf(confidence, 1, free) / free) + floor]
    constant = float(np.sum((y - y.mean()) ** 2))
    found = (constant - least) / 2 > fisher.ppf(confidence, 2, free) * (least + floor) / free
    lower, upper = (float(np.exp(v)) for v in (kept.min(), kept.max())) if found else (0.0, float("inf"))
    rate = float(np.exp(corners[best]))
    return Transition(rate, lower, upper, confidence, float(np.exp(level)), slope, bool(found))


def corner(ends: Mapping[str, NDArray[Any]], critical: float, name: str = "sharpness") -> Transition | None:
    """Where the column `name` of a sweep's ends at one goal leaves its plateau, up to 3 η_c.

    None if fewer than five such rates reached the goal, or if a value has no logarithm.

    >>> eta = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0])
    >>> ends = {"lr": eta, "outcome": np.zeros(7), "sharpness": np.minimum(2.0, 2.0 / eta)}
    >>> round(corner(ends, 1.0).rate, 2), corner(ends, 0.4)
    (1.0, None)
    """
    kept = (ends["outcome"] == 0) & (ends["lr"] <= 1.0001 * _FARTHEST * critical)
    rates, values = ends["lr"][kept], ends[name][kept]
    if len(np.unique(rates)) < _FEWEST or not ((values > 0) & (values < np.inf)).all():
        return None
    return transition(rates, values)


def _hinges(x: NDArray[Any], y: NDArray[Any], corners: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Residual sum of squares, level and slope for each corner: a simple regression on the ramp max(0, x − corner)."""
    ramps = np.maximum(0.0, x[None] - corners[:, None])
    away, height = ramps - ramps.mean(axis=1, keepdims=True), y - y.mean()
    slopes = (away @ height) / np.sum(away**2, axis=1)
    levels = y.mean() - slopes * ramps.mean(axis=1)
    rss = np.sum((height[None] - slopes[:, None] * away) ** 2, axis=1)
    return rss, levels, slopes


@dataclass(frozen=True, repr=False)
class UShape(Result):
    """Whether a curve is U-shaped. It rises by `left` and `right` from its bottom; `jitter` is the noise of a point."""

    mark: Mark
    best: int
    left: float
    right: float
    jitter: float

    def table(self) -> Table:
        return columns({name: [value] for name, value in asdict(self).items()})

    def draw(self) -> Any:
        """The rises from the bottom to both ends, with the jitter that they must exceed."""
        rises = {"rise": [self.left, 0.0, self.right], "limit of the jitter": [SIGMAS * self.jitter] * 3}
        return picture(f"U-shape {self.mark}", [panel("left end, bottom, right end", np.arange(3), "value", rises)])


def u_shape(values: ArrayLike) -> UShape:
    """The verdict on values in the order of their rates; `best` is the index of the least smoothed value.

    The median of three neighbours smooths the curve; at an end it is the median of the outermost three. The sides are
    the rises from the bottom to the ends, and q is the lower side divided by the higher one. A side counts if it is
    more than three times the jitter, the robust spread of the values around the mean of their neighbours.

        ✓    both sides count, q ≥ 0.2: the best rate lies between the ends
        (✓)  both sides count, q ≥ 0.05
        ×    one side counts and q < 0.05: the best rate is at an end
        (×)  everything else: a side within the jitter, or a flat curve

    >>> u_shape([5, 4, 3, 2, 1, 2, 3, 4, 5]).mark, u_shape([5, 4, 3, 2, 1, 0.9, 0.8]).mark
    ('✓', '×')
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        remedy = "Pass only runs that reached their loss."
        check.refuse("values", "a list of at least one finite number", values, remedy)
    smooth = np.array([np.median(values[max(0, min(k - 1, len(values) - 3)) :][:3]) for k in range(len(values))])
    best = int(np.argmin(smooth))
    left, right = float(smooth[0] - smooth[best]), float(smooth[-1] - smooth[best])
    jitter = _jitter(values)
    low, high = sorted((left, right))
    share = low / high if high > 0 else 0.0
    counts = [side > SIGMAS * jitter and side > 0 for side in (low, high)]
    mark: Mark = "(×)"
    if all(counts) and share >= CLEAR:
        mark = "✓"
    elif all(counts) and share >= VISIBLE:
        mark = "(✓)"
    elif counts[1] and share < VISIBLE:
        mark = "×"
    return UShape(mark, best, left, right, jitter)


def _jitter(values: NDArray[Any]) -> float:
    """A robust standard deviation of one value, from its distance to the mean of its neighbours.

    The variance of that distance is 3/2 of a value's; 1.4826 turns a median of absolute values into a deviation. The
    curvature of a smooth curve counts as noise, so the rule errs towards the marks in brackets.
    """
    if len(values) < 5:
        return float("inf")
    away = values[1:-1] - (values[:-2] + values[2:]) / 2
    return float(1.4826 * np.median(np.abs(away)) / np.sqrt(1.5))


def summary(ends: Mapping[str, NDArray[Any]], critical: float) -> dict[str, Any]:
    """A sweep at one goal, in numbers; `ends` are those of `Sweep.at`.

    How many rates reached the goal; where sharpness leaves its plateau, up to 3 η_c, in units of η_c and of 2/plateau;
    and with test data, the verdict on the U-shape and the best rate. The plateau of the last sharpness is that of the
    flow's end. Where the flow is sharpest before its end, s_GF is larger: then the corner is beyond η_c.

    >>> eta = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
    >>> table = {"lr": eta, "outcome": np.zeros(6), "sharpness": np.minimum(2.0, 2.0 / eta)}
    >>> found = summary(table | {"smoothed_sharpness": np.full(6, 2.0)}, 1.0)
    >>> found["reached"], round(found["sharpness"]["leaves_over_critical"], 2), found["smoothed_sharpness"]["interval"]
    (6, 1.0, None)
    """
    reached = ends["outcome"] == 0
    found: dict[str, Any] = {"rates": len(reached), "reached": int(reached.sum())}
    for name in _KINDS:
        if (fit := corner(ends, critical, name)) is not None:
            interval = [fit.lower / critical, fit.upper / critical] if fit.found else None
            found[name] = {
                "leaves_over_critical": fit.rate / critical, "leaves_over_plateau": fit.rate * fit.level / 2,
                "interval": interval, "slope": fit.slope,
            }  # fmt: skip
    if "centre_l1" in ends and (grown := growth(ends, critical)) is not None:
        found["l1_growth"] = grown
    known = reached & np.isfinite(ends.get("test_loss", np.full(len(reached), np.nan)))
    if known.any():
        lr, losses = ends["lr"][known], ends["test_loss"][known]
        found |= {"u_shape": u_shape(losses).mark, "best_over_critical": float(lr[np.argmin(losses)] / critical)}
    return found


def growth(ends: Mapping[str, NDArray[Any]], critical: float, name: str = "l1") -> dict[str, float] | None:
    """By how much a norm grows from the rates up to η_c (their median) to the largest rate, as a share.

    `iterate` is the growth of ‖w‖, `centre` that of the mean of the next 16 iterates, in which the oscillation across
    the valley averages out; `oscillation` is the share of the growth that this takes away, NaN where nothing grows.

    >>> eta = np.array([0.5, 1.0, 3.0])
    >>> norms = {"l1": np.array([1.0, 1.0, 1.5]), "centre_l1": np.array([1.0, 1.0, 1.4])}
    >>> ends = {"lr": eta, "outcome": np.zeros(3)} | norms
    >>> {k: round(v, 3) for k, v in growth(ends, 1.0).items()}
    {'iterate': 0.5, 'centre': 0.4, 'oscillation': 0.2}
    """
    kept = (ends["outcome"] == 0) & np.isfinite(ends[f"centre_{name}"])
    lr = ends["lr"][kept]
    below = lr <= 1.0001 * critical
    if not below.any() or below.all():
        return None
    columns = {"iterate": ends[name][kept], "centre": ends[f"centre_{name}"][kept]}
    last = int(np.argmax(lr))
    found = {key: float(v[last] / np.median(v[below]) - 1) for key, v in columns.items()}
    whole = found["iterate"]
    return found | {"oscillation": 1 - found["centre"] / whole if whole > 0 else float("nan")}


def summary_lines(found: Mapping[str, Any]) -> list[str]:
    """A summary in words."""
    lines = [f"reached: {found['reached']} of {found['rates']} rates"]
    for name, what in _KINDS.items():
        if (fit := found.get(name)) is not None:
            lines.append(f"{what} leaves its plateau {_where(**fit)}")
    if (grown := found.get("l1_growth")) is not None:
        lines.append(
            f"ℓ1 at the largest rate: {grown['iterate']:+.2%} against the rates up to η_c, "
            f"{grown['centre']:+.2%} with the oscillation averaged out"
        )
    if "u_shape" in found:
        lines.append(f"test loss: U-shape {found['u_shape']}, least at {found['best_over_critical']:.3g} η_c")
    return lines


def _where(leaves_over_critical: float, leaves_over_plateau: float, interval: list[float] | None, slope: float) -> str:
    if interval is None:
        return "nowhere"
    where = f"at {leaves_over_critical:.3g} η_c [{interval[0]:.3g}, {interval[1]:.3g}]"
    return f"{where}, {leaves_over_plateau:.3g} of 2/plateau, slope {slope:.2f}"
