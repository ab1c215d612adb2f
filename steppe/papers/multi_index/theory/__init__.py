"""The theory of multi-index, with the convex program of Eq. 3: it imports neither dynamics nor measures."""

from steppe.flattening import NoInterpolatorError as NoInterpolatorError
from steppe.flattening import features as features
from steppe.flattening import flattest_interpolator as flattest_interpolator
from steppe.papers.multi_index.theory._flatness import descend as descend
from steppe.papers.multi_index.theory._flatness import from_least_norm as from_least_norm
from steppe.papers.multi_index.theory._flatness import least_norm as least_norm
from steppe.papers.multi_index.theory._flatness import pointwise as pointwise
from steppe.papers.multi_index.theory._flatness import usefulness as usefulness
from steppe.papers.multi_index.theory._networks import Student as Student
from steppe.papers.multi_index.theory._networks import alignment as alignment
from steppe.papers.multi_index.theory._networks import capped as capped
from steppe.papers.multi_index.theory._networks import conditional_covariance as conditional_covariance
from steppe.papers.multi_index.theory._networks import conditions as conditions
from steppe.papers.multi_index.theory._networks import copies as copies
from steppe.papers.multi_index.theory._networks import correlated as correlated
from steppe.papers.multi_index.theory._networks import flatness as flatness
from steppe.papers.multi_index.theory._networks import patched as patched
from steppe.papers.multi_index.theory._networks import spoiled as spoiled
from steppe.papers.multi_index.theory._networks import tilted as tilted
from steppe.papers.multi_index.theory._networks import within as within
from steppe.papers.multi_index.theory._population import half_moment as half_moment
from steppe.papers.multi_index.theory._population import least_population_loss as least_population_loss
from steppe.papers.multi_index.theory._population import population_loss as population_loss
from steppe.papers.multi_index.theory._population import product_mean as product_mean
from steppe.papers.multi_index.theory._population import quadrant as quadrant
from steppe.papers.multi_index.theory._population import sampled_loss as sampled_loss
