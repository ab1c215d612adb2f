"""Flatness and generalisation: learning multi-index models with homogeneous networks."""

from steppe.experiments._paper import Paper
from steppe.papers.multi_index import law_claims, laws, section_6, section_6_claims, theory_claims

PAPER = Paper(
    id="multi-index",
    title="Flatness and generalization: learning multi-index models with homogeneous neural networks",
    figures=(*section_6.FIGURES, *laws.FIGURES),
    claims=(*section_6_claims.CLAIMS, *law_claims.CLAIMS, *theory_claims.CLAIMS),
)
