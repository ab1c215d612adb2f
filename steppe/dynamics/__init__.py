"""How w moves: gradient descent, SAM, optax, gradient flow, wrappers, schedules; `run` and `run_many` carry it out."""

from steppe._guard import exported as _exported
from steppe.dynamics._base import Dynamics as Dynamics
from steppe.dynamics._descent import GD as GD
from steppe.dynamics._descent import SAM as SAM
from steppe.dynamics._descent import HeavyBall as HeavyBall
from steppe.dynamics._flow.flow import Flow as Flow
from steppe.dynamics._flow.method import AB2 as AB2
from steppe.dynamics._flow.method import RK4 as RK4
from steppe.dynamics._flow.method import RKC2 as RKC2
from steppe.dynamics._many import Runs as Runs
from steppe.dynamics._many import run_many as run_many
from steppe.dynamics._minima import Minima as Minima
from steppe.dynamics._minima import minima as minima
from steppe.dynamics._optax import Optax as Optax
from steppe.dynamics._run import Checkpoint as Checkpoint
from steppe.dynamics._run import Progress as Progress
from steppe.dynamics._run import Run as Run
from steppe.dynamics._run import run as run
from steppe.dynamics._schedule import Schedule as Schedule
from steppe.dynamics._schedule import Stage as Stage
from steppe.dynamics._wrappers import Decayed as Decayed
from steppe.dynamics._wrappers import LabelNoise as LabelNoise
from steppe.dynamics._wrappers import Projected as Projected

__dir__ = _exported(__name__)
