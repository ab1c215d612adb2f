"""Conflicting biases at the edge of stability: the learning rate decides between small norm and small sharpness."""

# The order of these imports is the order of figures and claims: section 2, section 3 with its appendices, and beyond.
from steppe.papers.conflicting_biases import figures_of_networks as figures_of_networks  # isort: skip
from steppe.papers.conflicting_biases import claims_section_2 as claims_section_2  # isort: skip
from steppe.papers.conflicting_biases import claims_appendix_h as claims_appendix_h  # isort: skip
from steppe.papers.conflicting_biases import parameterisations as parameterisations  # isort: skip
from steppe.papers.conflicting_biases import lemmas_c_and_d as lemmas_c_and_d  # isort: skip
from steppe.papers.conflicting_biases import figures_4_15_16 as figures_4_15_16  # isort: skip
from steppe.papers.conflicting_biases import generic_draws as generic_draws  # isort: skip
from steppe.papers.conflicting_biases import theorems_b as theorems_b  # isort: skip
from steppe.papers.conflicting_biases import lemma_e1 as lemma_e1  # isort: skip
from steppe.papers.conflicting_biases import proposition_e2 as proposition_e2  # isort: skip
from steppe.papers.conflicting_biases import appendix_f as appendix_f  # isort: skip
from steppe.papers.conflicting_biases import beyond_algorithms as beyond_algorithms  # isort: skip
from steppe.papers.conflicting_biases import beyond_models as beyond_models  # isort: skip
from steppe.papers.conflicting_biases.paper import PAPER as PAPER  # isort: skip
