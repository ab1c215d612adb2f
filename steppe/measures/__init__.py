"""WHAT is read off: every measure takes (problem, w) and returns an `Estimate`."""

from steppe.measures.generalisation import accuracy as accuracy
from steppe.measures.generalisation import loss as loss
from steppe.measures.generalisation import zero_one_error as zero_one_error
from steppe.measures.norms import layer_norms as layer_norms
from steppe.measures.norms import norm as norm
from steppe.measures.trace import trace as trace
