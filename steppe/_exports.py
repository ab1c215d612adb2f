"""What `dir` of a public module shows: the names that a user calls, and nothing else."""

import sys
from collections.abc import Callable


def exported(module: str) -> Callable[[], list[str]]:
    """The `__dir__` of that module: its names without an underscore in front."""
    return lambda: sorted(name for name in vars(sys.modules[module]) if not name.startswith("_"))
