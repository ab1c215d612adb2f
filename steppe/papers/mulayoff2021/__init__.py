"""Mulayoff, Michaeli and Soudry 2021: what the step size does to the function that gradient descent ends at."""

from steppe.experiments._paper import Paper
from steppe.papers.mulayoff2021.claims import CLAIMS
from steppe.papers.mulayoff2021.figures import FIGURES

PAPER = Paper(
    id="mulayoff2021",
    title="The implicit bias of minima stability: a view from function space",
    figures=FIGURES,
    claims=CLAIMS,
)
