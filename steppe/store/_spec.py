"""A spec is a frozen dataclass that describes a run. The hash of its canonical JSON is the address of the run."""

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

_DIGITS = 20  # hex digits of an address
_ADDRESS = re.compile(f"[0-9a-f]{{{_DIGITS}}}")


class StoreError(RuntimeError):
    """The store cannot be read or written. The message names the file and the remedy."""


def canonical(spec: Any) -> dict[str, Any]:
    """The spec as plain JSON, with the name of its class as `kind`. Equal specs give equal JSON.

    >>> from dataclasses import make_dataclass
    >>> canonical(make_dataclass("Count", [("n", int)], frozen=True)(5))
    {'kind': 'Count', 'n': 5}
    """
    if not dataclasses.is_dataclass(spec) or isinstance(spec, type):
        raise StoreError(f"spec must be a frozen dataclass; got {spec!r}. Describe the run with a dataclass.")
    kind = getattr(type(spec), "KIND", type(spec).__qualname__)
    return {"kind": kind} | json.loads(dumps(dataclasses.asdict(spec)))


def address(spec: Any) -> str:
    """The folder name of a spec: the first 20 hex digits of the sha256 of its canonical JSON."""
    return address_of(canonical(spec))


def address_of(canonical: Mapping[str, Any]) -> str:
    """The address of a spec that is plain JSON already, as in a run's spec.json."""
    return hashlib.sha256(dumps(canonical).encode()).hexdigest()[:_DIGITS]


def is_address(name: str) -> bool:
    return _ADDRESS.fullmatch(name) is not None


def dumps(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The value with lists, strings and numbers of JSON. NaN and infinity, which JSON lacks, become null."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
