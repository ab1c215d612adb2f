"""Many runs, each computed once: `execute` decides which, an `Engine` computes them."""

from steppe._exports import exported as _exported
from steppe.sweep._composite import Composite as Composite
from steppe.sweep._composite import Get as Get
from steppe.sweep._engine import Ended as Ended
from steppe.sweep._engine import Engine as Engine
from steppe.sweep._engine import Interrupted as Interrupted
from steppe.sweep._engine import InThisProcess as InThisProcess
from steppe.sweep._engine import LimitError as LimitError
from steppe.sweep._engine import Watch as Watch
from steppe.sweep._engine import WorkerDiedError as WorkerDiedError
from steppe.sweep._execute import execute as execute
from steppe.sweep._processes import Limits as Limits
from steppe.sweep._processes import Processes as Processes
from steppe.sweep._spawn import map_processes as map_processes

__dir__ = _exported(__name__)
