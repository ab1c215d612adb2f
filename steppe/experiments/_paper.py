"""What a paper is made of: experiments that run, figures that show them, claims that are measured on them.

A paper is declared in the order in which it is read. Adding a figure or a claim edits one place:

    P = Paper("wen2023", "Sharpness minimization algorithms …", module=__name__)

    @P.plot("fig4b", "bias, 1-SAM", panels, runs={"paper": seeds(BIAS, 10), "smoke": seeds(SMALL, 2)})
    def fig4b(runs):
        return {"title": …, "panels": […]}

    @P.claim("fig4b-attains-bound", "Figure 4b", "1-SAM reaches the bound.", "within 3%", needs=(fig4b,))
    def _(runs):
        gaps = [...]
        return Finding(max(gaps), max(gaps) <= 0.03)
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from steppe.check import ArgumentError, suggest
from steppe.experiments._experiment import Experiment

Scale = Literal["smoke", "laptop", "paper"]
Verdict = Literal["holds", "fails", "not-run"]
Numbers = dict[str, Any]


class Show(Protocol):
    """How a figure comes from its finished runs: the numbers it plots, as plain JSON, and their picture."""

    def numbers(self, runs: Sequence[Any]) -> Numbers: ...

    def draw(self, numbers: Mapping[str, Any]) -> Any: ...


@dataclass(frozen=True)
class Shown:
    """A `Show` made of two functions."""

    numbers: Callable[[Sequence[Any]], Numbers]
    draw: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Figure:
    """A figure: the runs it shows, at each scale that it has, and how it shows them.

    At the scales of `by_name` it is run only where it is asked for by its name: not with its paper, and for no claim.
    """

    paper: str
    id: str
    title: str
    runs: Mapping[Scale, Sequence[Experiment]] = field(repr=False, compare=False)
    show: Show = field(repr=False, compare=False)
    by_name: frozenset[Scale] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.id}"

    def offered(self, scale: Scale) -> bool:
        """Whether it is run with its paper."""
        return scale in self.runs and scale not in self.by_name


@dataclass(frozen=True)
class Finding:
    """What a check measured: the number, whether the claim holds, and the detail a reader wants (spread, seeds)."""

    measured: float
    holds: bool
    detail: str = ""

    def __post_init__(self) -> None:
        # Checks compute with numpy; JSON and reports get Python's own numbers.
        object.__setattr__(self, "measured", float(self.measured))
        object.__setattr__(self, "holds", bool(self.holds))


class NotJudgedError(Exception):
    """Raised by a check whose runs do not decide the claim; its verdict is `not-run`, for the reason given."""


Check = Callable[..., Finding]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper with a check. The check is called with the finished runs of each figure in `needs`.

    A `misprint` is mathematics as printed that is known to be wrong: failing is what it should do. `fails_at` are the
    scales at which a statement of the paper is known to fail in our runs: a finding, and no error of a command.
    `control` names the test that shows something plausible failing the check. A `partial` claim is on many runs: it is
    judged on those of its figures that are offered at a scale, and on those runs that are in the store.
    """

    id: str
    source: str
    statement: str
    expected: str
    check: Check = field(repr=False, compare=False)
    needs: tuple[Figure, ...] = ()
    misprint: bool = False
    control: str = ""
    fails_at: tuple[Scale, ...] = ()
    partial: bool = False


Named = TypeVar("Named", Figure, Claim)


