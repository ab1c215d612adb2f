"""Step size seen from function space (mulayoff2021): a ReLU net on a line as the function it is, and what bounds it."""

from steppe.constructions.function_space.chain import Chain as Chain
from steppe.constructions.function_space.chain import chain as chain
from steppe.constructions.function_space.chain import least_sharpness as least_sharpness
from steppe.constructions.function_space.chain import stability_bound as stability_bound
from steppe.constructions.function_space.chain import weighted_roughness as weighted_roughness
from steppe.constructions.function_space.piecewise import PiecewiseLinear as PiecewiseLinear
from steppe.constructions.function_space.piecewise import piecewise_linear as piecewise_linear
from steppe.constructions.function_space.weight import leftward as leftward
from steppe.constructions.function_space.weight import rightward as rightward
from steppe.constructions.function_space.weight import weight as weight
