"""steppe: a laboratory for sharpness, stability and generalisation of neural networks.

Everything is imported when first used, so that `import steppe` and the command line start at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Problem": "steppe.problem",
    "Accuracy": "steppe.estimate",
    "Estimate": "steppe.estimate",
    "audit": "steppe.auditing",
    "critical_rate": "steppe.rates",
    "flatten": "steppe.flattening",
    "run": "steppe.dynamics",
    "Store": "steppe.store",
}
_MODULES = (
    "activations",
    "auditing",
    "curvature",
    "data",
    "dynamics",
    "flattening",
    "linalg",
    "losses",
    "measures",
    "networks",
    "rates",
    "until",
    "when",
)

# These need an extra; import * leaves them out.
_EXTRAS = ("torch",)

__all__ = ["__version__", *_HOMES, *_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from steppe import activations as activations
    from steppe import auditing as auditing
    from steppe import curvature as curvature
    from steppe import data as data
    from steppe import dynamics as dynamics
    from steppe import flattening as flattening
    from steppe import linalg as linalg
    from steppe import losses as losses
    from steppe import measures as measures
    from steppe import networks as networks
    from steppe import rates as rates
    from steppe import torch as torch
    from steppe import until as until
    from steppe import when as when
    from steppe.auditing import audit as audit
    from steppe.dynamics import run as run
    from steppe.estimate import Accuracy as Accuracy
    from steppe.estimate import Estimate as Estimate
    from steppe.flattening import flatten as flatten
    from steppe.problem import Problem as Problem
    from steppe.rates import critical_rate as critical_rate
    from steppe.store import Store as Store


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES + _EXTRAS:
        return importlib.import_module(f"steppe.{name}")
    raise AttributeError(f"module 'steppe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_EXTRAS])
