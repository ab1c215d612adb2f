"""What a paper is made of, and how its figures are reproduced and its claims verified."""

from steppe._guard import exported as _exported
from steppe.experiments._experiment import Experiment as Experiment
from steppe.experiments._experiment import experiment as experiment
from steppe.experiments._experiment import seeds as seeds
from steppe.experiments._own import Own as Own
from steppe.experiments._own import own as own
from steppe.experiments._paper import Claim as Claim
from steppe.experiments._paper import Figure as Figure
from steppe.experiments._paper import Finding as Finding
from steppe.experiments._paper import NotJudgedError as NotJudgedError
from steppe.experiments._paper import Paper as Paper
from steppe.experiments._paper import Scale as Scale
from steppe.experiments._paper import Show as Show
from steppe.experiments._paper import Shown as Shown
from steppe.experiments._reproduce import override as override
from steppe.experiments._reproduce import reproduce as reproduce
from steppe.experiments._reproduce import write as write
from steppe.experiments._seconds import expected_seconds as expected_seconds
from steppe.experiments._seconds import update_expected_seconds as update_expected_seconds
from steppe.experiments._spec_of import spec_of as spec_of
from steppe.experiments._sweep import Planned as Planned
from steppe.experiments._sweep import changed as changed
from steppe.experiments._sweep import planned as planned
from steppe.experiments._sweep import sweep as sweep
from steppe.experiments._verify import Measured as Measured
from steppe.experiments._verify import labelled_runs as labelled_runs
from steppe.experiments._verify import measure as measure
from steppe.experiments._verify import measure_all as measure_all
from steppe.experiments._verify import runs_needed as runs_needed
from steppe.experiments._verify import verify as verify

__dir__ = _exported(__name__)
