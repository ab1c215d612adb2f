"""A figure from its runs: numbers, picture, files; and runs with one parameter changed."""

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.check import ArgumentError, suggest
from steppe.experiments._paper import Figure, Scale

if TYPE_CHECKING:
    from steppe.store import Store


def reproduce(
    figure: Figure,
    scale: Scale = "smoke",
    *,
    store: "Store | None" = None,
    out: Path | str = "figures",
    workers: int | None = None,
) -> list[Path]:
    """Run what a figure shows and draw it: the paths of its PNG, PDF and JSON."""
    from steppe.store import Store
    from steppe.sweep import execute

    if scale not in figure.runs:
        raise ArgumentError(f"{figure.name} is not offered at {scale} scale. It has {', '.join(figure.runs)}.")
    return write(figure, scale, execute(figure.runs[scale], store or Store(), workers=workers), Path(out))


def write(
    figure: Figure,
    scale: Scale,
    runs: Sequence[Any],
    out: Path,
    *,
    changes: Sequence[str] = (),
    pdf: bool = True,
) -> list[Path]:
    """Draw a figure from its finished runs: out/PAPER/FIGURE-SCALE.png, .pdf and .json.

    `changes` are those that `override` made to the runs: the title and the names of the files tell of them.
    """
    from steppe import figures

    numbers, stem = figure.show.numbers(runs), f"{figure.id}-{scale}"
    if changes:
        numbers = numbers | {"title": f"{numbers['title']} · changed: {', '.join(changes)}", "changed": list(changes)}
        stem += "-" + hashlib.sha256(" ".join(changes).encode()).hexdigest()[:6]
    folder = out / figure.paper
    folder.mkdir(parents=True, exist_ok=True)
    # Drawn in a folder of its own and then renamed: a full disk or a kill leaves no torn picture.
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as unfinished:
        drawn = figures.save(figure.show.draw(numbers), numbers, Path(unfinished) / stem, pdf=pdf)
        return [path.replace(folder / path.name) for path in drawn]


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
    tables = {name: rows for name, value in fields.items() if (rows := _rows(value))}
    if key in fields and key not in tables:
        return dataclasses.replace(spec, **{key: _parsed(key, text, fields[key])})
    for name, rows in tables.items():
        if key in (f.name for f in dataclasses.fields(rows[0])):
            changed = tuple(dataclasses.replace(r, **{key: _parsed(key, text, getattr(r, key))}) for r in rows)
            return dataclasses.replace(spec, **{name: changed if isinstance(fields[name], tuple) else changed[0]})
    known = [n for n in fields if n not in tables] + [
        f.name for rows in tables.values() for f in dataclasses.fields(rows[0])
    ]
    raise ArgumentError(f"--set: this figure's runs have no parameter {key!r}. " + suggest(key, known))


def _rows(value: Any) -> tuple[Any, ...]:
    """The dataclasses in a field of a spec: its stages, or its one setting."""
    rows = value if isinstance(value, tuple) else (value,)
    return rows if rows and dataclasses.is_dataclass(rows[0]) else ()


def _parsed(key: str, text: str, before: Any) -> Any:
    """`text` in the type of the value it replaces."""
    try:
        if isinstance(before, str):
            return text
        value = json.loads(text, parse_constant=_refused)
        if isinstance(before, bool) != isinstance(value, bool):
            raise ValueError(text)
        if isinstance(before, int) and not isinstance(before, bool):
            if int(value) != value:
                raise ValueError(text)
            return int(value)
        if before is None:
            return value
        parsed = type(before)(value)
        json.dumps(parsed, allow_nan=False)  # what is infinite, such as 1e999, has no address in the store
        return parsed
    except (ValueError, TypeError, OverflowError, RecursionError):
        kind = type(before).__name__
        raise ArgumentError(f"--set {key}: {text!r} is not of type {kind}. Now it is {before!r}.") from None


def _refused(name: str) -> Any:
    raise ValueError(name)
