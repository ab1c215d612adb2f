"""Measures: each reads a number off a problem at parameters w, `NAME(problem, w=problem.w0, *, ...)`, as an `Estimate`.

`top_eigenvalues` and `layer_norms` return several estimates; `density` and `kinks` return objects of their own.
"""

from steppe._guard import exported as _exported
from steppe.curvature._kinks import KinkedLayer as KinkedLayer
from steppe.curvature._kinks import Kinks as Kinks
from steppe.curvature._kinks import kinks as kinks
from steppe.curvature._statistics import Frozen as Frozen
from steppe.curvature._statistics import FullBatch as FullBatch
from steppe.curvature._statistics import PerChunk as PerChunk
from steppe.measures._critical_step import critical_sharpness as critical_sharpness
from steppe.measures._density import density as density
from steppe.measures._edge import edge_ratio as edge_ratio
from steppe.measures._fisher import fisher_sharpness as fisher_sharpness
from steppe.measures._fisher import fisher_trace as fisher_trace
from steppe.measures._function import accuracy as accuracy
from steppe.measures._function import distance as distance
from steppe.measures._function import layer_norms as layer_norms
from steppe.measures._function import loss as loss
from steppe.measures._function import margin as margin
from steppe.measures._function import norm as norm
from steppe.measures._function import zero_one_error as zero_one_error
from steppe.measures._invariant import invariant_sharpness as invariant_sharpness
from steppe.measures._invariant import invariant_trace as invariant_trace
from steppe.measures._perturbed import adaptive_sharpness as adaptive_sharpness
from steppe.measures._perturbed import random_direction_sharpness as random_direction_sharpness
from steppe.measures._perturbed import worst_adaptive_sharpness as worst_adaptive_sharpness
from steppe.measures._policy import Measured as Measured
from steppe.measures._sharpness import KinkWarning as KinkWarning
from steppe.measures._sharpness import Tracker as Tracker
from steppe.measures._sharpness import sharpness as sharpness
from steppe.measures._sharpness import spectral_norm as spectral_norm
from steppe.measures._sharpness import top_eigenvalues as top_eigenvalues
from steppe.measures._trace import trace as trace

__dir__ = _exported(__name__)
