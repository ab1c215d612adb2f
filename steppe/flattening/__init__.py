"""The flattest member of a family: of all rescalings of a network, of all interpolators with given features."""

from steppe.flattening._flatten import Flattened as Flattened
from steppe.flattening._flatten import flatten as flatten
from steppe.flattening._least_sharpness import Flattest as Flattest
from steppe.flattening._least_sharpness import flattest as flattest
from steppe.flattening._neurons import Neurons as Neurons
from steppe.flattening._neurons import rescaled as rescaled
from steppe.flattening._rescaling import OUTSIDE as OUTSIDE
from steppe.flattening._rescaling import Floats as Floats
from steppe.flattening._rescaling import Rescaling as Rescaling
from steppe.flattening._rescaling import balance as balance
from steppe.flattening._rescaling import circulating as circulating
from steppe.flattening._rescaling import compressed as compressed
from steppe.flattening._rescaling import exponents as exponents
from steppe.flattening._rescaling import lower_bound as lower_bound
from steppe.flattening._rescaling import merged as merged
