"""A sweep as a TOML file: data, of which nothing is executed. Errors name the file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steppe import check
from steppe.sweep._axes import Axes, axis, check_count, check_plain, linear, log

_LARGEST = 1 << 20
_KEYS = ("base", "scale", "run", "set", "axes", "zip", "where", "dynamics", "measures", "stop", "figure")
_RANGES = {"log": log, "linear": linear}


@dataclass(frozen=True)
class SweepFile:
    """What a file says. `base` is a figure of a paper, or MODULE:FUNCTION; the rest changes it."""

    base: str
    axes: Axes
    scale: str = "smoke"
    run: int | None = None
    set: Mapping[str, Any] = field(default_factory=dict)
    dynamics: str = "GD"
    measures: tuple[str, ...] = ()
    stop: Mapping[str, float] = field(default_factory=dict)
    figure: Mapping[str, str] = field(default_factory=dict)


def read_sweep(path: Path) -> SweepFile:
    """The sweep in a file. An ArgumentError names the file and what is wrong in it."""
    try:
        # A FIFO would block, and a device may have no end.
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise check.ArgumentError("it is not a file of at most a megabyte. Name the TOML file of a sweep.")
        return parse_sweep(path.read_bytes())
    except OSError as error:
        raise check.ArgumentError(f"{path}: {error.strerror}. Name the TOML file of a sweep.") from None
    except check.ArgumentError as error:
        raise check.ArgumentError(f"{path}: {error}") from None


def parse_sweep(text: bytes) -> SweepFile:
    """The sweep in the bytes of a file."""
    try:
        found = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise check.ArgumentError(f"it is not TOML: {error}. See docs/sweeps.md for an example.") from None
    for key in found:
        if key not in _KEYS:
            raise check.ArgumentError(f"{key!r} is not a key of a sweep. {check.suggest(key, _KEYS)}")
    base, dynamics, scale = (_text(found, key, default) for key, default in _TEXTS)
    if not base:
        check.refuse("base", "given", base, 'For example base = "wen2023/fig4b", or your own base = "mine:problem".')
    run = found.get("run")
    return SweepFile(
        base=base,
        axes=_axes(found),
        scale=scale,
        run=None if run is None else check.integer("run", run, minimum=0),
        set=_constants("set", found.get("set", {})),
        dynamics=dynamics,
        measures=_names("measures", found.get("measures", [])),
        stop=_constants("stop", found.get("stop", {})),
        figure=_constants("figure", found.get("figure", {})),
    )


_TEXTS = (("base", ""), ("dynamics", "GD"), ("scale", "smoke"))


def _text(found: Mapping[str, Any], key: str, default: str) -> str:
    value = found.get(key, default)
    if not isinstance(value, str):
        check.refuse(key, "a text", value, f'Write {key} = "…".')
    return value


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        check.refuse(key, "a list of names", value, f'For example {key} = ["sharpness", "trace"].')
    return tuple(value)


def _constants(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        check.refuse(key, "a table", value, f"Write it below the line [{key}].")
    for name, one in value.items():
        check_plain(f"{key}.{name}", one)
    return value


def _axes(found: Mapping[str, Any]) -> Axes:
    """The product of all axes and zips, in the order of the file, without the points that a condition excludes."""
    axes, zips = found.get("axes", {}), found.get("zip", [])
    if not isinstance(axes, dict):
        check.refuse("axes", "a table", axes, "Write it below the line [axes].")
    if not isinstance(zips, list) or not all(isinstance(one, dict) and one for one in zips):
        check.refuse("zip", "a list of tables", zips, "Write each below a line [[zip]].")
    product = Axes(({},))
    for columns in [*({name: values} for name, values in axes.items()), *zips]:
        product = product * axis(**{name: _values(name, values) for name, values in columns.items()})
    conditions = found.get("where", [])
    for condition in _names("where", [conditions] if isinstance(conditions, str) else conditions):
        product = product.where(condition)
    if not len(product):
        check.refuse("where", "true of a point at least", conditions, "Loosen the condition.")
    return product


def _values(name: str, values: Any) -> Any:
    """A list, or a range: { log = [first, last, count] }, { linear = … }, { seeds = count, first = 0 }."""
    if not isinstance(values, dict):
        return values
    match values:
        case {"seeds": count, **rest} if not rest.keys() - {"first"}:
            first = check.integer(f"{name}.first", rest.get("first", 0), minimum=0)
            check_count(count := check.integer(f"{name}.seeds", count, minimum=1))
            return range(first, first + count)
        case {"log": [first, last, count]} | {"linear": [first, last, count]} if len(values) == 1:
            (kind,) = values
            return _RANGES[kind](first, last, count)
    remedy = f"Write {name} = {{ log = [0.01, 1.0, 9] }}, {{ linear = [0, 1, 5] }} or {{ seeds = 5 }}."
    return check.refuse(f"axis {name!r}", "a list or a range", values, remedy)
