"""All figures of wen2023, in the paper's order, then what goes beyond it."""

from steppe.papers.wen2023 import beyond, memorising_circle, neurons, question2, scatter, table1
from steppe.papers.wen2023.panels import PANELS

_ORDER = {figure.id: figure for figure in (*PANELS, neurons.FIGURE, memorising_circle.FIGURE)}
_IDS = (
    "fig1a", "fig1b", "fig2a", "fig2a-printed", "fig2b", "fig3", "fig4a", "fig4b", "fig5a", "fig5b", "fig6a",
    "fig6b", "fig7a", "fig7b",
    "fig8a", "fig8b", "fig9a", "fig9b", "fig10a", "fig10b", "fig11a", "fig11b",
)  # fmt: skip

FIGURES = (
    *(_ORDER[id] for id in _IDS),
    table1.FIGURE,
    scatter.FIGURE,
    question2.FIGURE,
    beyond.SAMPLE_COMPLEXITY,
    beyond.BIAS_PENALTY,
    *beyond.NEXT_CHECKS,
)
