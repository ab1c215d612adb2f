"""The flattest of all rescalings of the user's own network: which neurons can be rescaled, and how far."""

from steppe.measures.flattening.flatten import Flattened as Flattened
from steppe.measures.flattening.flatten import flatten as flatten
from steppe.measures.flattening.neurons import Neurons as Neurons
from steppe.measures.flattening.rescaled import rescaled as rescaled
