"""Table 1: for each architecture, do all flattest minimisers generalise, and does 1-SAM? The theory comes from explicit
nets, the experiment from the runs of figures 1b, 4b, 2a and 6a."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from steppe.experiments import Figure, Finding
from steppe.figures import table
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER, joint_figure
from steppe.papers.wen2023.figures_1_to_6 import fig1b, fig2a, fig4b, fig6a
from steppe.papers.wen2023.run_claims import NEARLY, accuracy, last
from steppe.papers.wen2023.section_3 import lemma_a2, theorem_3_1

# (architecture, figure, theorem, whether all flattest minimisers generalise, whether 1-SAM does). A trained net
# generalises where the paper calls it perfect, nearly perfect or almost perfect: from an accuracy of 0.9 on.
ROWS = (
    ("2-layer without bias", fig1b, "Theorem 3.1", True, True),
    ("2-layer with bias", fig4b, "Theorem 4.1", False, False),
    ("2-layer, simplified BatchNorm", fig2a, "Theorem 3.2", True, True),
    ("2-layer, simplified LayerNorm", fig6a, "Theorem 5.1", False, True),
)


def worst_flattest(network: str) -> tuple[float, str]:
    """The error on unseen points of the worst flattest net that is known, and how it was found."""
    if network in ("bias", "sim-ln"):
        excess, error = explicit.worst_flattest(network)
        return error, f"of the memorising net, {'at' if excess < 1e-4 else f'{excess:.1%} above'} the least trace"
    if network == "no-bias":
        return float(not theorem_3_1().holds), "of all flattest nets (convex program, d = 4)"
    return float(not lemma_a2().holds), "of all flattest nets of a dictionary (d = 5)"


def numbers(*figures: Sequence[Any]) -> dict[str, Any]:
    rows = []
    for (name, figure, theorem, *_), runs in zip(ROWS, figures, strict=True):
        error, where = worst_flattest(runs[0].spec["network"])
        accuracies = last(runs, "test_accuracy")
        middle, spread = median(accuracies), f"({min(accuracies):.3f} to {max(accuracies):.3f})"
        rows.append(
            [
                name,
                f"{'✓' if error == 0 else '✗'} {theorem}: error {error:.0f} {where}",
                f"{'✓' if middle >= NEARLY else '✗'} {middle:.3f} {spread}",
                f"figure {figure.id.removeprefix('fig')}",
            ]
        )
    return {
        "title": "Table 1, computed",
        "head": ["architecture", "all flattest minimisers generalise?", "1-SAM generalises? (test accuracy)", "runs"],
        "rows": rows,
    }


joint_figure("table1", "the four architectures, theory and experiment", [row[1] for row in ROWS], numbers, table)


def _claim_experiment(name: str, figure: Figure, generalises: bool) -> None:
    PAPER.claim(
        f"table1-{figure.id}", f"Table 1, {name}",
        f"{name}: 1-SAM {'generalises' if generalises else 'does not generalise'}.",
        f"median test accuracy {'≥' if generalises else '<'} {NEARLY}", needs=(figure,),
    )(lambda runs: accuracy(runs, lambda a: (a >= NEARLY) is generalises))  # fmt: skip


def _claim_theory(name: str, network: str, theorem: str, all_generalise: bool) -> None:
    which = "Every flattest minimiser" if all_generalise else "Some flattest minimiser"

    @PAPER.claim(
        f"table1-theory-{network}", f"Table 1, {name}, {theorem}",
        f"{name}: {which} {'makes no error on unseen points' if all_generalise else 'generalises poorly'}.",
        "error 0" if all_generalise else "error > ½ at the least trace",
        control="tests/papers/test_wen2023.py::test_theory_of_table_1",
    )  # fmt: skip
    def check() -> Finding:
        """The error of the worst flattest minimiser."""
        error, where = worst_flattest(network)
        if all_generalise:
            return Finding(error, error == 0, where)
        return Finding(error, error > 0.5 and where.endswith(" at the least trace"), where)


for _name, _figure, _theorem, _all_generalise, _sam_generalises in ROWS:
    _network: Any = _figure.runs["paper"][0]
    _claim_experiment(_name, _figure, _sam_generalises)
    _claim_theory(_name, _network.network, _theorem, _all_generalise)
