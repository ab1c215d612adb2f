"""steppe reproduce: figures of papers, from training to picture."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from steppe.cli._shared import Computing, duration, print_json
from steppe.experiments import Figure, Scale


@dataclass(frozen=True)
class Reproduce(Computing):
    """Run what figures show and draw them: PNG, PDF and a JSON of the plotted numbers.

    Examples: steppe reproduce wen2023/fig4b --scale paper
    · steppe reproduce wen2023 (all its figures) · steppe reproduce 'wen2023/fig1*' mulayoff2021/fig3
    · steppe reproduce wen2023/fig4b --set width=200 --set rho=0.2
    """

    targets: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(name="target")] = field(kw_only=True)
    """Figures or papers, as `steppe list` names them; a pattern like 'wen2023/fig1*' too."""
    scale: Scale = "smoke"
    """smoke: seconds. laptop: at most an hour a run, where offered. paper: the paper's own sizes."""
    out: Path = Path("figures")
    """Folder to write to; the files are OUT/PAPER/FIGURE-SCALE.png, .pdf and .json."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """Change a parameter of the runs; may be given several times."""

    def __call__(self) -> int:
        import hashlib

        from steppe.check import ArgumentError
        from steppe.experiments import expected_seconds, labelled_runs, override, write

        figures = list({f.name: f for target in self.targets for f in self._figures(target)}.values())
        if not figures:
            named = ", ".join(self.targets) or "nothing"
            raise ArgumentError(f"{named} is not offered at {self.scale} scale. `steppe list` shows the scales.")
        plan = [
            (figure, [(label, override(spec, self.set)) for label, spec in labelled_runs(figure, self.scale)])
            for figure in figures
        ]
        if not self.json:
            known = [expected_seconds(figure, self.scale) for figure in figures]
            about = f"about {duration(sum(s or 0 for s in known))} of a core where nothing is stored yet"
            unknown = f"; {known.count(None)} not measured before" if None in known else ""
            print(f"{len(figures)} figure(s) at {self.scale} scale: {about}{unknown}")
        entries = iter(self.entries([pair for _, labelled in plan for pair in labelled]))
        suffix = "-" + hashlib.sha256(" ".join(self.set).encode()).hexdigest()[:6] if self.set else ""
        written: list[Path] = []
        for figure, labelled in plan:
            written += write(figure, self.scale, [next(entries) for _ in labelled], self.out, suffix=suffix)
        if self.json:
            print_json([str(path) for path in written])
        else:
            print("\n".join(f"wrote {path}" for path in written))
        return 0

    def _figures(self, target: str) -> list[Figure]:
        """The figures that a name or pattern means, at the wanted scale. Figures of `by_name` need to be named."""
        from steppe.papers import paper

        head, _, pattern = target.partition("/")
        found = paper(head)
        if pattern:
            return [figure for figure in found.find_figures(pattern) if self.scale in figure.runs]
        return [figure for figure in found.figures if figure.offered(self.scale)]
