"""WHAT is minimised: data, networks, parameterisations."""

from steppe.problems.build import Built as Built
from steppe.problems.build import build as build
from steppe.problems.flat import Unravel as Unravel
from steppe.problems.problem import Problem as Problem
