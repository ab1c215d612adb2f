"""Small factorisations, and the work between products, on one thread of BLAS."""

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

# Several threads do not help below this number of rows.
_FEW_ROWS = 512


def one_thread(rows: int = 0) -> AbstractContextManager[Any]:
    """A context in which numpy and scipy use one thread, unless matrices of more than 512 `rows` are factorised.

    Threads that share a matrix of some hundred rows wait for one another at every column: if other processes use the
    same cores, a Cholesky factorisation of 128 rows was measured to take a hundred times as long. And threads that
    wait for more work take the cores from a product of JAX, which has threads of its own: 77 ms instead of 51.

    >>> import numpy as np
    >>> with one_thread():
    ...     np.linalg.eigvalsh(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    if rows > _FEW_ROWS:
        return nullcontext()
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@functools.cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  scipy has a BLAS of its own, which the controller sees only once it is loaded

    return ThreadpoolController()
