"""The theory of mulayoff2021: it imports neither dynamics nor measures."""

from steppe.papers.mulayoff2021.theory._flattest import descent_on_beta as descent_on_beta
from steppe.papers.mulayoff2021.theory._flattest import flattest_implementation as flattest_implementation
from steppe.papers.mulayoff2021.theory._flattest import rescaled as rescaled
from steppe.papers.mulayoff2021.theory._flattest import rescaling as rescaling
from steppe.papers.mulayoff2021.theory._function_space import PiecewiseLinear as PiecewiseLinear
from steppe.papers.mulayoff2021.theory._function_space import chain as chain
from steppe.papers.mulayoff2021.theory._function_space import least_sharpness as least_sharpness
from steppe.papers.mulayoff2021.theory._function_space import leftward as leftward
from steppe.papers.mulayoff2021.theory._function_space import piecewise_linear as piecewise_linear
from steppe.papers.mulayoff2021.theory._function_space import rightward as rightward
from steppe.papers.mulayoff2021.theory._function_space import stability_bound as stability_bound
from steppe.papers.mulayoff2021.theory._function_space import weight as weight
from steppe.papers.mulayoff2021.theory._function_space import weighted_roughness as weighted_roughness
from steppe.papers.mulayoff2021.theory._stability import excursion as excursion
from steppe.papers.mulayoff2021.theory._stability import growth as growth
from steppe.papers.mulayoff2021.theory._stability import largest_stable_lr as largest_stable_lr
from steppe.papers.mulayoff2021.theory._stability import lower_sharpness as lower_sharpness
from steppe.papers.mulayoff2021.theory._stability import modes as modes
from steppe.papers.mulayoff2021.theory._stability import second_moment as second_moment
from steppe.papers.mulayoff2021.theory._stability import theorem_2 as theorem_2
from steppe.papers.mulayoff2021.theory._stability import theorem_2_as_printed as theorem_2_as_printed
from steppe.papers.mulayoff2021.theory._stability import upper_sharpness as upper_sharpness
