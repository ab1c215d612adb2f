"""steppe list: what there is to run."""

from dataclasses import dataclass
from typing import Any

from steppe.cli.common import Output, duration, print_json, print_table
from steppe.experiments._paper import Scale

SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class List(Output):
    """Every paper, figure and claim, with its expected time at each scale.

    Example: steppe list --json
    """

    def __call__(self) -> int:
        from steppe.experiments._paper import papers

        if self.json:
            print_json([entry for paper in papers().values() for entry in _entries(paper)])
            return 0
        for paper in papers().values():
            print(f"{paper.id}: {paper.title}\n")
            figures = [
                (f"{paper.id}/{f.id}", f.title, *(duration(f.seconds[s]) if s in f.seconds else "" for s in SCALES))
                for f in paper.figures
            ]
            print_table("", ("figure", "shows", *SCALES), figures)
            print()
            claims = [
                (f"{paper.id}/{c.id}", c.source, c.statement + (" (misprint)" if c.misprint else ""))
                for c in paper.claims
            ]
            print_table("", ("claim", "source", "statement"), claims)
        return 0


def _entries(paper: Any) -> list[dict[str, Any]]:
    figures = [
        {"kind": "figure", "id": f"{paper.id}/{f.id}", "title": f.title, "seconds": dict(f.seconds)}
        for f in paper.figures
    ]
    claims = [
        {
            "kind": "claim",
            "id": f"{paper.id}/{c.id}",
            "source": c.source,
            "statement": c.statement,
            "expected": c.expected,
            "misprint": c.misprint,
            "figures": [f"{paper.id}/{id}" for id in c.needs],
        }
        for c in paper.claims
    ]
    return [{"kind": "paper", "id": paper.id, "title": paper.title}, *figures, *claims]
