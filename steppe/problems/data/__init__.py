"""Data generators: sizes and a seed in, arrays of (x, y) out, the same for the same seed."""

from steppe.problems.data.ball import ball as ball
from steppe.problems.data.circle import circle as circle
from steppe.problems.data.complete import complete as complete
from steppe.problems.data.extreme import ellipsoid as ellipsoid
from steppe.problems.data.extreme import is_extreme as is_extreme
from steppe.problems.data.hypercube import Split as Split
from steppe.problems.data.hypercube import xor as xor
from steppe.problems.data.label_noise import flipped as flipped
from steppe.problems.data.label_noise import perturbed as perturbed
from steppe.problems.data.mixture import gaussian_mixture as gaussian_mixture
from steppe.problems.data.mixture import xor_mixture as xor_mixture
from steppe.problems.data.multi_index import multi_index as multi_index
from steppe.problems.data.multi_index import orthonormal as orthonormal
from steppe.problems.data.parity import parity as parity
