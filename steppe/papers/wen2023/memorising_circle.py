"""Figure 3: a memorising net of theorem 4.1 on points of the unit circle, as a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure

_POINTS, _GRID = 7, 181


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    """The net's output on a grid of the plane, its training points and the line along which each neuron begins."""
    import numpy as np

    from steppe.flattening import _memorising as memorising
    from steppe.papers.wen2023.theory import bounds

    angles = 2 * np.pi * np.arange(_POINTS) / _POINTS + 0.35
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    y = np.where(np.arange(_POINTS) % 2 == 0, 1.0, -1.0)
    params = memorising.two_layer(x, y)
    side = np.linspace(-1.35, 1.35, _GRID)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    hidden = np.maximum(plane @ params["W1"].T + params["b1"][None], 0)
    return {
        "title": "Fig. 3 · a memorising net: one neuron for each point",
        "side": side.tolist(),
        "output": np.round(hidden @ params["W2"], 6).reshape(_GRID, _GRID).tolist(),
        "x": x.tolist(),
        "y": y.tolist(),
        "W1": params["W1"].tolist(),
        "b1": params["b1"].tolist(),
        "bound": bounds.two_layer_bias(x, y),
    }


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import memorising

    return memorising(numbers)


FIGURE = Figure(
    id="fig3",
    title="a memorising net on the circle",
    specs={"smoke": (), "paper": ()},
    numbers=numbers,
    draw=draw,
    seconds={"smoke": 1, "paper": 1},
)
