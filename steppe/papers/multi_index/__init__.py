"""Flatness and generalisation: learning multi-index models with homogeneous networks."""

# Figures and claims come in the order of these imports.
# isort: off
from steppe.papers.multi_index.setting import PAPER as PAPER
from steppe.papers.multi_index import figures_2_to_4 as figures_2_to_4
from steppe.papers.multi_index import every_interpolator as every_interpolator
from steppe.papers.multi_index import scaling_laws as scaling_laws
from steppe.papers.multi_index import theorem_3 as theorem_3
from steppe.papers.multi_index import search as search
from steppe.papers.multi_index import lemmas as lemmas
from steppe.papers.multi_index import inner_biases as inner_biases
from steppe.papers.multi_index import beyond as beyond
# isort: on
