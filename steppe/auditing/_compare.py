"""Several audits side by side: which network is flatter, by which measure, and does the order survive."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from steppe import check
from steppe._result import Result, Table, panel, picture
from steppe.auditing._reading import state
from steppe.auditing._result import Audit, Row, plain

# Measures of flatness; less is flatter. The last two cannot be changed by rescaling neurons.
_RAW = (
    "sharpness", "trace", "critical_sharpness", "sharpness_gauss_newton", "trace_gauss_newton", "fisher_trace",
    "rise_8_bits", "rise_4_bits", "rise_random",
)  # fmt: skip
_INVARIANT = ("adaptive_sharpness", "invariant_trace", "invariant_sharpness")


@dataclass(frozen=True)
class Order:
    """The networks from flat to sharp by one measure.

    `separated` says whether the intervals of neighbours are disjoint, `on_other_data` whether they still are with the
    error of the data sample. `invariant` measures are those that rescaling neurons does not change.
    """

    measure: str
    label: str
    values: Mapping[str, float]
    order: tuple[str, ...]
    separated: bool
    on_other_data: bool
    invariant: bool


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Audits of several networks or checkpoints; `orders` has one entry a measure that all of them have."""

    audits: Mapping[str, Audit]
    orders: tuple[Order, ...]

    @property
    def reading(self) -> str:
        return _reading(self)

    def table(self) -> Table:
        """One row a measure, with the value of each network."""
        rows = self.orders
        return {
            "measure": np.array([order.measure for order in rows]),
            **{name: np.array([order.values[name] for order in rows], dtype=float) for name in self.audits},
            "flattest": np.array([order.order[0] for order in rows]),
            "separated": np.array([order.separated for order in rows]),
            "on_other_data": np.array([order.on_other_data for order in rows]),
            "invariant": np.array([order.invariant for order in rows]),
        }

    def draw(self) -> Any:
        """Each measure relative to its least value, network by network."""
        lines = {
            order.label: [order.values[name] / order.values[order.order[0]] for name in self.audits]
            for order in self.orders
            if order.values[order.order[0]] > 0
        }
        places = np.arange(1.0, len(self.audits) + 1)
        return picture("Which is flatter?", [panel("network", places, "relative to the flattest", lines)])

    def as_dict(self) -> dict[str, Any]:
        return plain(
            {
                "audits": {name: audit.as_dict() for name, audit in self.audits.items()},
                "comparison": [asdict(order) for order in self.orders],
                "reading": self.reading,
            }
        )

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def to_html(self, path: str | Path) -> Path:
        """Writes one page with the comparison and all audits; returns its path."""
        from steppe.auditing._page import page

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(list(self.audits.values()), self), encoding="utf-8")
        return path

    def __str__(self) -> str:
        from steppe.auditing._page import side_by_side

        return side_by_side(self)


def compare(audits: Mapping[str, Audit] | Sequence[Audit]) -> Comparison:
    """Which of several networks is flatter, by each measure, and whether the order survives intervals and rescaling.

    A list goes by the titles of its audits, which must differ then; a mapping names them.
    """
    named = dict(audits) if isinstance(audits, Mapping) else {audit.title: audit for audit in audits}
    if len(named) < 2 or len(named) < len(audits):
        remedy = "Pass a dict {name: audit}."
        check.refuse("audits", "at least two, with different names", [a.title for a in _each(audits)], remedy)
    orders = []
    for name in (*_RAW, *_INVARIANT):
        rows = {key: row for key, audit in named.items() if (row := audit.row(name)) and row.estimate is not None}
        if len(rows) == len(named):
            orders.append(_order(name, rows))
    return Comparison(named, tuple(orders))


def _each(audits: Mapping[str, Audit] | Sequence[Audit]) -> Sequence[Audit]:
    return list(audits.values()) if isinstance(audits, Mapping) else audits


def _order(name: str, rows: Mapping[str, Row]) -> Order:
    bounds = {key: (row.estimate.lower, row.estimate.upper) for key, row in rows.items() if row.estimate is not None}
    values = {key: row.estimate.value for key, row in rows.items() if row.estimate is not None}
    order = tuple(sorted(values, key=lambda key: values[key]))
    pairs = list(pairwise(order))
    separated = all(bounds[a][1] < bounds[b][0] for a, b in pairs)
    # The samples may be the same, so that their errors need not cancel: they add up.
    data = {key: row.data if row.data is not None else math.inf for key, row in rows.items()}
    wide = all(bounds[a][1] + data[a] < bounds[b][0] - data[b] for a, b in pairs)
    label = next(iter(rows.values())).label
    return Order(name, label, values, order, separated, wide, name in _INVARIANT)


def _reading(found: Comparison) -> str:
    return " ".join([*_places(found), _orders(found)])


def _places(found: Comparison) -> list[str]:
    """What makes the networks unequal before their curvature is looked at."""
    losses = {name: a.estimates["loss"].value for name, a in found.audits.items() if "loss" in a.estimates}
    said = []
    if losses and not max(losses.values()) <= 2 * min(losses.values()):
        listed = ", ".join(f"{name} {value:.3g}" for name, value in losses.items())
        said.append(f"The losses differ ({listed}), and curvature changes with the loss: compare at equal loss.")
    moving = [name for name, audit in found.audits.items() if state(audit) not in ("minimum", "unknown")]
    if moving:
        said.append(f"Not at a minimum: {', '.join(moving)}.")
    return said


def _orders(found: Comparison) -> str:
    decided = [order for order in found.orders if order.separated]
    if not decided:
        return "No measure tells these networks apart: all their intervals overlap. Ask for a higher accuracy."
    raw = [order for order in decided if not order.invariant]
    invariant = [order for order in decided if order.invariant]
    said = []
    first = {order.order[0] for order in raw}
    if raw:
        if len(first) == 1:
            said.append(f"{raw[0].order[0]} is the flattest by {_listed(raw)}.")
        else:
            said += [
                f"{name} is the flattest by {_listed([o for o in raw if o.order[0] == name])}."
                for name in sorted(first)
            ]
    if not [order for order in found.orders if order.invariant]:
        said.append(
            "No measure that rescaling cannot change is known for all of them: the order may be one of scale only."
        )
    elif not invariant:
        said.append("By the measures that rescaling cannot change, they cannot be told apart.")
    elif raw and {order.order for order in invariant} == {order.order for order in raw}:
        said.append(f"The order survives rescaling: {_listed(invariant)} agree.")
    else:
        said += [f"By {order.label}, which rescaling cannot change, it is {order.order[0]}." for order in invariant]
        if raw and {order.order for order in raw} != {order.order for order in invariant}:
            said.append("The order does not survive rescaling: the raw order is one of scale, not of the functions.")
    if undecided := [order for order in found.orders if not order.separated]:
        said.append(f"Not decided, since intervals overlap: {_listed(undecided)}.")
    if (weak := [order for order in decided if not order.on_other_data]) and len(weak) < len(found.orders):
        said.append(
            f"On other examples the order could change, or the error of the sample is not known: {_listed(weak)}."
        )
    said.append("Flatter does not mean better on new data: compare the losses on data that was not trained on.")
    return " ".join(said)


def _listed(orders: Sequence[Order]) -> str:
    return ", ".join(order.label for order in orders)
