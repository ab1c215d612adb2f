"""Panels of scaling laws: as `panels`, with plain numbers on short logarithmic axes."""

from collections.abc import Mapping
from typing import Any

from steppe.figures.panels import panels
from steppe.figures.plain_ticks import plain_ticks
from steppe.figures.style import styled


@styled
def laws(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: as for `panels`."""
    figure = panels(numbers)
    for axis in figure.axes:
        plain_ticks(axis)
    return figure
