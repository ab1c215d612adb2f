"""The theory of the diagonal model: numpy and scipy only."""

from steppe.papers.conflicting_biases.theory import flow as algorithms
from steppe.papers.conflicting_biases.theory import flow as folded
from steppe.papers.conflicting_biases.theory import kkt as cubic
from steppe.papers.conflicting_biases.theory import kkt as two_factors
from steppe.papers.conflicting_biases.theory import manifold as extremes
from steppe.papers.conflicting_biases.theory import printed as printed
from steppe.papers.conflicting_biases.theory import two_points as sphere_errors
from steppe.papers.conflicting_biases.theory import two_points as two_points
from steppe.papers.conflicting_biases.theory.flow import excess_rate as excess_rate
from steppe.papers.conflicting_biases.theory.flow import flow_end as flow_end
from steppe.papers.conflicting_biases.theory.flow import flow_limit as flow_limit
from steppe.papers.conflicting_biases.theory.flow import flow_path as flow_path
from steppe.papers.conflicting_biases.theory.kkt import KKT as KKT
from steppe.papers.conflicting_biases.theory.kkt import kkt_points as kkt_points
from steppe.papers.conflicting_biases.theory.manifold import Manifold as Manifold
from steppe.papers.conflicting_biases.theory.manifold import arc as arc
from steppe.papers.conflicting_biases.theory.manifold import least_risk as least_risk
from steppe.papers.conflicting_biases.theory.risk import LogNormal as LogNormal
from steppe.papers.conflicting_biases.theory.risk import Moments as Moments
from steppe.papers.conflicting_biases.theory.risk import expected_risk as expected_risk
from steppe.papers.conflicting_biases.theory.risk import gaussian as gaussian
from steppe.papers.conflicting_biases.theory.risk import risk as risk
