"""Many runs, each computed once: `execute` decides which, an `Engine` computes them."""

from steppe._guard import exported as _exported
from steppe.sweep._composite import Composite as Composite
from steppe.sweep._composite import Get as Get
from steppe.sweep._engine import Ended as Ended
from steppe.sweep._engine import Engine as Engine
from steppe.sweep._engine import Interrupted as Interrupted
from steppe.sweep._engine import InThisProcess as InThisProcess
from steppe.sweep._engine import Processes as Processes
from steppe.sweep._engine import Watch as Watch
from steppe.sweep._engine import WorkerDiedError as WorkerDiedError
from steppe.sweep._engine import map_processes as map_processes
from steppe.sweep._execute import execute as execute

__dir__ = _exported(__name__)
