"""HOW it moves: gradient descent, SAM, gradient flow, what wraps them, schedules of them, and `run`, the only loop."""

from steppe.dynamics.base import Dynamics as Dynamics
from steppe.dynamics.decayed import Decayed as Decayed
from steppe.dynamics.flow import RK4 as RK4
from steppe.dynamics.flow import RKC2 as RKC2
from steppe.dynamics.flow import Flow as Flow
from steppe.dynamics.gd import GD as GD
from steppe.dynamics.heavy_ball import HeavyBall as HeavyBall
from steppe.dynamics.label_noise import LabelNoise as LabelNoise
from steppe.dynamics.projected import Projected as Projected
from steppe.dynamics.run import Progress as Progress
from steppe.dynamics.run import Run as Run
from steppe.dynamics.run import run as run
from steppe.dynamics.sam import SAM as SAM
from steppe.dynamics.schedule import Schedule as Schedule
from steppe.dynamics.schedule import Stage as Stage
from steppe.dynamics.vectorised import run_many as run_many
