"""The paper; the other files of this folder declare its figures and claims, `__init__.py` lists them in order."""

from steppe.experiments import Paper

PAPER = Paper(
    "conflicting-biases",
    "Conflicting biases at the edge of stability: norm versus sharpness regularization",
    module="steppe.papers.conflicting_biases",
)
