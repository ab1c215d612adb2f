"""Sequence reversal of conflicting-biases: symbols in, the same symbols out from the last to the first."""

from typing import Any

import numpy as np

from steppe import check
from steppe.problems.data.dataset import Dataset


def reversal(
    n: int = 1_000,
    *,
    test: int = 1_000,
    length: int = 10,
    symbols: int = 9,
    key: int | np.random.Generator = 0,
) -> Dataset:
    """x = {"source", "shifted"}, sequences of symbols 1 … `symbols` and what the decoder sees of their reversal.

    Symbols are uniform. Teacher forcing: `shifted` is the reversed sequence with 0, the start, in front and without its
    last symbol. y is the reversed sequence as class numbers, from 0.

    >>> data = reversal(1, length=4, key=0)
    >>> data.x["source"].tolist(), data.x["shifted"].tolist(), data.y.tolist()
    ([[8, 6, 5, 3]], [[0, 3, 5, 6]], [[2, 4, 5, 7]])
    """
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=1)
    length, symbols = check.integer("length", length, minimum=1), check.integer("symbols", symbols, minimum=1)
    source = np.random.default_rng(key).integers(1, symbols + 1, (n + test, length), dtype=np.int32)
    target = source[:, ::-1]
    shifted = np.concatenate([np.zeros((n + test, 1), np.int32), target[:, :-1]], axis=1)

    def rows(part: slice) -> dict[str, Any]:
        return {"source": source[part], "shifted": shifted[part]}

    train, held_out = slice(0, n), slice(n, None)
    y = target - 1
    return Dataset(f"reversal-{n}", rows(train), y[train], rows(held_out), y[held_out], classes=symbols)
