"""Generators and real data sets: sizes and a key in, arrays of (x, y) out, the same for the same key."""

from steppe._guard import exported as _exported
from steppe.data import links as links
from steppe.data._ball import ball as ball
from steppe.data._ball import circle as circle
from steppe.data._ball import ellipsoid as ellipsoid
from steppe.data._ball import is_extreme as is_extreme
from steppe.data._dataset import Dataset as Dataset
from steppe.data._dataset import Split as Split
from steppe.data._dataset import Supervised as Supervised
from steppe.data._dataset import one_hot as one_hot
from steppe.data._dataset import overall as overall
from steppe.data._dataset import per_channel as per_channel
from steppe.data._dataset import per_feature as per_feature
from steppe.data._dataset import signed_one_hot as signed_one_hot
from steppe.data._dataset import standardised_class as standardised_class
from steppe.data._discrete import complete as complete
from steppe.data._discrete import parity as parity
from steppe.data._discrete import reversal as reversal
from steppe.data._discrete import xor as xor
from steppe.data._gaussian import flipped as flipped
from steppe.data._gaussian import gaussian_mixture as gaussian_mixture
from steppe.data._gaussian import multi_index as multi_index
from steppe.data._gaussian import orthonormal as orthonormal
from steppe.data._gaussian import perturbed as perturbed
from steppe.data._gaussian import xor_mixture as xor_mixture
from steppe.data._real import breast_cancer as breast_cancer
from steppe.data._real import california_housing as california_housing
from steppe.data._real import cifar10 as cifar10
from steppe.data._real import digits as digits
from steppe.data._real import mnist as mnist
from steppe.data._registry import DataError as DataError
from steppe.data._registry import MissingDataError as MissingDataError

__dir__ = _exported(__name__)
