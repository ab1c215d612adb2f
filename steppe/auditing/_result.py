"""What an audit found: rows with their errors, blocks of parameters, checks; as text, columns, JSON and HTML."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steppe._result import Result, Table, picture
from steppe.estimate import Estimate

# What the interval of a row comes from.
Origin = Literal["exact", "solver", "probes", "search"]
Verdict = Literal["holds", "fails", "not-run"]


@dataclass(frozen=True)
class Row:
    """One number of an audit, or the reason why there is none.

    `estimate` has the error of the computation: of a `solver` (Lanczos; its confidence is that of a random start), of
    random `probes`, of a `search` by forward passes, or none but rounding (`exact`). `data` is the error of the sample
    of examples: ± so much at the same confidence, as if other examples were drawn at the same parameters; None if it is
    not known. `note` says what the number means here, or why there is none.
    """

    name: str
    label: str
    estimate: Estimate | None
    origin: Origin = "exact"
    data: float | None = None
    unit: str = "products"
    seconds: float = 0.0
    note: str = ""

    @property
    def error(self) -> float:
        """Half the width of the interval of the computation."""
        return math.nan if self.estimate is None else 0.5 * (self.estimate.upper - self.estimate.lower)


@dataclass(frozen=True)
class Block:
    """One array of parameters, or a module of several: the diagonal block of the Hessian that belongs to it.

    `trace` and `sharpness` are None if they were not measured; the audit says why in its row "blocks".
    """

    name: str
    arrays: int
    size: int
    norm: float
    trace: Estimate | None
    sharpness: Estimate | None


@dataclass(frozen=True)
class Check:
    """A statement that holds or fails, with what was seen."""

    name: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """The numbers of one network at one w, with intervals, costs and a reading; `print(audit)` shows one screen.

    `rows` are all numbers in the order of the screen; `estimates` are those that were measured, by name, and `missing`
    the reasons for the others. `curves` holds what the figures show, as plain numbers.
    """

    title: str
    parameters: int
    examples: int
    rows: tuple[Row, ...]
    blocks: tuple[Block, ...]
    checks: tuple[Check, ...]
    seconds: float
    optimizer: str = ""
    curves: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        return {row.name: row.estimate for row in self.rows if row.estimate is not None}

    @cached_property
    def missing(self) -> Mapping[str, str]:
        return {row.name: row.note for row in self.rows if row.estimate is None}

    @cached_property
    def errors(self) -> Mapping[str, Mapping[str, float | None]]:
        """The three errors of each estimate, as half widths: of the solver, of random probes, of the data sample."""
        return {
            row.name: {
                "solver": row.error if row.origin in ("solver", "search") else 0.0,
                "probes": row.error if row.origin == "probes" else 0.0,
                "data": row.data,
            }
            for row in self.rows
            if row.estimate is not None
        }

    @cached_property
    def reading(self) -> str:
        """What follows from the numbers and what does not, in one paragraph."""
        from steppe.auditing._reading import reading

        return reading(self)

    @property
    def trusted(self) -> bool:
        """Whether the loss is finite and the products with the Hessian passed their checks."""
        return not any(c.verdict == "fails" and c.name.startswith(("products", "the loss")) for c in self.checks)

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def table(self) -> Table:
        """The rows as columns."""
        known = [row for row in self.rows if row.estimate is not None]
        estimates = [row.estimate for row in known if row.estimate is not None]
        data = [math.nan if row.data is None else row.data for row in known]
        columns: dict[str, list[Any]] = {
            "name": [row.name for row in known],
            "value": [e.value for e in estimates],
            "lower": [e.lower for e in estimates],
            "upper": [e.upper for e in estimates],
            "confidence": [e.confidence for e in estimates],
            "error_of": [row.origin for row in known],
            "data_error": data,
            "cost": [e.matvecs for e in estimates],
            "unit": [row.unit for row in known],
            "seconds": [row.seconds for row in known],
            "note": [row.note for row in known],
        }
        return {name: np.asarray(column) for name, column in columns.items()}

    def draw(self) -> Any:
        """The spectrum, the loss along −∇L, and measured against predicted rises of the loss."""
        from steppe.auditing._page import panels

        return picture(self.title, panels(self))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, with NaN and infinity as None: JSON has neither."""
        return plain(
            {
                "title": self.title,
                "parameters": self.parameters,
                "examples": self.examples,
                "optimizer": self.optimizer,
                "estimates": {name: numbers(e) for name, e in self.estimates.items()},
                "errors": self.errors,
                "missing": self.missing,
                "blocks": [
                    asdict(b) | {"trace": numbers(b.trace), "sharpness": numbers(b.sharpness)} for b in self.blocks
                ],
                "checks": [asdict(check) for check in self.checks],
                "reading": self.reading,
                "seconds": self.seconds,
            }
        )

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def to_html(self, path: str | Path) -> Path:
        """Writes one page with everything inside, for a browser without a network; returns its path."""
        from steppe.auditing._page import page

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page([self]), encoding="utf-8")
        return path

    def __str__(self) -> str:
        from steppe.auditing._page import screen

        return screen(self)


def numbers(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    names = ("value", "lower", "upper", "confidence", "matvecs")
    return {name: getattr(estimate, name) for name in names}


def plain(value: Any) -> Any:
    """Without numbers that JSON does not have.

    >>> plain({"a": [1.0, math.inf], "b": ("x", math.nan)})
    {'a': [1.0, None], 'b': ['x', None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
