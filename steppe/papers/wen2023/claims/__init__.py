"""The claims of wen2023: what its runs show, what its theorems say, and what is misprinted in it."""

from steppe.papers.wen2023.claims.beyond import BEYOND
from steppe.papers.wen2023.claims.misprints import MISPRINTS
from steppe.papers.wen2023.claims.runs import RUNS
from steppe.papers.wen2023.claims.technical import TECHNICAL
from steppe.papers.wen2023.claims.theorems import THEOREMS

CLAIMS = (*RUNS, *BEYOND, *THEOREMS, *TECHNICAL, *MISPRINTS)
