"""Finished runs of mulayoff2021 read together: the parts of an experiment as one table, a row a step size."""

from collections.abc import Mapping, Sequence
from typing import Any


def merged(entries: Sequence[Any]) -> dict[str, Any]:
    """The columns of all parts, sorted by step size."""
    import numpy as np

    tables = [e.curves for e in entries]
    columns = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    order = np.argsort(columns["lr"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def function(params: Mapping[str, Any], k: int) -> Any:
    """The piecewise-linear function of the k-th run of an entry's parameters."""
    from steppe.papers.mulayoff2021.theory.function_space import piecewise_linear

    return piecewise_linear(network(params, k))


def network(params: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Its parameters, for a `OneHidden`."""
    return {"W1": params["W1"][k][:, None], "b1": params["b1"][k], "W2": params["W2"][k], "b2": params["b2"][k]}
