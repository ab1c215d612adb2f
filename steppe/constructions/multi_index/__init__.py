"""multi-index: the flattest interpolator of given inner weights, what it costs on all of the population, and the inner
weights that are bad, good or best."""

from steppe.constructions.multi_index.alternating import Descended as Descended
from steppe.constructions.multi_index.alternating import descend as descend
from steppe.constructions.multi_index.alternating import usefulness as usefulness
from steppe.constructions.multi_index.bad import alignment as alignment
from steppe.constructions.multi_index.bad import conditional_covariance as conditional_covariance
from steppe.constructions.multi_index.bad import conditions as conditions
from steppe.constructions.multi_index.inner_weights import correlated as correlated
from steppe.constructions.multi_index.inner_weights import tilted as tilted
from steppe.constructions.multi_index.inner_weights import within as within
from steppe.constructions.multi_index.interpolator import flattest_interpolator as flattest_interpolator
from steppe.constructions.multi_index.lower_bounds import from_least_norm as from_least_norm
from steppe.constructions.multi_index.lower_bounds import least_norm as least_norm
from steppe.constructions.multi_index.lower_bounds import pointwise as pointwise
from steppe.constructions.multi_index.moments import half_moment as half_moment
from steppe.constructions.multi_index.moments import product_mean as product_mean
from steppe.constructions.multi_index.moments import quadrant as quadrant
from steppe.constructions.multi_index.population import least_population_loss as least_population_loss
from steppe.constructions.multi_index.population import population_loss as population_loss
from steppe.constructions.multi_index.population import sampled_loss as sampled_loss
from steppe.constructions.multi_index.reduced import Interpolator as Interpolator
from steppe.constructions.multi_index.reduced import NoInterpolatorError as NoInterpolatorError
from steppe.constructions.multi_index.spoiled import spoiled as spoiled
from steppe.constructions.multi_index.teacher import Student as Student
from steppe.constructions.multi_index.teacher import copies as copies
from steppe.constructions.multi_index.teacher import patched as patched
from steppe.constructions.multi_index.weights import Features as Features
from steppe.constructions.multi_index.weights import features as features
