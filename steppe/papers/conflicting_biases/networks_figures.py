"""Figures 1 to 3, 5 to 14 and 17: sweeps of networks, and the appendix's panels for every row of table 1."""

from collections.abc import Callable, Sequence
from typing import Any

from steppe.experiments._paper import Figure, Scale
from steppe.papers.conflicting_biases.drawn import drawn
from steppe.papers.conflicting_biases.networks_scales import smoke, smoke_spec, spec
from steppe.papers.conflicting_biases.networks_setting import Setting
from steppe.papers.conflicting_biases.networks_specs import Swept
from steppe.papers.conflicting_biases.networks_table import Row, rows, shown_in

Numbers = Callable[[Sequence[Any]], dict[str, Any]]
SHARPNESS = ("sharpness", "trace", "adaptive_average", "adaptive_worst", "fisher", "fisher_trace")

# At smoke scale a figure shows the stand-ins of its rows among these: few sweeps, each in several figures.
_BASE = smoke(Setting("fcn", "mnist", "half_mse"))
STAND_INS = {
    "tanh-mse": smoke_spec(smoke(Setting("fcn", "mnist", "half_mse", activation="tanh")), all_sharpness=True),
    "relu-mse": smoke_spec(_BASE),
    "relu-ce": smoke_spec(smoke(Setting("fcn", "mnist", "cross_entropy"))),
}


def stand_in(row: Row) -> Swept:
    if row.setting.loss == "cross_entropy":
        return STAND_INS["relu-ce"]
    return STAND_INS["tanh-mse" if row.setting.activation == "tanh" else "relu-mse"]


def ends_grid(title: str, *quantities: str, fine: bool = False) -> Numbers:
    """A column for each sweep, a row for each quantity."""

    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        from steppe.papers.conflicting_biases.networks_ends import last
        from steppe.papers.conflicting_biases.networks_panels import panel

        grid = [[panel(last(e), quantity, fine=fine, titled=k == 0) for e in entries]
                for k, quantity in enumerate(quantities)]  # fmt: skip
        return {"title": title, "grid": grid}

    return numbers


def goals_grid(entries: Sequence[Any]) -> dict[str, Any]:
    """Figure 2: a column for each loss goal of one sweep."""
    from steppe.papers.conflicting_biases.networks_ends import every_goal
    from steppe.papers.conflicting_biases.networks_panels import panel

    columns = [ends for entry in entries for ends in every_goal(entry)]
    grid = [[panel(ends, q, titled=k == 0) for ends in columns] for k, q in enumerate(("sharpness", "l1"))]
    return {"title": "Fig. 2 · the transition moves with the loss goal", "grid": grid}


def measures_grid(entries: Sequence[Any]) -> dict[str, Any]:
    """Figure 10: a row for each measure of sharpness."""
    return ends_grid("Fig. 10 · other measures of sharpness", *SHARPNESS)(entries)


def paths_grid(entries: Sequence[Any]) -> dict[str, Any]:
    from steppe.papers.conflicting_biases.networks_ends import last
    from steppe.papers.conflicting_biases.networks_panels import path_panel

    quantities = ("sharpness", "l1", "distance_l1", "loss")
    grid = [[path_panel(last(e), quantity, titled=k == 0) for e in entries] for k, quantity in enumerate(quantities)]
    return {"title": "Fig. 13 · on the way", "grid": grid}


def layers_grid(entries: Sequence[Any]) -> dict[str, Any]:
    from steppe.papers.conflicting_biases.networks_ends import last
    from steppe.papers.conflicting_biases.networks_panels import layers_panel

    grid = [[layers_panel(last(e), norm, titled=k == 0) for e in entries] for k, norm in enumerate(("l1", "l2"))]
    return {"title": "Fig. 14 · norms layer by layer", "grid": grid}


def both_grids(title: str) -> Numbers:
    """Appendix I: fine grid above, coarse grid below."""

    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        from steppe.papers.conflicting_biases.networks_ends import last
        from steppe.papers.conflicting_biases.networks_panels import panel

        (entry,) = entries
        quantities = ("sharpness", "l1", "test_loss")
        grid = [[panel(last(entry), q, fine=fine, titled=fine and k == 0) for k, q in enumerate(quantities)]
                for fine in (True, False)]  # fmt: skip
        return {"title": title, "grid": grid}

    return numbers


