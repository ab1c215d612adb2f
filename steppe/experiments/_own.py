"""A run of the user's own function, MODULE:FUNCTION: what a sweep of one's own problem is made of."""

import dataclasses
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from steppe import check
from steppe.experiments._experiment import Experiment

if TYPE_CHECKING:
    from steppe.store import Computed
    from steppe.until import Stop


def imported(target: str) -> Callable[..., Any]:
    """The function MODULE:FUNCTION; modules are looked for in the current folder too."""
    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
        inspect.signature(found)
        return found
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the last two: no function, no such name
        remedy = "Name MODULE:FUNCTION, a function in a file of the current folder or of the path."
        raise check.ArgumentError(f"cannot use {target!r}: {error}. {remedy}") from error
    finally:
        sys.path.remove("")


@dataclass(frozen=True)
class Own(Experiment, kind="own"):
    """What MODULE:FUNCTION returns for these arguments; a problem is trained first. Made by `own`.

    `code` is the sha256 of the module's file, so that a changed file makes new runs.
    """

    target: str
    code: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    dynamics: str = "GD"
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop: "Stop | None" = None
    measures: tuple[str, ...] = ()
    seed: int = 0
    precision: str = "float64"

    def at(self, point: Mapping[str, Any]) -> Self:
        """With other values of the function's parameters, of the dynamics' parameters, of the seed."""
        arguments, settings, seed = dict(self.arguments), dict(self.settings), self.seed
        takes, moves = _parameters(imported(self.target)), _parameters(_dynamics(self.dynamics))
        for name, value in point.items():
            known = [name in takes, name in moves, name == "seed"]
            if not any(known):
                every = sorted({*takes, *moves, "seed"})
                whose = f"neither {self.target} nor {self.dynamics} has a parameter {name!r}"
                raise check.ArgumentError(f"{whose}. {check.suggest(name, every)}")
            if known[0]:
                arguments[name] = value
            if known[1]:
                settings[name] = value
            if known[2]:
                seed = check.integer("seed", value, minimum=0)
        return dataclasses.replace(self, arguments=arguments, settings=settings, seed=seed)

    def run(self, checkpoint: Any, progress: Any) -> "Computed":
        function = imported(self.target)
        if code_of(function) != self.code:
            raise check.ArgumentError(
                f"{self.target} has changed since this run was described. Start the sweep again with the file as it is."
            )
        missing = [name for name, needed in _parameters(function).items() if needed and name not in self.arguments]
        if missing:
            raise check.ArgumentError(
                f"{self.target} needs a value of {missing[0]!r}. Give it as an axis or below [set]."
            )
        return self._computed(function(**self.arguments), checkpoint, progress)

    def _computed(self, made: Any, checkpoint: Any, progress: Any) -> "Computed":
        from steppe.dynamics import Run
        from steppe.problem import Problem

        problem, test = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if isinstance(problem, Problem) and isinstance(test, Problem | None):
            return self._trained(problem, test, checkpoint, progress)
        if isinstance(made, Run):
            return _of_run(made, {})
        if isinstance(made, Mapping):
            return _of_numbers(self.target, made)
        remedy = "Return a steppe.Problem (or one and its test problem), a steppe Run, or a dictionary of numbers."
        raise check.ArgumentError(f"{self.target} returned {type(made).__name__}. {remedy}")

    def _trained(self, problem: Any, test: Any, checkpoint: Any, progress: Any) -> "Computed":
        from steppe.dynamics import run
        from steppe.measures import loss

        if self.stop is None:
            raise check.ArgumentError("a sweep of a problem needs a stop. For example stop = { steps = 1000 }.")
        kind = _dynamics(self.dynamics)
        missing = [name for name, needed in _parameters(kind).items() if needed and name not in self.settings]
        if missing:
            raise check.ArgumentError(f"{self.dynamics} needs {missing[0]!r}. Give it as an axis or below [set].")
        moves = kind(**self.settings)
        done = run(problem, moves, stop=self.stop, checkpoint=checkpoint, progress=progress, key=self.seed)
        final = {}
        if done.outcome != "diverged":
            final = {name: measures_of()[name](problem, done.w) for name in self.measures}
            final |= {"test_loss": loss(test, done.w)} if test is not None else {}
        return _of_run(done, final)


