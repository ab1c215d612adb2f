"""Which rates a sweep takes next: the paper's fine and coarse grids, on until divergence, refined where it is early."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steppe.dynamics.run import Outcome
from steppe.rates.flowed import Critical

# The coarse grid goes on until so many neighbouring rates did not reach their goal.
FAILURES = 2

# So many rates beyond the fine grid should reach it; else the distance is halved, at most so often.
ENOUGH, HALVINGS = 4, 3

_MOST_BEYOND = 40


@dataclass(frozen=True)
class Plan:
    """The grids of appendix G for one flow.

    `next` is a pure function of what the runs so far came to, so that a sweep goes on after a kill where it was and
    takes the same rates whether it runs them one after another or together.
    """

    critical: Critical
    fine: bool = True
    coarse: bool = True

    def next(self, outcomes: Mapping[float, Outcome]) -> list[float]:
        """The rates to run now, rising; none when the sweep is done."""
        wanted = self._below_failure(self._base(), outcomes)
        if missing := [lr for lr in wanted if lr not in outcomes]:
            return missing
        if not self.coarse:
            return []
        beyond = 0
        while not self._failed(wanted, outcomes) and beyond < _MOST_BEYOND:
            beyond += FAILURES
            wanted = self._below_failure(self._merged(self._base(), self._coarse(beyond=beyond)), outcomes)
            if missing := [lr for lr in wanted if lr not in outcomes]:
                return missing
        first = min(self._failures(wanted, outcomes), default=np.inf)
        for k in range(1, HALVINGS + 1):
            # A distance is halved everywhere or not at all, whatever order the runs are made in.
            if self._reached_beyond_fine(wanted, outcomes) >= ENOUGH:
                break
            between = [lr for lr in self._coarse(refine=2**k) if 6 / self.critical.largest_sharpness < lr < first]
            wanted = self._merged(wanted, between)
            if missing := [lr for lr in wanted if lr not in outcomes]:
                return missing
        return []

    def kept(self, outcomes: Mapping[float, Outcome]) -> list[float]:
        """The rates that belong to the sweep: not those run together with others that turned out to be too far."""
        return self._below_failure(sorted(outcomes), outcomes)

    def _base(self) -> list[float]:
        fine = self.critical.fine_grid().tolist() if self.fine else []
        return self._merged(fine, self._coarse() if self.coarse else [])

    def _coarse(self, *, beyond: int = 0, refine: int = 1) -> list[float]:
        return self.critical.coarse_grid(beyond=beyond, refine=refine).tolist()

    @staticmethod
    def _merged(rates: list[float], others: list[float]) -> list[float]:
        """Both, rising, without those of the second that are within rounding of another."""
        merged = sorted(rates)
        for lr in others:
            if not any(abs(lr - known) < 1e-6 * known for known in merged):
                merged.append(lr)
        return sorted(merged)

    @staticmethod
    def _below_failure(rates: list[float], outcomes: Mapping[float, Outcome]) -> list[float]:
        """Up to and with the second of two neighbours that failed."""
        failures = 0
        for k, lr in enumerate(rates):
            failures = failures + 1 if outcomes.get(lr, "reached") != "reached" else 0
            if failures == FAILURES:
                return rates[: k + 1]
        return rates

    @staticmethod
    def _failures(rates: list[float], outcomes: Mapping[float, Outcome]) -> list[float]:
        return [lr for lr in rates if outcomes[lr] != "reached"]

    def _failed(self, rates: list[float], outcomes: Mapping[float, Outcome]) -> bool:
        return len(self._failures(rates[-FAILURES:], outcomes)) == FAILURES

    def _reached_beyond_fine(self, rates: list[float], outcomes: Mapping[float, Outcome]) -> int:
        edge = 6 / self.critical.largest_sharpness
        return sum(outcomes[lr] == "reached" and lr > edge * (1 + 1e-6) for lr in rates)