def figure(
    id: str, title: str, shown: Sequence[str], numbers: Numbers, *, seconds: float, full: bool = False
) -> Figure:
    """`shown`: the panels whose rows it has, as table 1 names them."""
    found = list(dict.fromkeys(shown_in(name) for name in shown))
    specs: dict[Scale, Sequence[Any]] = {
        "smoke": tuple(dict.fromkeys(STAND_INS["tanh-mse"] if full else stand_in(row) for row in found)),
        "laptop": tuple(dict.fromkeys(spec(row, "laptop", all_sharpness=full) for row in found)),
        "paper": tuple(spec(row, "paper", all_sharpness=full) for row in found),
    }
    times: dict[Scale, float] = {"smoke": 10.0 * len(specs["smoke"]), "laptop": 1200.0 * len(found), "paper": seconds}
    return Figure(id, title, specs, numbers, drawn("rates"), times)


def _appendix(row: Row) -> Figure:
    """The panels of one row; at smoke scale by its name only, since the other figures show the same there."""
    name = f"row-{row.name}"
    specs: dict[Scale, Sequence[Any]] = {scale: (spec(row, scale),) for scale in ("smoke", "laptop", "paper")}
    numbers = both_grids(f"Table 1 · {row.name}")
    seconds: dict[Scale, float] = {"smoke": 20 if row.setting.architecture == "fcn" else 60, "laptop": 1200}
    return Figure(
        name, f"appendix I: {row.name}", specs, numbers, drawn("rates"), seconds | {"paper": 36_000},
        by_name=frozenset({"smoke"}),
    )  # fmt: skip


_H = 3600.0
FIGURES = (
    figure("fig1", "sharpness falls and norm grows past the critical rate", ("1a", "1b", "1c"),
           ends_grid("Fig. 1 · sharpness and norm of the ends", "sharpness", "l1"), seconds=60 * _H),
    figure("fig2", "the transition for three loss goals", ("2c",), goals_grid, seconds=10 * _H),
    figure("fig3", "sharpness, nuclear norm and test loss", ("3a", "3b", "3c"),
           ends_grid("Fig. 3 · who generalises best", "sharpness", "nuclear", "test_loss"), seconds=40 * _H),
    figure("fig5", "convolutional networks", ("5a", "5b", "5c"),
           ends_grid("Fig. 5 · convolutional networks", "sharpness", "l1"), seconds=200 * _H),
    figure("fig6", "seeds and scales of the start", ("6a", "6b", "6c"),
           ends_grid("Fig. 6 · seeds and scales of the start", "sharpness", "l1"), seconds=10 * _H),
    figure("fig7", "μP parameterisation", ("7a", "7b", "7c"),
           ends_grid("Fig. 7 · μP parameterisation", "sharpness", "l1"), seconds=4 * _H),
    figure("fig8", "kernel parameterisation", ("8a", "8b", "8c"),
           ends_grid("Fig. 8 · kernel parameterisation", "sharpness", "l1"), seconds=4 * _H),
    figure("fig9", "three norms", ("1a", "3a"),
           ends_grid("Fig. 9 · ℓ1, nuclear and ℓ2 norm", "l1", "nuclear", "l2"), seconds=40 * _H),
    figure("fig10", "six measures of sharpness", ("57", "6c", "3b"), measures_grid, seconds=20 * _H, full=True),
    figure("fig11", "distance to the flow's end", ("1a", "3a"),
           ends_grid("Fig. 11 · distance to the flow's end", "from_flow_l1"), seconds=40 * _H),
    figure("fig12", "distance to the start", ("3a", "3b", "3c"),
           ends_grid("Fig. 12 · distance to the start, and norm", "from_start_l1", "l1"), seconds=40 * _H),
    figure("fig13", "sharpness, norm and loss on the way", ("52", "19"), paths_grid, seconds=10 * _H),
    figure("fig14", "norms layer by layer", ("3a", "3b"), layers_grid, seconds=20 * _H),
    figure("fig17", "tables and sequences", ("17a", "17b", "17c"),
           ends_grid("Fig. 17 · other kinds of data", "sharpness", "l1", "test_loss"), seconds=20 * _H),
    figure("figI.8", "convergence speed and test accuracy", ("52", "19"),
           ends_grid("Appendix I.8 · iterations and test accuracy", "steps", "test_accuracy"), seconds=10 * _H),
    *(_appendix(row) for row in rows().values()),
)  # fmt: skip
