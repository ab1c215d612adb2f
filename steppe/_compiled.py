"""Compiled code is shared by all problems of one kind, and dropped after too many kinds.

JAX keeps a program for as long as the functions that it was compiled for, and its caches keep those functions. A sweep
that writes a new `predict` for every run uses no program again, and each takes megabytes.
"""

import sys
from collections.abc import Hashable
from typing import Any

# Kinds of problems between two clearings. Sharpness, trace and a run of a small network keep 15 MB together.
KINDS = 32
# JAX keeps 0.05 MB a kind in caches that it clears only together with those of the user's own functions.
ALL_KINDS = 32 * KINDS

# Rooms whose lru_cache functions hold facts about networks. Elsewhere a cache makes equal objects identical.
_FACTS = ("steppe.curvature", "steppe._same")

_kinds: set[int] = set()
_cleared = 0


def count_kind(kind: Hashable) -> None:
    """Count what the compiled code of a problem depends on; clear the caches if there are too many kinds."""
    if (number := hash(kind)) not in _kinds:
        if len(_kinds) >= KINDS:
            clear()
        _kinds.add(number)


def clear() -> None:
    """Drop the compiled programs of this package, and now and then all others too."""
    global _cleared  # noqa: PLW0603
    import equinox as eqx
    import jax

    _kinds.clear()
    _cleared += 1
    compiled: Any = type(jax.jit(abs))
    filtered: Any = type(eqx.filter_jit(abs))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "steppe":
            values: list[Any] = list(vars(module).values())
            for value in values:
                if isinstance(value, filtered):  # it keeps the function of jax.jit that it calls
                    value._cached.clear_cache()
                elif isinstance(value, compiled):
                    value.clear_cache()
                elif name.startswith(_FACTS) and hasattr(value, "cache_clear"):
                    value.cache_clear()
    if _cleared * KINDS % ALL_KINDS == 0:
        jax.clear_caches()  # type: ignore[no-untyped-call]
