"""Curvature as products with vectors: each kind is called with (problem, w) and gives an `Operator`."""

from steppe.measures.operators.curvature import MEMORY as MEMORY
from steppe.measures.operators.curvature import Curvature as Curvature
from steppe.measures.operators.empirical_fisher import empirical_fisher as empirical_fisher
from steppe.measures.operators.fisher import fisher as fisher
from steppe.measures.operators.gauss_newton import gauss_newton as gauss_newton
from steppe.measures.operators.gram import gram as gram
from steppe.measures.operators.gram import smaller as smaller
from steppe.measures.operators.hessian import hessian as hessian
from steppe.measures.operators.operator import Operator as Operator
from steppe.measures.operators.residual import residual as residual
from steppe.measures.operators.statistics import FULL_BATCH as FULL_BATCH
from steppe.measures.operators.statistics import Frozen as Frozen
from steppe.measures.operators.statistics import FullBatch as FullBatch
from steppe.measures.operators.statistics import PerChunk as PerChunk
from steppe.measures.operators.statistics import Statistics as Statistics
