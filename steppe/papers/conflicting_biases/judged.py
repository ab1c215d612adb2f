"""Statements on networks, judged on every row of table 1 that they speak of: "k of n rows", with those against it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steppe.experiments import Figure, Finding, NotJudgedError, Scale
from steppe.papers.conflicting_biases.figures_of_networks import ROW_FIGURES
from steppe.papers.conflicting_biases.network_ends import Ends, at_goal, at_last_goal
from steppe.papers.conflicting_biases.network_scales import served_by
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.table_1 import Row, rows, stand_ins

# At laptop scale there is at least one row against each of these.
_FAIL = frozenset(
    f"net-{name}" for name in (
        "ce-transition", "flow-aligned", "ce-edge", "ce-falls", "norms-grow", "least-norm", "u-shape", "extreme",
        "goal", "norms-agree", "layers", "dataset-size", "activation", "wide-mnist", "large-start", "larger-start",
        "tables-rising",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A row as it was run with one seed. A stand-in of smoke scale is a row of its own, without a mark."""

    row: Row
    name: str
    ends: Ends


@dataclass(frozen=True)
class Verdict:
    """Whether a statement holds on one row, with the number that decides it."""

    holds: bool
    number: str


About = Callable[[Row], bool]
One = Callable[[Case], Verdict | None]


def cases(entries: Iterable[Any], about: About) -> list[Case]:
    """Each row and seed once, in the order of the entries."""
    found: dict[str, Case] = {}
    for entry in entries:
        known = [
            Case(row, row.name if seed == row.setting.seed else f"{row.name}, seed {seed}", at_goal(entry, row.goal))
            for row, seed in served_by(entry)
            if row.figures
        ]
        if not known:
            ends = at_last_goal(entry)
            stand_in = Row(ends.setting.name, ends.setting, ends.goal, "-", ())
            known = [Case(stand_in, f"{ends.setting.name}, {ends.loss}", ends)]
        # The first one stays: of a sweep that a figure measured once more, that is the one with more columns.
        found = {case.name: case for case in known if about(case.row)} | found
    return list(found.values())


def judged(
    id: str, source: str, statement: str, rule: str, about: About, *, shown: Sequence[Figure] = (), most: bool = False,
    elsewhere: bool = True,
) -> Callable[[One], One]:  # fmt: skip
    """Declare a claim on the rows that `about` chooses. The check judges one row, or returns None if it cannot.

    The statement holds if it does on every row, or with `most` on more than half. At smoke scale it is judged on the
    stand-ins of the figures in `shown`, and not run without any. Without `elsewhere` these figures are all it needs.
    """
    spoken_of = [row.name for row in rows().values() if elsewhere and row.figures and about(row)]
    needs = (*shown, *(ROW_FIGURES[name] for name in spoken_of))
    expected = f"{rule}; on {'more than half of the' if most else 'all'} rows"

    def declare(one: One) -> One:
        def check(*runs: Sequence[Any]) -> Finding:
            return finding(cases((entry for group in runs for entry in group), about), one, most=most)

        check.__doc__ = one.__doc__
        fails_at: tuple[Scale, ...] = ("laptop",) if id in _FAIL else ()
        PAPER.claim(id, source, statement, expected, needs=needs, partial=True, fails_at=fails_at)(check)
        return one

    return declare


def finding(judged_on: Sequence[Case], one: One, *, most: bool) -> Finding:
    verdicts = {case.name: one(case) for case in judged_on}
    known = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    good = sum(verdict.holds for verdict in known.values())
    against = [f"{name} ({verdict.number})" for name, verdict in known.items() if not verdict.holds]
    silent = [name for name, verdict in verdicts.items() if verdict is None]
    if not known:
        reason = f"too few rates to judge: {', '.join(silent)}" if silent else "no run of a row that it speaks of"
        raise NotJudgedError(reason)
    parts = [f"{good} of {len(known)} rows"]
    parts += [f"against: {', '.join(against)}"] if against else []
    parts += [f"too few rates to judge: {', '.join(silent)}"] if silent else []
    others = stand_ins(case.ends.setting for case in judged_on)
    parts += [f"stand-ins: {others}"] if others else []
    share = good / len(known)
    return Finding(share, share > 0.5 if most else share == 1, "; ".join(parts))
