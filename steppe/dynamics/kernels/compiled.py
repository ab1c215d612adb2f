"""How kernels are compiled: without the interpreter's lock, kept on disk, every sum in the order written.

No fastmath: with it numba's code differs between a first run and one from its cache, and a resumed run would not be
the same run. What is to be fast is written in vectors (simd.py, sums.py) or without sums.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"error_model": "numpy"}

# A function called by compiled code only: not kept by itself, and without the way in from Python, which for a tuple of
# arrays is more code than the function.
part = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)

_SOURCES = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """A compiled function, kept on disk for as long as no file of this folder changes.

    Numba alone looks at the function's own file, and would go on with old code of the functions it calls.
    """
    compiled = numba.njit(nogil=True, cache=True, no_cfunc_wrapper=True, **OPTIONS)(function)
    compiled._cache._cache_file._version += _SOURCES
    return compiled
