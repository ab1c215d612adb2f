"""Diagonal networks on one example, and two points under the logistic loss: conflicting-biases in closed form.

L(w) = ½(⟨x, w^L⟩ − y)², sharpness the largest eigenvalue of its Hessian. `printed` holds the paper's formulas where
they are wrong.
"""

from steppe.constructions.diagonal import algorithms as algorithms
from steppe.constructions.diagonal import cubic as cubic
from steppe.constructions.diagonal import extremes as extremes
from steppe.constructions.diagonal import folded as folded
from steppe.constructions.diagonal import printed as printed
from steppe.constructions.diagonal import sphere_errors as sphere_errors
from steppe.constructions.diagonal import two_factors as two_factors
from steppe.constructions.diagonal import two_points as two_points
from steppe.constructions.diagonal.expected import expected_risk as expected_risk
from steppe.constructions.diagonal.flow import excess_rate as excess_rate
from steppe.constructions.diagonal.flow import flow_end as flow_end
from steppe.constructions.diagonal.flow import flow_limit as flow_limit
from steppe.constructions.diagonal.flow import flow_path as flow_path
from steppe.constructions.diagonal.kkt import KKT as KKT
from steppe.constructions.diagonal.kkt import kkt_points as kkt_points
from steppe.constructions.diagonal.least_risk import least_risk as least_risk
from steppe.constructions.diagonal.lognormal import LogNormal as LogNormal
from steppe.constructions.diagonal.manifold import Manifold as Manifold
from steppe.constructions.diagonal.manifold import arc as arc
from steppe.constructions.diagonal.risk import Moments as Moments
from steppe.constructions.diagonal.risk import gaussian as gaussian
from steppe.constructions.diagonal.risk import risk as risk
