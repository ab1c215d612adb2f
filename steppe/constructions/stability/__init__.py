"""Which minima gradient descent and SGD can stay at: kinks and their modes, second moments, simulation nearby."""

from steppe.constructions.stability.bound import theorem_2 as theorem_2
from steppe.constructions.stability.bound import theorem_2_as_printed as theorem_2_as_printed
from steppe.constructions.stability.modes import Modes as Modes
from steppe.constructions.stability.modes import Range as Range
from steppe.constructions.stability.modes import lower_sharpness as lower_sharpness
from steppe.constructions.stability.modes import modes as modes
from steppe.constructions.stability.modes import upper_sharpness as upper_sharpness
from steppe.constructions.stability.second_moment import growth as growth
from steppe.constructions.stability.second_moment import largest_stable_lr as largest_stable_lr
from steppe.constructions.stability.second_moment import second_moment as second_moment
from steppe.constructions.stability.second_moment import simulated_growth as simulated_growth
from steppe.constructions.stability.strong import Excursion as Excursion
from steppe.constructions.stability.strong import excursion as excursion
