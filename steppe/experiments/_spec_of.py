"""A spec from its JSON in a store: the class of its kind, with its fields. Nothing is executed."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from steppe.check import ArgumentError, suggest
from steppe.experiments._experiment import Experiment
from steppe.store import address, address_of


def spec_of(stored: Mapping[str, Any]) -> Experiment:
    """The experiment with this canonical JSON. Its address must be that of the JSON: so no field was misread."""
    kinds = {kind.KIND: kind for kind in _subclasses(Experiment) if hasattr(kind, "KIND")}
    name = str(stored.get("kind"))
    if name not in kinds:
        raise ArgumentError(f"no experiment is of the kind {name!r}. {suggest(name, kinds)}")
    remedy = "Use the version of steppe that made the run."
    try:
        spec = _made(kinds[name], {field: value for field, value in stored.items() if field != "kind"})
        if address(spec) == address_of(stored):
            return typing.cast(Experiment, spec)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ArgumentError(f"{name} has other fields in this version: {error}. {remedy}") from None
    raise ArgumentError(f"{name} has other fields in this version. {remedy}")


def _subclasses(kind: Any) -> set[Any]:
    found: set[Any] = {kind}
    for below in kind.__subclasses__():
        found |= _subclasses(below)
    return found


def _made(kind: Any, value: Any) -> Any:
    """JSON as a value of a type: lists become tuples, objects dataclasses where the type says so."""
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        hints = typing.get_type_hints(kind, localns=_names())
        names = {field.name for field in dataclasses.fields(kind)}
        if names != set(value):
            raise ValueError(f"its fields are {', '.join(sorted(names))}")
        made: Any = kind
        return made(**{name: _made(hints.get(name, Any), part) for name, part in value.items()})
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        fitting = [option for option in options if option is not type(None)]
        return None if value is None else _made(fitting[0] if len(fitting) == 1 else Any, value)
    if origin is tuple and isinstance(value, list):
        each = [options[0]] * len(value) if options[1:] == (...,) else options
        return tuple(_made(one, part) for one, part in zip(each, value, strict=True))
    if isinstance(value, list):
        return tuple(_made(Any, part) for part in value)
    return value


def _names() -> dict[str, Any]:
    """Names that hints use for type checkers only."""
    from steppe.until import Stop

    return {"Stop": Stop}
