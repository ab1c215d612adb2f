"""One run of a paper: a frozen description that can compute itself."""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from steppe.check import ArgumentError, suggest

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

E = TypeVar("E", bound="Experiment")
Progress = Callable[[Any], None]


class Experiment(ABC):
    """The base of every spec: a frozen dataclass whose fields are its parameters, and `run`, which computes it.

    `kind` names it in the store: the address of a run is the hash of its kind and its parameters. `run` works in
    64 bits unless the class, or a field of it, says `precision = "float32"`. A field of names is a Literal; a name
    that it does not list is refused when the spec is made.

        @dataclass(frozen=True)
        class Training(Experiment, kind="wen2023/training"):
            width: int = 500
            seed: int = 0

            def run(self, checkpoint, progress): ...
    """

    KIND: ClassVar[str]
    # Other versions of steppe whose stored runs are used, because their results are known to be the same. A release
    # that changes no result adds the version before it; a kind whose results changed begins again with ().
    SAME_RESULTS: ClassVar[tuple[str, ...]] = ()
    precision: Any = "float64"

    def __init_subclass__(cls, *, kind: str | None = None, **rest: Any):
        super().__init_subclass__(**rest)
        if kind is not None:
            cls.KIND = kind

    def __post_init__(self) -> None:
        _refuse_unknown_names(self)

    @abstractmethod
    def run(self, checkpoint: "Checkpoint | None", progress: Progress | None) -> "Computed":
        """Compute the run. It saves to `checkpoint` and tells `progress` on the way."""

    def compute(self, checkpoint: "Checkpoint | None" = None, progress: Progress | None = None) -> "Computed":
        """`run`, in this experiment's precision."""
        import jax

        with jax.enable_x64(self.precision == "float64"):
            return self.run(checkpoint, progress)


def _refuse_unknown_names(spec: Any) -> None:
    """Check the fields of names of a spec, and of the dataclasses inside it."""
    for name, known in _names(spec.__class__):
        value = getattr(spec, name)
        if value not in known:
            raise ArgumentError(
                f"{name} must be one of {', '.join(known)}; got {value!r}. " + suggest(str(value), known)
            )
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(part):
                _refuse_unknown_names(part)


@cache
def _names(kind: type) -> list[tuple[str, tuple[Any, ...]]]:
    """The fields that are Literals, and what they may be."""
    literal: Any = Literal
    return [(f.name, get_args(f.type)) for f in dataclasses.fields(kind) if get_origin(f.type) is literal]


def seeds(experiment: E, count: int, *, first: int = 0) -> tuple[E, ...]:
    """The experiment with seeds first, first + 1, …"""
    return tuple(dataclasses.replace(experiment, seed=first + k) for k in range(count))  # type: ignore[type-var]


def experiment(kind: str) -> Callable[[Callable[..., "Computed"]], Callable[..., Experiment]]:
    """Makes an `Experiment` of a function: its keyword-only parameters, each with a default, become the fields.

    >>> @experiment("doc/square")
    ... def square(checkpoint, progress, *, side: float = 2.0):
    ...     return side**2
    >>> square(side=3.0), square(side=3.0).compute()
    (square(side=3.0), 9.0)
    """

    def make(function: Callable[..., "Computed"]) -> Callable[..., Experiment]:
        parameters = inspect.signature(function).parameters.values()
        fields = [(p.name, p.annotation, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY]

        def run(self: Any, checkpoint: Any, progress: Any) -> Any:
            return function(checkpoint, progress, **{name: getattr(self, name) for name, *_ in fields})

        names = {"run": run, "KIND": kind, "__doc__": function.__doc__, "__module__": function.__module__}
        return dataclasses.make_dataclass(function.__name__, fields, bases=(Experiment,), namespace=names, frozen=True)

    return make
