"""Many runs, each computed once: `execute` decides which, an `Engine` computes them."""

from steppe._guard import exported as _exported
from steppe.sweep._array import array_script as array_script
from steppe.sweep._axes import Axes as Axes
from steppe.sweep._axes import Point as Point
from steppe.sweep._axes import axis as axis
from steppe.sweep._axes import linear as linear
from steppe.sweep._axes import log as log
from steppe.sweep._composite import Composite as Composite
from steppe.sweep._composite import Get as Get
from steppe.sweep._dask import Dask as Dask
from steppe.sweep._engine import Ended as Ended
from steppe.sweep._engine import Engine as Engine
from steppe.sweep._engine import Interrupted as Interrupted
from steppe.sweep._engine import InThisProcess as InThisProcess
from steppe.sweep._engine import LimitError as LimitError
from steppe.sweep._engine import Watch as Watch
from steppe.sweep._engine import WorkerDiedError as WorkerDiedError
from steppe.sweep._execute import Pending as Pending
from steppe.sweep._execute import drive as drive
from steppe.sweep._execute import execute as execute
from steppe.sweep._file import SweepFile as SweepFile
from steppe.sweep._file import parse_sweep as parse_sweep
from steppe.sweep._file import read_sweep as read_sweep
from steppe.sweep._processes import Limits as Limits
from steppe.sweep._processes import Processes as Processes
from steppe.sweep._processes import memory_share as memory_share
from steppe.sweep._spawn import map_processes as map_processes
from steppe.sweep._swept import Swept as Swept

__dir__ = _exported(__name__)
