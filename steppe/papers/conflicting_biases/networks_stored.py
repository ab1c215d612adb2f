"""A sweep whose runs are kept one by one: which of them are missing, and what they come to."""

from collections.abc import Sequence
from typing import Any

from steppe.dynamics._run import Outcome
from steppe.papers.conflicting_biases.networks_specs import Swept, computed, critical_of, descent_of
from steppe.rates import Descent, Plan, sweep
from steppe.store import Computed, Entry
from steppe.sweep._engine import Get


def missing(spec: Swept, get: Get) -> list[Any]:
    """First the flow, then the rates that it and the runs so far ask for."""
    flow = get(spec.flow())
    if flow is None:
        return [spec.flow()]
    kept = _Kept(spec, flow, get)
    return [kept.spec_of(lr) for lr in kept.absent()]


def assemble(spec: Swept, get: Get) -> Computed:
    problem, test = spec.setting.problems()
    kept = _Kept(spec, get(spec.flow()), get)
    kept.absent()  # none; what the grids came to is known after it
    options = spec.options() | {"test": test, "critical": kept.critical, "runner": lambda _: kept}
    return computed(sweep(problem, spec.rates(kept.critical), **options))


class _Kept:
    """The runs of one sweep that are there, as `steppe.rates._sweep` asks for them."""

    together = True

    def __init__(self, spec: Swept, flow: Entry | None, get: Get):
        self.spec, self.critical, self.get = spec, critical_of(flow), get
        self.known: dict[float, Outcome] = {}

    def spec_of(self, lr: float) -> Any:
        last = self.critical[-1]
        return self.spec.descent(lr, last.time if last.outcome == "reached" else 0.0)

    def absent(self) -> list[float]:
        """The rates wanted next that are not there. A plan depends on outcomes alone: it can be gone through again."""
        rates = self.spec.rates(self.critical)
        if rates is not None:
            return [lr for lr in rates if self.get(self.spec_of(lr)) is None]
        plan = Plan(self.critical[-1], self.spec.fine, self.spec.coarse)
        while todo := plan.next(self.known):
            entries = {lr: self.get(self.spec_of(lr)) for lr in todo}
            there = {lr: entry.result["outcome"] for lr, entry in entries.items() if entry is not None}
            if not there:
                return todo
            self.known |= there
        return []

    def outcomes(self) -> dict[float, Outcome]:
        return self.known

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]:
        return tuple(descent_of(self.get(self.spec_of(lr))) for lr in rates)
