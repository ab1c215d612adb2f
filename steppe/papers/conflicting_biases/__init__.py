"""Conflicting biases at the edge of stability: norm against sharpness, decided by the learning rate."""

from steppe.experiments._paper import Paper
from steppe.papers.conflicting_biases import (
    diagonal_beyond,
    diagonal_figures,
    dynamics_claims,
    geometry_claims,
    networks_claims,
    networks_figures,
    risk_claims,
    theory_figures,
    two_points_claims,
)

PAPER = Paper(
    id="conflicting-biases",
    title="Conflicting biases at the edge of stability: norm versus sharpness regularization",
    figures=(*diagonal_figures.FIGURES, *theory_figures.FIGURES, *diagonal_beyond.FIGURES, *networks_figures.FIGURES),
    claims=(
        *geometry_claims.CLAIMS,
        *risk_claims.CLAIMS,
        *two_points_claims.CLAIMS,
        *dynamics_claims.CLAIMS,
        *networks_claims.CLAIMS,
    ),
)
