"""WHAT is read off: every measure takes (problem, w) and returns an `Estimate`."""

from steppe.measures import operators as operators
from steppe.measures.adaptive import adaptive_sharpness as adaptive_sharpness
from steppe.measures.density import density as density
from steppe.measures.distance import distance as distance
from steppe.measures.fisher import fisher_sharpness as fisher_sharpness
from steppe.measures.fisher import fisher_trace as fisher_trace
from steppe.measures.generalisation import accuracy as accuracy
from steppe.measures.generalisation import loss as loss
from steppe.measures.generalisation import zero_one_error as zero_one_error
from steppe.measures.kinks import KinkedLayer as KinkedLayer
from steppe.measures.kinks import Kinks as Kinks
from steppe.measures.kinks import kinks as kinks
from steppe.measures.margin import margin as margin
from steppe.measures.measured import Measured as Measured
from steppe.measures.norms import layer_norms as layer_norms
from steppe.measures.norms import norm as norm
from steppe.measures.operators import Frozen as Frozen
from steppe.measures.operators import FullBatch as FullBatch
from steppe.measures.operators import PerChunk as PerChunk
from steppe.measures.random_direction import random_direction_sharpness as random_direction_sharpness
from steppe.measures.sharpness import KinkWarning as KinkWarning
from steppe.measures.sharpness import sharpness as sharpness
from steppe.measures.spectral_norm import spectral_norm as spectral_norm
from steppe.measures.top_eigenvalues import top_eigenvalues as top_eigenvalues
from steppe.measures.trace import trace as trace
from steppe.measures.tracker import Tracker as Tracker
