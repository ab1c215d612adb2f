"""Curvature as products with vectors: each kind is called with (problem, w) and gives an `Operator`."""

from steppe.curvature._matrices import empirical_fisher as empirical_fisher
from steppe.curvature._matrices import fisher as fisher
from steppe.curvature._matrices import gauss_newton as gauss_newton
from steppe.curvature._matrices import gram as gram
from steppe.curvature._matrices import hessian as hessian
from steppe.curvature._matrices import residual as residual
from steppe.curvature._matrices import smaller as smaller
from steppe.curvature._operator import MEMORY as MEMORY
from steppe.curvature._operator import Curvature as Curvature
from steppe.curvature._operator import Operator as Operator
from steppe.curvature._statistics import FULL_BATCH as FULL_BATCH
from steppe.curvature._statistics import Frozen as Frozen
from steppe.curvature._statistics import FullBatch as FullBatch
from steppe.curvature._statistics import PerChunk as PerChunk
from steppe.curvature._statistics import Statistics as Statistics
