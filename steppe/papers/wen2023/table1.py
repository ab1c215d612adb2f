"""Table 1: for each architecture, do all flattest minimisers generalise, and does 1-SAM? Theory from explicit nets,
experiment from the runs of figures 1b, 4b, 2a and 6a."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.wen2023.claims.checks import last, median
from steppe.papers.wen2023.groups import joined, parted

# (architecture, figure, theorem, whether all flattest minimisers generalise, whether 1-SAM does)
ROWS = (
    ("2-layer without bias", "fig1b", "Theorem 3.1", True, True),
    ("2-layer with bias", "fig4b", "Theorem 4.1", False, False),
    ("2-layer, simplified BatchNorm", "fig2a", "Theorem 3.2", True, True),
    ("2-layer, simplified LayerNorm", "fig6a", "Theorem 5.1", False, True),
)
FIGURES = tuple(row[1] for row in ROWS)
# What the paper calls perfect, nearly perfect or almost perfect generalisation of a trained net.
GENERALISES = 0.9


def theory(network: str) -> tuple[float, float]:
    """(excess trace over the least, test error on all unseen points) of the worst flattest interpolator we can build.

    With bias and with LayerNorm that is the memorising net; without bias, and with BatchNorm, where the theorems
    exclude one, it is the net that generalises, and its trace says how near the least one it comes.
    """
    from steppe.papers.wen2023 import cube as built

    return built.worst_flattest(network)


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    rows = []
    for (name, figure, theorem, *_), runs in zip(ROWS, parted(FIGURES, entries).values(), strict=True):
        excess, error = theory(runs[0].spec["network"])
        accuracies = last(runs, "test_accuracy")
        middle, spread = median(accuracies), f"({min(accuracies):.3f} to {max(accuracies):.3f})"
        rows.append(
            [
                name,
                f"{'✓' if error == 0 else '✗'} {theorem}: error {error:.2f} {_where(excess)}",
                f"{'✓' if middle >= GENERALISES else '✗'} {middle:.3f} {spread}",
                f"figure {figure.removeprefix('fig')}",
            ]
        )
    return {
        "title": "Table 1, computed",
        "head": ["architecture", "all flattest minimisers generalise?", "1-SAM generalises? (test accuracy)", "runs"],
        "rows": rows,
    }


def _where(excess: float) -> str:
    """How far above the least trace. Without bias only a bound of it is known, which no net need attain."""
    if excess < 1e-4:
        return "at the least trace"
    return f"at {1 + excess:.2g} times a lower bound of the trace"


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import table

    return table(numbers)


FIGURE = Figure(
    id="table1",
    title="the four architectures, theory and experiment",
    specs=joined(FIGURES),
    numbers=numbers,
    draw=draw,
    seconds={"smoke": 1, "paper": 1},
)
