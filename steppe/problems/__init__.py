"""WHAT is minimised: data, networks, parameterisations."""

from steppe.problems.flat import Unravel as Unravel
from steppe.problems.problem import Problem as Problem
