"""A table as a picture."""

from collections.abc import Mapping
from typing import Any

from steppe.figures.style import INK, canvas, styled


@styled
def table(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title, head (column names) and rows of strings."""
    head, rows = numbers["head"], numbers["rows"]
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    figure, axes = canvas(1, 1, width=0.088 * sum(widths) + 0.6, height=0.42 * (len(rows) + 2))
    axis = axes[0, 0]
    axis.axis("off")
    shares = [w / sum(widths) for w in widths]
    drawn = axis.table(
        rows, colLabels=head, colWidths=shares, loc="center", edges="horizontal", cellLoc="left", colLoc="left"
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, 1.7)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_edgecolor(INK)
        cell.set_text_props(weight="bold" if row == 0 else "normal")
    axis.set_title(numbers["title"])
    return figure
