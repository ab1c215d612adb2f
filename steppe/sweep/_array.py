"""A sweep as an array job of SLURM, for a site without another scheduler."""

import shlex
from collections.abc import Sequence

_SCRIPT = """\
#!/bin/bash
# Submit with: sbatch {name}.sh
# Every task is the same command: it computes whatever run nobody else computes yet, and ends when all are there. Tasks
# may die, be preempted or start twice; submit again what did not finish, nothing is computed twice.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={cores}
#SBATCH --output={name}-%A-%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=TERM@{grace}
# Add what your site asks for: --time, --mem, --partition, --account.
set -eu
cd {folder}
exec {command} --shuffle --workers "${{SLURM_CPUS_PER_TASK:-{cores}}}"
"""


def array_script(
    command: Sequence[str], *, name: str, folder: str, tasks: int, cores: int = 1, grace: int = 120
) -> str:
    """An sbatch script whose tasks claim runs through the store.

    `grace` is how many seconds before its end a task is asked to save its checkpoints.
    """
    return _SCRIPT.format(
        name=name, folder=shlex.quote(folder), last=tasks - 1, cores=cores, grace=grace, command=shlex.join(command)
    )
