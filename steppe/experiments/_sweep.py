"""A sweep: a base and axes make specs; those are run to the end, whatever fails, and come to a table and a figure."""

import dataclasses
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steppe.check import ArgumentError, refuse
from steppe.experiments._experiment import Experiment
from steppe.experiments._own import Own
from steppe.experiments._reproduce import override

if TYPE_CHECKING:
    from steppe.store import Store
    from steppe.sweep import Axes, Engine, Limits, Point, Swept, Watch


@dataclasses.dataclass(frozen=True)
class Planned:
    """The runs of a sweep: a spec for each point."""

    points: "tuple[Point, ...]"
    specs: tuple[Experiment, ...]

    @property
    def labels(self) -> list[str]:
        return [" ".join(f"{name}={_text(value)}" for name, value in point.items()) for point in self.points]

    def chosen(self, keep: Callable[[Experiment], bool] = lambda spec: True, limit: int | None = None) -> "Planned":
        """The first `limit` runs that are kept."""
        pairs = [(p, s) for p, s in zip(self.points, self.specs, strict=True) if keep(s)][:limit]
        return Planned(tuple(p for p, _ in pairs), tuple(s for _, s in pairs))

    def shuffled(self) -> "Planned":
        """In an order of its own: several commands then begin with different runs."""
        order = random.SystemRandom().sample(range(len(self.specs)), len(self.specs))
        return Planned(tuple(self.points[k] for k in order), tuple(self.specs[k] for k in order))

    def run(
        self,
        store: "Store | None" = None,
        *,
        workers: int | None = None,
        recompute: bool = False,
        limits: "Limits | None" = None,
        watch: "Watch" = lambda id, state, news: None,
        engine: "Callable[[], Engine] | None" = None,
    ) -> "Swept":
        """Compute what is not stored. A run that fails ends no other; the table says so, and the next call tries again.

        Every run is computed in a process of its own with one thread, so that the results are the same on one core, on
        many, and on a cluster.
        """
        from steppe.store import Store, address
        from steppe.sweep import Pending, Processes, Swept, drive

        kept, count = store or Store(), workers or os.cpu_count() or 1

        def local() -> Processes:
            return Processes(kept, workers=count, recompute=recompute, watch=watch, limits=limits)

        pending = Pending(self.specs, kept, recompute=recompute)
        for id in pending.entries:
            watch(id, "stored", None)
        drive(engine or local, pending, to_the_end=True)
        ids = tuple(address(spec) for spec in self.specs)
        failures = {id: f"{type(e).__name__}: {e}" for id, e in pending.failures.items() if id in pending.wanted}
        return Swept(self.points, ids, tuple(pending.entries.get(id) for id in ids), failures)


def planned(base: Experiment | Sequence[Experiment], axes: "Axes") -> Planned:
    """The base with the values of each point; several bases are one more axis, called `base`."""
    bases = [base] if isinstance(base, Experiment) else list(base)
    if not bases or not all(isinstance(one, Experiment) for one in bases):
        refuse("base", "an experiment", base, 'For example steppe.experiments.own("mine:problem", …).')
    points: list[Mapping[str, Any]] = []
    specs = []
    for k, one in enumerate(bases):
        for point in axes:
            points.append(({"base": k} if len(bases) > 1 else {}) | dict(point))
            specs.append(changed(one, point))
    return Planned(tuple(points), tuple(specs))


def sweep(
    base: Experiment | Sequence[Experiment], axes: "Axes", *, store: "Store | None" = None, **options: Any
) -> "Swept":
    """All runs of a base over axes; `options` are those of `Planned.run`: workers, recompute, limits, watch, engine."""
    return planned(base, axes).run(store, **options)


def changed(spec: Experiment, values: Mapping[str, Any]) -> Experiment:
    """The spec with these values of its parameters."""
    if isinstance(spec, Own):
        return spec.at(values)
    try:
        texts = [f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in values.items()]
        return override(spec, texts)
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("--set", "sweep", 1)) from None


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
