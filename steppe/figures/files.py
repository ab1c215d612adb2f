"""A figure on disk: PNG to look at, PDF to paste into a paper, JSON of the numbers drawn."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steppe.figures.style import styled


@styled
def save(figure: Any, numbers: Mapping[str, Any], stem: Path, *, pdf: bool = True) -> list[Path]:
    """Write stem.png, stem.pdf and stem.json; the same numbers give the same bytes."""
    text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, vector, data = (stem.with_name(stem.name + ending) for ending in (".png", ".pdf", ".json"))
    # The layout is most of the work: it is found once, not again for each format.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(png, metadata={"Software": None})
    data.write_text(text, encoding="utf-8")
    if not pdf:
        return [png, data]
    figure.savefig(vector, metadata={"CreationDate": None, "ModDate": None})
    return [png, vector, data]
