"""Figure 2b: the neurons of a trained 2-MLP-Sim-BN with the largest first-layer weights, and its column norms."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.wen2023.table2 import specs


def table(W1: Any) -> dict[str, Any]:
    """The four longest rows as (W₁[1], W₁[2], ‖W₁[3:d]‖), longest first, and the norms of the columns.

    >>> table([[3.0, -3.0, 0.0], [0.0, 0.0, 1.0], [2.0, 2.0, 0.0]])["rows"][0]
    [3.0, -3.0, 0.0]
    """
    import numpy as np

    W1 = np.asarray(W1, dtype=float)
    longest = np.argsort(-np.linalg.norm(W1, axis=1))[:4]
    rows = [[float(W1[j, 0]), float(W1[j, 1]), float(np.linalg.norm(W1[j, 2:]))] for j in longest]
    return {"rows": rows, "columns": np.linalg.norm(W1, axis=0).tolist()}


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    return {
        "title": "Fig. 2b · the four longest neurons, and what the inputs weigh",
        "runs": [
            {"seed": e.spec["seed"], "neurons": e.params["W1"][:, :2].tolist()} | table(e.params["W1"]) for e in entries
        ],
    }


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import neurons

    return neurons(numbers)


FIGURE = Figure(
    id="fig2b",
    title="the neurons of figure 2a",
    specs=specs("fig2a"),
    numbers=numbers,
    draw=draw,
    seconds={"smoke": 1, "paper": 1},
)
