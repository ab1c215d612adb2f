"""Learning-rate sweeps across the critical rate, on any problem: what decides where gradient descent ends."""

from steppe.rates.critical import critical_rate as critical_rate
from steppe.rates.descent import Descent as Descent
from steppe.rates.descent import Reached as Reached
from steppe.rates.flowed import Critical as Critical
from steppe.rates.followed import Followed as Followed
from steppe.rates.panels import draw as draw
from steppe.rates.plan import Plan as Plan
from steppe.rates.predictor import predictor_norms as predictor_norms
from steppe.rates.smoothed import smoothed_maximum as smoothed_maximum
from steppe.rates.summary import summary as summary
from steppe.rates.sweep import Sweep as Sweep
from steppe.rates.sweep import sweep as sweep
from steppe.rates.transition import Transition as Transition
from steppe.rates.transition import corner as corner
from steppe.rates.transition import transition as transition
from steppe.rates.ushape import UShape as UShape
from steppe.rates.ushape import u_shape as u_shape
from steppe.rates.verdicts import doomed as doomed
