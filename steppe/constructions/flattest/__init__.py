"""The flattest net among all rescalings of one: a convex problem in the logarithms of its scales, certified."""

from steppe.constructions.flattest.descent import descent_on_beta as descent_on_beta
from steppe.constructions.flattest.one_hidden import Implementation as Implementation
from steppe.constructions.flattest.one_hidden import flattest_implementation as flattest_implementation
from steppe.constructions.flattest.one_hidden import one_hidden as one_hidden
from steppe.constructions.flattest.one_hidden import rescaled as rescaled
from steppe.constructions.flattest.one_hidden import rescaling as rescaling
from steppe.linalg.rescaling import OUTSIDE as OUTSIDE
from steppe.linalg.rescaling import Flattest as Flattest
from steppe.linalg.rescaling import Rescaling as Rescaling
from steppe.linalg.rescaling import balance as balance
from steppe.linalg.rescaling import circulating as circulating
from steppe.linalg.rescaling import exponents as exponents
from steppe.linalg.rescaling import flattest as flattest
from steppe.linalg.rescaling import lower_bound as lower_bound
