"""steppe reproduce: a figure of a paper, from training to picture."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from steppe.cli.common import duration, print_json
from steppe.cli.computing import Computing
from steppe.experiments._paper import Scale


@dataclass(frozen=True)
class Reproduce(Computing):
    """Run what a figure shows and draw it: PNG, PDF and a JSON of the plotted numbers.

    Examples: steppe reproduce wen2023/fig4b --scale paper
    · steppe reproduce wen2023 (all its figures)
    · steppe reproduce wen2023/fig4b --set width=200 --set rho=0.2
    """

    target: tyro.conf.Positional[str] = field(kw_only=True)
    """Figure or paper, as `steppe list` names it."""
    scale: Scale = "smoke"
    """smoke: seconds. laptop: at most an hour a run, where offered. paper: the paper's own sizes."""
    out: Path = Path("figures")
    """Folder to write to; the files are OUT/PAPER/FIGURE-SCALE.png, .pdf and .json."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """Change a parameter of the runs; may be given several times."""

    def __call__(self) -> int:
        import hashlib

        from steppe.check import ArgumentError
        from steppe.experiments import _reproduce as reproduce
        from steppe.experiments._paper import figures
        from steppe.experiments._verify import figure_specs

        named = "/" in self.target
        wanted = [
            (paper, figure)
            for paper, figure in figures(self.target)
            if (self.scale in figure.specs if named else figure.offered(self.scale))
        ]
        if not wanted:
            raise ArgumentError(f"{self.target} is not offered at {self.scale} scale. `steppe list` shows the scales.")
        plan = [
            (
                paper,
                figure,
                [(label, reproduce.override(s, self.set)) for label, s in figure_specs(paper, figure, self.scale)],
            )
            for paper, figure in wanted
        ]
        if not self.json:
            seconds = sum(figure.seconds[self.scale] for _, figure in wanted)
            print(
                f"{len(wanted)} figure(s) at {self.scale} scale: about {duration(seconds)} where nothing is stored yet"
            )
        entries = iter(self.entries([pair for *_, labelled in plan for pair in labelled]))
        suffix = "-" + hashlib.sha256(" ".join(self.set).encode()).hexdigest()[:6] if self.set else ""
        written: list[Path] = []
        for paper, figure, labelled in plan:
            runs = [next(entries) for _ in labelled]
            written += reproduce.write(paper, figure, self.scale, runs, self.out, suffix=suffix)
        if self.json:
            print_json([str(path) for path in written])
        else:
            print("\n".join(f"wrote {path}" for path in written))
        return 0