class Paper:
    """Figures and claims under one name. `module` is where it is declared: other processes find it there as PAPER."""

    def __init__(
        self, id: str, title: str, *, module: str, figures: Sequence[Figure] = (), claims: Sequence[Claim] = ()
    ):
        self.id, self.title, self.module = id, title, module
        self.figures, self.claims = list(figures), list(claims)

    def __repr__(self) -> str:
        return f"Paper({self.id}: {len(self.figures)} figures, {len(self.claims)} claims)"

    def __reduce__(self) -> Any:
        """Checks are functions without a name: a paper travels to other processes as the name of its module."""
        return _declared_in, (self.module,)

    def figure(
        self,
        id: str,
        title: str,
        *,
        runs: Mapping[Scale, Sequence[Experiment]],
        show: Show,
        by_name: Sequence[Scale] = (),
    ) -> Figure:
        """Declare a figure."""
        self._refuse_twice(id)
        figure = Figure(
            self.id, id, title, {scale: tuple(specs) for scale, specs in runs.items()}, show, frozenset(by_name)
        )
        self.figures.append(figure)
        return figure

    def plot(
        self,
        id: str,
        title: str,
        draw: Callable[[Mapping[str, Any]], Any],
        *,
        runs: Mapping[Scale, Sequence[Experiment]],
    ) -> Callable[[Callable[[Sequence[Any]], Numbers]], Figure]:
        """Declare a figure: decorates the function that makes its numbers from its runs, and becomes the figure."""
        return lambda numbers: self.figure(id, title, runs=runs, show=Shown(numbers, draw))

    def claim(
        self,
        id: str,
        source: str,
        statement: str,
        expected: str,
        *,
        needs: Sequence[Figure] = (),
        misprint: bool = False,
        control: str = "",
        fails_at: Sequence[Scale] = (),
        partial: bool = False,
    ) -> Callable[[Check], Check]:
        """Declare a claim: decorates its check, which gets one argument for each figure in `needs`."""

        def declare(check: Check) -> Check:
            self._refuse_twice(id)
            self.claims.append(
                Claim(id, source, statement, expected, check, tuple(needs), misprint, control, tuple(fails_at), partial)
            )
            return check

        return declare

    def misprint(
        self,
        id: str,
        source: str,
        *,
        printed: tuple[str, str],
        corrected: tuple[str, str],
        needs: Sequence[Figure] = (),
    ) -> Callable[[Check], Check]:
        """Declare two claims, (statement, expected) each: `id`-printed should fail, `id`-corrected hold.

        Decorates the check of both. Its first argument is True for what is printed, False for what is right.
        """

        def declare(check: Check) -> Check:
            self.claim(f"{id}-printed", source, *printed, needs=needs, misprint=True)(partial(check, True))
            self.claim(f"{id}-corrected", f"{source}, corrected", *corrected, needs=needs)(partial(check, False))
            return check

        return declare

    def matching(self, pattern: str) -> tuple[list[Figure], list[Claim]]:
        """The figures and claims that a name or pattern fits; at least one."""
        figures, claims = self.fitting(pattern)
        if not figures and not claims:
            known = [f.id for f in self.figures] + [c.id for c in self.claims]
            raise ArgumentError(f"{self.id} has no figure or claim {pattern!r}. " + suggest(pattern, known))
        return figures, claims

    def fitting(self, pattern: str) -> tuple[list[Figure], list[Claim]]:
        """The figures and claims with this name, or that a pattern like fig4* fits; of figure 1, also its panels."""
        panels = f"{pattern}[a-z]" if pattern[-1:].isdigit() else pattern
        return _fitting(self.figures, pattern) or _fitting(self.figures, panels), _fitting(self.claims, pattern)

    def find_figure(self, id: str) -> Figure:
        for figure in self.figures:
            if figure.id == id:
                return figure
        raise ArgumentError(f"{self.id} has no figure {id!r}. " + suggest(id, [f.id for f in self.figures]))

    def find_claim(self, id: str) -> Claim:
        for claim in self.claims:
            if claim.id == id:
                return claim
        raise ArgumentError(f"{self.id} has no claim {id!r}. " + suggest(id, [c.id for c in self.claims]))

    def _refuse_twice(self, id: str) -> None:
        if id in {f.id for f in self.figures} | {c.id for c in self.claims}:
            raise ArgumentError(f"{self.id} has a figure or claim {id!r} already. Choose another name.")


def _fitting(entries: Sequence[Named], pattern: str) -> list[Named]:
    return [entry for entry in entries if fnmatchcase(entry.id.casefold(), pattern.casefold())]


def _declared_in(module: str) -> Paper:
    found: Paper = importlib.import_module(module).PAPER
    return found