def own(
    target: str,
    *,
    dynamics: str = "GD",
    measures: Sequence[str] = (),
    stop: "Stop | None" = None,
    **values: Any,
) -> Own:
    """A run of MODULE:FUNCTION, with values of its parameters and of the parameters of the dynamics.

    The function returns a `steppe.Problem`, or it and one of test data: it is trained by `dynamics` until `stop`, and
    `measures` are taken at the end. Or it returns a dictionary of numbers or columns, or a `steppe.run`.
    """
    chosen = tuple(_known("measures", name, measures_of()) for name in measures)
    _known("dynamics", dynamics, _DYNAMICS)
    return Own(target, code_of(imported(target)), dynamics=dynamics, measures=chosen, stop=stop).at(values)


_DYNAMICS = ("GD", "SAM", "HeavyBall", "Flow")


def _known(argument: str, name: str, known: Any) -> str:
    if name not in known:
        raise check.ArgumentError(f"{argument}: {name!r} is not known. {check.suggest(name, known)}")
    return name


def _dynamics(name: str) -> Any:
    from steppe import dynamics

    return getattr(dynamics, _known("dynamics", name, _DYNAMICS))


def _parameters(function: Any) -> dict[str, bool]:
    """The names of the parameters, and whether each needs a value."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default is p.empty for p in found if p.kind not in kinds}


def code_of(function: Callable[..., Any]) -> str:
    """The sha256 of the file that a function is in."""
    file = inspect.getsourcefile(function)
    if file is None or not Path(file).is_file():
        raise check.ArgumentError(f"{function!r} is not in a file. Write it to a file, which other processes import.")
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def measures_of() -> dict[str, Callable[..., Any]]:
    """The measures of (problem, w) that need nothing else and are one number."""
    from steppe import measures
    from steppe.estimate import Estimate

    found = {name: getattr(measures, name) for name in dir(measures) if name.islower()}
    return {name: f for name, f in found.items() if inspect.isfunction(f) and _returns(f) is Estimate}


def _returns(function: Any) -> Any:
    try:
        return get_type_hints(function).get("return")
    except NameError:  # a hint that exists for type checkers only
        return None


def _of_run(run: Any, final: Mapping[str, Any]) -> "Computed":
    import numpy as np

    from steppe.store import Computed

    numbers = {name: column[-1] for name, column in run.records.items() if np.ndim(column) == 1}
    if run.outcome == "diverged":  # its last recorded loss is of an earlier step
        numbers = {name: value for name, value in numbers.items() if name in ("step", "epoch", "time")}
    for name, estimate in final.items():
        numbers[name] = estimate.value
        if not estimate.is_exact:
            numbers |= {f"{name}.lower": estimate.lower, f"{name}.upper": estimate.upper}
    result = {"outcome": run.outcome, "steps": run.steps, "gradients": run.gradients, "final": numbers}
    return Computed(run.records, {"w": np.asarray(run.w)}, result)


def _of_numbers(target: str, made: Mapping[str, Any]) -> "Computed":
    """Numbers are results; arrays of equal length are curves."""
    import numpy as np

    from steppe.store import Computed

    arrays = {str(name): np.asarray(value) for name, value in made.items()}
    wrong = [name for name, array in arrays.items() if array.dtype.kind not in "biuf" or array.ndim > 1]
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    if wrong or len({len(column) for column in columns.values()}) > 1:
        what = f"{wrong[0]!r} is not" if wrong else "the columns are not all"
        remedy = "Return numbers, and columns of numbers of one length."
        raise check.ArgumentError(f"{target}: {what} made of numbers, or of one length. {remedy}")
    final = {name: array.item() for name, array in arrays.items() if array.ndim == 0}
    length = len(next(iter(columns.values()), ()))
    steps = {} if "step" in columns else {"step": np.arange(length)}
    return Computed(steps | columns, {}, {"outcome": "reached", "final": final})
