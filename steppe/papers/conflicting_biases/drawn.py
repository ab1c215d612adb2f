"""How a figure of this paper is drawn: a function of steppe.figures, imported when it is called."""

from collections.abc import Callable, Mapping
from typing import Any


def drawn(name: str) -> Callable[[Mapping[str, Any]], Any]:
    def draw(numbers: Mapping[str, Any]) -> Any:
        from steppe import figures

        return getattr(figures, name)(numbers)

    return draw
