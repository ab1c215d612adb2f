"""The flattest of all rescalings of the user's own network: which neurons can be rescaled, and how far."""

from steppe.flattening.flatten import Flattened as Flattened
from steppe.flattening.flatten import flatten as flatten
from steppe.flattening.neurons import Neurons as Neurons
