"""A figure from its runs: numbers, picture, files."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steppe.check import ArgumentError, suggest
from steppe.experiments import _paper as catalogue
from steppe.experiments._paper import Figure, Paper, Scale
from steppe.store import Store


def write(
    paper: Paper,
    figure: Figure,
    scale: Scale,
    entries: Sequence[Any],
    out: Path,
    *,
    suffix: str = "",
    pdf: bool = True,
) -> list[Path]:
    """out/<paper>/<figure>-<scale>.png, .pdf and .json."""
    from steppe import figures

    numbers = figure.numbers(entries)
    return figures.save(figure.draw(numbers), numbers, out / paper.id / f"{figure.id}-{scale}{suffix}", pdf=pdf)


@dataclasses.dataclass(frozen=True)
class Drawing:
    """The PNG of a figure that goes by its name, from runs in the store; None where one is missing or not offered."""

    scale: Scale
    store: Store
    out: Path

    def __call__(self, name: tuple[str, str]) -> Path | None:
        paper = catalogue.paper(name[0])
        figure = paper.figure(name[1])
        if self.scale not in figure.specs:
            return None
        entries = [self.store.get(spec) for spec in figure.specs[self.scale]]
        return None if None in entries else write(paper, figure, self.scale, entries, self.out, pdf=False)[0]


def override(spec: Any, changes: Sequence[str]) -> Any:
    """The spec with KEY=VALUE changes; a key of its stages changes every stage."""
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise ArgumentError(f"--set must be KEY=VALUE; got {change!r}. For example --set width=200.")
        spec = _changed(spec, key, text)
    return spec


def _changed(spec: Any, key: str, text: str) -> Any:
    fields = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    if key in fields and not _is_table(fields[key]):
        return dataclasses.replace(spec, **{key: _parsed(key, text, fields[key])})
    tables = {name: rows for name, rows in fields.items() if _is_table(rows)}
    for name, rows in tables.items():
        if key in (f.name for f in dataclasses.fields(rows[0])):
            changed = tuple(dataclasses.replace(r, **{key: _parsed(key, text, getattr(r, key))}) for r in rows)
            return dataclasses.replace(spec, **{name: changed})
    known = [n for n in fields if n not in tables] + [
        f.name for rows in tables.values() for f in dataclasses.fields(rows[0])
    ]
    raise ArgumentError(f"--set: this figure's runs have no parameter {key!r}. " + suggest(key, known))


def _is_table(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and dataclasses.is_dataclass(value[0])


def _parsed(key: str, text: str, before: Any) -> Any:
    """`text` in the type of the value it replaces."""
    try:
        if isinstance(before, str):
            return text
        value = json.loads(text)
        if isinstance(before, bool) != isinstance(value, bool):
            raise ValueError(text)
        if isinstance(before, int) and not isinstance(before, bool):
            if int(value) != value:
                raise ValueError(text)
            return int(value)
        return type(before)(value)
    except (ValueError, TypeError):
        kind = type(before).__name__
        raise ArgumentError(f"--set {key}: {text!r} is not of type {kind}. Now it is {before!r}.") from None
