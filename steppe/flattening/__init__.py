"""The flattest of all rescalings of the user's own network: which neurons can be rescaled, and how far."""

from steppe.measures.flattening import Flattened as Flattened
from steppe.measures.flattening import Neurons as Neurons
from steppe.measures.flattening import flatten as flatten
from steppe.measures.flattening import rescaled as rescaled
