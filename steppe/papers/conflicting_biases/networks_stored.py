"""A sweep whose runs are kept one by one in the store: many processes may share them, and a kill loses nothing."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from steppe.dynamics.run import Outcome
from steppe.papers.conflicting_biases.networks_specs import Swept, computed, critical_of, descent_of
from steppe.rates import Descent, sweep
from steppe.store import Entry, Store
from steppe.sweep import execute


class _InStore:
    """Runs of one sweep, carried out by `execute`: `workers` at the same time."""

    def __init__(self, spec: Swept, way: float, store: Store, workers: int, watch: Callable[..., None]):
        self.spec, self.way, self.store, self.workers, self.watch = spec, way, store, workers, watch
        self.done: dict[float, Descent] = {}

    @property
    def together(self) -> bool:
        return self.workers > 1

    def outcomes(self) -> dict[float, Outcome]:
        return {lr: descent.outcome for lr, descent in self.done.items()}

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]:
        missing = [lr for lr in rates if lr not in self.done]
        specs = [self.spec.descent(lr, self.way) for lr in missing]
        entries = execute(specs, self.store, workers=self.workers, watch=self.watch)
        self.done |= {lr: descent_of(entry) for lr, entry in zip(missing, entries, strict=True)}
        return tuple(self.done[lr] for lr in rates)


def stored_sweep(
    spec: Swept, store: Store, *, workers: int | None = None, watch: Callable[..., None] = lambda id, state, news: None
) -> Entry:
    """The sweep of `spec`, put together from runs that are computed only where the store has none.

    `workers` of them at the same time, by default one for each core.
    """
    workers = workers or os.cpu_count() or 1
    (flow,) = execute([spec.flow()], store, workers=1, watch=watch)
    critical = critical_of(flow)
    way = critical[-1].time if critical[-1].outcome == "reached" else 0.0

    def assembled(checkpoint: Any) -> Any:
        problem, test = spec.setting.problems()
        runs = _InStore(spec, way, store, workers, watch)
        options = spec.options() | {"test": test, "critical": critical, "runner": lambda _: runs}
        return computed(sweep(problem, spec.rates(critical), **options))

    return store.compute(spec, assembled)
