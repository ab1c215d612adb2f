"""multi-index: the flattest interpolator of given inner weights, and what it costs on all of the population."""

from steppe.constructions.multi_index.interpolator import flattest_interpolator as flattest_interpolator
from steppe.constructions.multi_index.moments import product_mean as product_mean
from steppe.constructions.multi_index.moments import quadrant as quadrant
from steppe.constructions.multi_index.population import population_loss as population_loss
from steppe.constructions.multi_index.population import sampled_loss as sampled_loss
from steppe.constructions.multi_index.reduced import Interpolator as Interpolator
from steppe.constructions.multi_index.reduced import NoInterpolatorError as NoInterpolatorError
from steppe.constructions.multi_index.weights import Features as Features
from steppe.constructions.multi_index.weights import features as features
