"""The flattest member of a family: of all rescalings of a network, of all interpolators with given features.

`flatten` rescales the neurons of a network; `Rescaling`, `balance` and `flattest` solve the convex problems behind it.
`flattest_interpolator` finds outer weights for given features. `memorising` and `separating` build the flattest
networks with one neuron for each training point.
"""

from steppe._guard import exported as _exported
from steppe.flattening import _jax as _jax  # it registers its kind of problem
from steppe.flattening import memorising as memorising
from steppe.flattening import separating as separating
from steppe.flattening._balance import Balanced as Balanced
from steppe.flattening._balance import balance as balance
from steppe.flattening._flatten import Flattened as Flattened
from steppe.flattening._flatten import flatten as flatten
from steppe.flattening._interpolator import Features as Features
from steppe.flattening._interpolator import Interpolator as Interpolator
from steppe.flattening._interpolator import NoInterpolatorError as NoInterpolatorError
from steppe.flattening._interpolator import features as features
from steppe.flattening._interpolator import flattest_interpolator as flattest_interpolator
from steppe.flattening._least_sharpness import Flattest as Flattest
from steppe.flattening._least_sharpness import flattest as flattest
from steppe.flattening._neurons import Layer as Layer
from steppe.flattening._neurons import Neurons as Neurons
from steppe.flattening._neurons import rescaled as rescaled
from steppe.flattening._rescaling import OUTSIDE as OUTSIDE
from steppe.flattening._rescaling import Rescaling as Rescaling
from steppe.flattening._rescaling import exponents as exponents
from steppe.flattening._rescaling import lower_bound as lower_bound
from steppe.flattening._rescaling import merged as merged

__dir__ = _exported(__name__)
