"""Which runs a sweep has: axes, their products and zips, conditions on them. All of it is data.

axis(lr=log(0.01, 1, 9)) * axis(seed=range(5))                    45 points, a product
axis(width=[100, 200], steps=[1000, 2000])                        2 points: these two move together
(axis(lr=[0.1, 0.2]) * axis(rho=[0.0, 0.1])).where("lr * rho < 0.015")
"""

import ast
import itertools
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steppe import check

Point = Mapping[str, Any]

MOST_RUNS = 1_000_000
_LONGEST_CONDITION = 1_000


@dataclass(frozen=True)
class Axes:
    """Points, each a value for every name."""

    points: tuple[Point, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.points[0]) if self.points else ()

    def __mul__(self, other: "Axes") -> "Axes":
        """Every point of the one with every point of the other."""
        twice = sorted({*self.names} & {*other.names})
        if twice:
            raise check.ArgumentError(f"axes must have different names; {twice[0]!r} is in two of them. Drop one.")
        check_count(len(self.points) * len(other.points))
        return Axes(tuple({**a, **b} for a in self.points for b in other.points))

    def where(self, condition: str) -> "Axes":
        """The points at which the condition holds: comparisons of names, numbers and texts, with and, or, not.

        >>> axis(lr=[0.1, 0.2, 0.4]).where("0.1 < lr and lr < 0.3").points
        ({'lr': 0.2},)
        """
        holds = _condition(condition, self.names)
        return Axes(tuple(point for point in self.points if holds(point)))

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)


def axis(**columns: Iterable[Any]) -> Axes:
    """Values of one name; or of several names that move together, a zip.

    >>> axis(width=[10, 20], steps=[5, 7]).points
    ({'width': 10, 'steps': 5}, {'width': 20, 'steps': 7})
    """
    lists = {name: _values(name, values) for name, values in columns.items()}
    counts = {name: len(values) for name, values in lists.items()}
    if len(set(counts.values())) != 1:
        remedy = "Give every name as many values, or multiply two axes for all combinations."
        check.refuse("axis", "of names that have equally many values", counts, remedy)
    return Axes(tuple(dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)))


def log(first: float, last: float, count: int) -> list[float]:
    """Numbers from first to last in equal ratios, rounded to 12 digits, so that they are the same on every machine.

    >>> log(0.01, 1, 3)
    [0.01, 0.1, 1.0]
    """
    low, high = (check.number(name, v, above=0.0) for name, v in (("first", first), ("last", last)))
    steps = _steps(count)
    return [float(f"{math.exp((1 - t) * math.log(low) + t * math.log(high)):.12g}") for t in steps]


def linear(first: float, last: float, count: int) -> list[float]:
    """Numbers from first to last in equal steps, rounded to 12 digits.

    >>> linear(0, 1, 5)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    low, high = (check.number(name, v) for name, v in (("first", first), ("last", last)))
    return [float(f"{(1 - t) * low + t * high:.12g}") for t in _steps(count)]


def _steps(count: int) -> list[float]:
    count = check.integer("count", count, minimum=1)
    check_count(count)
    return [k / (count - 1) for k in range(count)] if count > 1 else [0.0]


def check_count(count: int) -> None:
    if count > MOST_RUNS:
        remedy = "Make the axes shorter, or several sweeps of it: they share the store."
        check.refuse("a sweep", f"of at most {MOST_RUNS:,} runs", f"{count:,}", remedy)


def _values(name: str, values: Iterable[Any]) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        check.refuse(f"axis {name!r}", "a list of values", values, f"For example {name} = [0.1, 0.2].")
    found = [v.item() if hasattr(v, "item") else v for v in itertools.islice(values, MOST_RUNS + 1)]
    if not found:
        check.refuse(f"axis {name!r}", "a list with a value", values, "Give a value, or leave the axis out.")
    check_count(len(found))
    seen = set[str]()
    for value in found:
        check_plain(f"axis {name!r}", value)
        if (text := json.dumps(value)) in seen:  # as JSON, which names the run, 1 and 1.0 differ
            check.refuse(f"axis {name!r}", "of different values", value, "Name each value once.")
        seen.add(text)
    return found


def check_plain(argument: str, value: Any) -> None:
    """Refuse what does not describe a run: everything but finite numbers, texts, truth values and lists of them."""
    if isinstance(value, list | tuple):
        for part in value:
            check_plain(argument, part)
    elif isinstance(value, float) and not math.isfinite(value):
        check.refuse(argument, "finite", value, "Runs are named by their numbers; use a large finite one.")
    elif not isinstance(value, bool | int | float | str):
        check.refuse(argument, "made of numbers, texts, truth values or lists", value, "Write the value out.")


_OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Not: operator.not_, ast.USub: operator.neg,
}  # fmt: skip


def _condition(text: str, names: Iterable[str]) -> Callable[[Point], bool]:
    """A condition as a function of a point. It is not run as Python: only its comparisons and sums are carried out."""
    known = list(names)
    if not isinstance(text, str) or len(text) > _LONGEST_CONDITION:
        check.refuse("where", f"a text of at most {_LONGEST_CONDITION} letters", text, 'For example "lr * rho < 0.01".')
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in known:
                raise check.ArgumentError(
                    f"where: no axis is called {node.id!r} in {text!r}. {check.suggest(node.id, known)}"
                )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        check.refuse("where", "a comparison", text, 'For example "lr * rho < 0.01 and seed != 3".')

    def holds(point: Point) -> bool:
        try:
            return bool(_evaluated(tree, point))
        except (TypeError, ArithmeticError, RecursionError) as error:
            raise check.ArgumentError(f"where: {text!r} cannot be decided at {dict(point)}: {error}.") from None

    return holds


def _evaluated(node: ast.expr, point: Point) -> Any:
    match node:
        case ast.Name(id=name):
            return point[name]
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_evaluated(value, point) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_evaluated(value, point) for value in values)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluated(operand, point))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_number(left, point), _number(right, point))
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _OPERATORS for op in ops):
            values = [_evaluated(part, point) for part in (left, *rest)]
            return all(_OPERATORS[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))
    raise TypeError(f"{ast.unparse(node)} is not a comparison, a sum or a product")


def _number(node: ast.expr, point: Point) -> float:
    """Sums and products are of numbers only: a text times a number could be of any length."""
    value = _evaluated(node, point)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
