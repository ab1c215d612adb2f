"""Learning-rate sweeps across the critical rate, on any problem: what decides where gradient descent ends."""

from steppe._guard import exported as _exported
from steppe.rates._critical import Critical as Critical
from steppe.rates._critical import CriticalRates as CriticalRates
from steppe.rates._critical import Followed as Followed
from steppe.rates._critical import critical_rate as critical_rate
from steppe.rates._descent import Descent as Descent
from steppe.rates._descent import Reached as Reached
from steppe.rates._descent import doomed as doomed
from steppe.rates._descents import Descents as Descents
from steppe.rates._descents import Limits as Limits
from steppe.rates._descents import Runner as Runner
from steppe.rates._draw import draw as draw
from steppe.rates._family import Family as Family
from steppe.rates._measured import predictor_norms as predictor_norms
from steppe.rates._predicted import predicted as predicted
from steppe.rates._reading import Transition as Transition
from steppe.rates._reading import UShape as UShape
from steppe.rates._reading import corner as corner
from steppe.rates._reading import growth as growth
from steppe.rates._reading import summary as summary
from steppe.rates._reading import summary_lines as summary_lines
from steppe.rates._reading import transition as transition
from steppe.rates._reading import u_shape as u_shape
from steppe.rates._sweep import Plan as Plan
from steppe.rates._sweep import Sweep as Sweep
from steppe.rates._sweep import smoothed_maximum as smoothed_maximum
from steppe.rates._sweep import sweep as sweep

__dir__ = _exported(__name__)
