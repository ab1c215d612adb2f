"""Wen, Li and Ma 2023: when the flattest minimisers generalise, and when they memorise.

Figures and claims are declared by the modules below, in this order; `_paper` has what declares them.
"""

from steppe.papers.wen2023._paper import PAPER as PAPER

# isort: off
from steppe.papers.wen2023 import figures_1_to_6 as figures_1_to_6
from steppe.papers.wen2023 import figures_7_to_11 as figures_7_to_11
from steppe.papers.wen2023 import table_1 as table_1
from steppe.papers.wen2023 import beyond as beyond
from steppe.papers.wen2023 import start_scale as start_scale
from steppe.papers.wen2023 import minimisers as minimisers
from steppe.papers.wen2023 import escape as escape
from steppe.papers.wen2023 import section_6 as section_6
from steppe.papers.wen2023 import section_3 as section_3
from steppe.papers.wen2023 import sections_4_and_5 as sections_4_and_5
from steppe.papers.wen2023 import lemmas as lemmas
from steppe.papers.wen2023 import misprints as misprints
# isort: on
