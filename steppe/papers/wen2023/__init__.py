"""Wen, Li and Ma 2023: when the flattest minimisers generalise, and when they memorise."""

from steppe.experiments._paper import Paper
from steppe.papers.wen2023.claims import CLAIMS
from steppe.papers.wen2023.figures import FIGURES

PAPER = Paper(
    id="wen2023",
    title="Sharpness minimization algorithms do not only minimize sharpness to achieve better generalization",
    figures=FIGURES,
    claims=CLAIMS,
)
