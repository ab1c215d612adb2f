"""steppe reproduce: figures of papers, from training to picture."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from steppe.cli._names import Chosen, find
from steppe.cli._shared import Computing, Flag, check_writable, duration, print_json, writing
from steppe.experiments import Figure, Paper, Scale


@dataclass(frozen=True)
class Reproduce(Computing):
    """Run what figures show and draw them: PNG, PDF and a JSON of the plotted numbers.

    Examples: steppe reproduce wen2023/fig4b --scale paper
    · steppe reproduce wen2023 (all its figures) · steppe reproduce 'wen2023/fig1*' mulayoff2021/fig3
    · steppe reproduce wen2023/fig4b --set width=200 --set rho=0.2
    · steppe reproduce 'conflicting-biases/row-*' --scale paper --queue (days; killed, it goes on where it was)
    """

    targets: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(name="target")] = field(kw_only=True)
    """Papers, figures (PAPER/NAME, or NAME alone) or patterns like 'wen2023/fig1*', as `steppe list` names them."""
    scale: Scale = "smoke"
    """smoke: seconds. laptop: at most an hour a run, where offered. paper: the paper's own sizes."""
    out: Path = Path("figures")
    """Folder to write to; the files are OUT/PAPER/FIGURE-SCALE.png, .pdf and .json."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """Change a parameter of the runs; may be given several times. The title and the file names of the figure tell."""

    queue: Flag = False
    """One figure after another, the cheapest first: each is written as soon as its runs are done, and one that fails
    does not stop the others. Exit code 1 if one failed."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError
        from steppe.experiments import expected_seconds, labelled_runs, override
        from steppe.sweep import Interrupted

        if not self.targets:
            raise ArgumentError("name what to reproduce, for example wen2023/fig4b. `steppe list` shows all figures.")
        check_writable("--out", self.out, folder=True)
        chosen = [(one.paper, figure) for one in self._chosen() for figure in one.figures]
        if not chosen:
            named = ", ".join(self.targets)
            raise ArgumentError(f"{named}: no such figure at {self.scale} scale. `steppe list` shows the scales.")
        plan = [
            (figure, [(label, override(spec, self.set)) for label, spec in labelled_runs(figure, self.scale)])
            for _, figure in chosen
        ]
        if not self.json:
            known = [expected_seconds(figure, self.scale) for _, figure in chosen]
            about = f"about {duration(sum(s or 0 for s in known))} of a core where nothing is stored yet"
            unknown = f"; {known.count(None)} not measured before" if None in known else ""
            print(f"{len(chosen)} figure(s) at {self.scale} scale: {about}{unknown}")
        plan.sort(key=lambda one: (expected_seconds(one[0], self.scale) or math.inf) if self.queue else 0.0)
        written: list[Path] = []
        failed: list[str] = []
        for part in [[one] for one in plan] if self.queue else [plan]:
            try:
                written += self._write(part)
            except Exception as error:
                if not self.queue or isinstance(error, Interrupted):
                    raise
                failed.append(f"{part[0][0].name}: {error}")
                print(f"failed: {failed[-1]}", file=sys.stderr)
        if self.json:
            print_json([str(path) for path in written])
        else:
            print("\n".join([*(f"wrote {path}" for path in written), *self._about_changes(chosen)]))
        return 1 if failed else 0

    def _write(self, plan: "Sequence[tuple[Figure, Sequence[tuple[str, Any]]]]") -> list[Path]:
        """Compute the runs of these figures that are not in the store, and draw the figures."""
        from steppe.experiments import write

        entries = iter(self.entries([pair for _, labelled in plan for pair in labelled]))
        with writing("--out", self.out):
            return [
                path
                for figure, labelled in plan
                for path in write(figure, self.scale, [next(entries) for _ in labelled], self.out, changes=self.set)
            ]

    def _chosen(self) -> list[Chosen]:
        """What the names mean, at the wanted scale. Figures of `by_name` are drawn only if a name means them alone."""
        from steppe.papers import names

        whole = set(names()) & set(self.targets)
        return [
            Chosen(p, [f for f in figures if (f.offered if p.id in whole else f.runs.__contains__)(self.scale)], claims)
            for p, figures, claims in find(self.targets)
        ]

    def _about_changes(self, chosen: Sequence[tuple[Paper, Figure]]) -> list[str]:
        """Claims on changed runs would not be the paper's."""
        if not self.set:
            return []
        named = [f"{p.id}/{claim.id}" for p, figure in chosen for claim in p.claims if figure in claim.needs]
        about = f"changed: {', '.join(self.set)}. These are not the paper's runs"
        claims = f", and its claims do not apply to them: {', '.join(named)}" if named else ""
        return [f"{about}{claims}."]
