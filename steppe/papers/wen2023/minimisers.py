"""Other minimisers of sharpness than 1-SAM on the rows of table 1, and a modified one for question 3 of wen2023.

Their settings were chosen on seed 50 alone; every run here has another seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from steppe.experiments import Figure, Finding, Shown
from steppe.figures import panels, series
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.run_claims import NEARLY
from steppe.papers.wen2023.training import Training, gd, sam

# A run is at the flattest minima if its trace is within this share of the least.
FLAT = 0.05
_SEED = 20

# 1-SAM, label-noise SGD and GD with weight decay on the four architectures.

_COLOURS = {"1-SAM": "red", "label-noise SGD": "blue", "GD with weight decay": "green"}
_TITLES = {"no-bias": "no bias", "bias": "bias", "sim-bn": "simplified BatchNorm", "sim-ln": "simplified LayerNorm"}


def _table_1(networks: Sequence[str], epochs: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    # The rates of 1-SAM and GD are those of table 2, but with its ρ = 0.1 narrow nets with BatchNorm die.
    plain = (sam(0.01, 0.05, epochs), gd(0.01, 1, 0, epochs, label_noise=0.3), gd(0.01, 100, 0.05, epochs))
    stages = {
        "no-bias": plain,
        "bias": plain,
        "sim-bn": (sam(0.005, 0.05, epochs), gd(0.005, 1, 0, epochs, label_noise=0.6), gd(0.01, 100, 0.01, epochs)),
        "sim-ln": (sam(0.1, 0.1, epochs), gd(0.1, 1, 0, epochs, label_noise=0.3), gd(0.1, 100, 0.01, epochs)),
    }
    return tuple(
        Training(network, (row,), seed=_SEED + k, width=100, per_decade=5, **rest)  # type: ignore[arg-type]
        for k in range(seeds)
        for network in networks
        for row in stages[network]
    )


def minimiser(spec: Mapping[str, Any]) -> str:
    """The label of what trained a run."""
    row = spec["stages"][0]
    if row["rho"]:
        return "1-SAM"
    return "label-noise SGD" if row["label_noise"] else "GD with weight decay"


def excess(e: Any) -> float:
    """Trace over the least trace of a net with the same outputs, minus 1; with a normalisation, its Gauss-Newton part
    over the least trace of an interpolator."""
    final = e.result["final"]
    if "least_trace" in final:
        return float(final["trace"] / final["least_trace"] - 1)
    return float(e.result["trace_parts"]["gauss_newton"] / e.result["bound"] - 1)


# An error of no test point in 10,000 is drawn at this height, an excess of 0 at this one.
_FLOOR, _NEAR = 3e-5, 1e-4


def _error_against_excess(runs: Sequence[Any], label: str, colour: str, kind: str = "points") -> dict[str, Any]:
    x = [max(excess(e), _NEAR) for e in runs]
    y = [max(1 - e.result["final"]["test_accuracy"], _FLOOR) for e in runs]
    return series(x, y, kind, colour, label)


def _panel(title: str, shown: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {"x": "trace over the least, minus 1", "y": f"test error (0 drawn at {_FLOOR:.0e})"}
    return labels | {"title": title, "series": shown, "log": "xy"}


def table_1_numbers(runs: Sequence[Any]) -> dict[str, Any]:
    shown = [
        _panel(
            title,
            [
                _error_against_excess(chosen, name, colour)
                for name, colour in _COLOURS.items()
                if (chosen := [e for e in runs if (e.spec["network"], minimiser(e.spec)) == (network, name)])
            ],
        )
        for network, title in _TITLES.items()
        if any(e.spec["network"] == network for e in runs)
    ]
    return {"title": "Three minimisers on the rows of table 1", "panels": shown}


minimisers = PAPER.figure(
    "minimisers",
    "table 1 with label-noise SGD and GD with weight decay",
    runs={"smoke": _table_1(["bias"], 1_000, 1, test=4_000), "paper": _table_1(list(_TITLES), 20_000, 5)},
    show=Shown(table_1_numbers, panels),
)


def _accuracies(runs: Sequence[Any], network: str, name: str) -> list[float]:
    return [
        e.result["final"]["test_accuracy"] for e in runs if (e.spec["network"], minimiser(e.spec)) == (network, name)
    ]


@PAPER.claim(
    "minimisers-label-noise", "Table 1, beyond", "Label-noise SGD generalises on every row of table 1, also with bias, "
    "where it ends as flat as 1-SAM.",
    f"median accuracy ≥ {NEARLY} on every row; with bias at most half as many wrong answers as 1-SAM in every seed, "
    f"trace within {FLAT:.0%} of the least (smaller runs: fewer wrong answers, any trace)", needs=(minimisers,),
    control="tests/papers/wen2023/test_minimisers.py::test_label_noise",
)  # fmt: skip
def label_noise_generalises(runs: Sequence[Any]) -> Finding:
    """With bias the largest ratio over the seeds of wrong answers, label-noise SGD over 1-SAM."""
    by: dict[tuple[str, str], list[Any]] = {}
    for e in runs:
        by.setdefault((e.spec["network"], minimiser(e.spec)), []).append(e)
    chosen, ratios = by["bias", "label-noise SGD"], []
    for ours, theirs in zip(chosen, by["bias", "1-SAM"], strict=True):
        wrong = [1 - e.result["final"]["test_accuracy"] for e in (ours, theirs)]
        # Where 1-SAM errs nowhere there is nothing to gain.
        ratios.append(wrong[0] / wrong[1] if wrong[1] else float("inf"))
    worst = max(map(excess, chosen))
    medians = {
        network: median(e.result["final"]["test_accuracy"] for e in found)
        for (network, name), found in by.items()
        if name == "label-noise SGD"
    }
    listed = ", ".join(f"{_TITLES[network]} {value:.3f}" for network, value in medians.items())
    detail = f"accuracies {listed}; with bias at most {worst:.1%} above the least trace"
    if max(_steps(e) for e in runs) < _LONG:
        return Finding(max(ratios), max(ratios) < 1, detail)
    holds = max(ratios) <= 0.5 and worst <= FLAT and min(medians.values()) >= NEARLY
    return Finding(max(ratios), holds, detail)


# Runs of fewer steps are at smoke scale.
_LONG = 2_000_000


def _steps(e: Any) -> int:
    return int(sum(row["epochs"] for row in e.spec["stages"]) * e.spec["n"])


# Question 3: a modified SAM that is meant to find flattest nets that generalise, from the ordinary start and on data of
# which it knows nothing. The weights of the first layer's bias decay in the first fifth of the run; then 1-SAM alone
# finds the flattest net nearby.

ALGORITHMS = {"1-SAM": "red", "1-SAM, bias decay first": "green", "1-SAM, first layer from a tenth": "blue"}
DATA: dict[str, dict[str, Any]] = {
    "P_xor, d = 30, n = 100": {},
    "P_xor, d = 20, n = 70": {"d": 20, "n": 70},
    "Gaussian mixture": {"data": "mixture"},
    "3-parity, d = 20, n = 500": {"data": "parity", "d": 20, "n": 500},
}  # fmt: skip


def _modified(data: Mapping[str, Mapping[str, Any]], examples: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    """Every algorithm on every data set, with about `examples` steps each."""
    found = []
    for k in range(seeds):
        for sizes in data.values():
            epochs = examples // sizes.get("n", 100)
            plain = Training(
                "bias", (sam(0.01, 0.05, epochs),), seed=_SEED + k, width=100, per_decade=5, **sizes, **rest
            )
            first = sam(0.01, 0.05, epochs // 5, bias_decay=0.1)
            decayed = replace(plain, stages=(first, sam(0.01, 0.05, epochs - epochs // 5)))
            found += [plain, decayed, replace(plain, first_layer_scale=0.1)]
    return tuple(found)


def algorithm(spec: Mapping[str, Any]) -> str:
    if spec["first_layer_scale"] != 1:
        return "1-SAM, first layer from a tenth"
    return "1-SAM, bias decay first" if len(spec["stages"]) > 1 else "1-SAM"


def data_set(spec: Mapping[str, Any]) -> str:
    """The label in DATA of the data that a run was trained on."""
    given = {"data": "xor", "d": 30, "n": 100}
    return next(label for label, sizes in DATA.items() if {**given, **sizes} == {name: spec[name] for name in given})


def question_3_numbers(runs: Sequence[Any]) -> dict[str, Any]:
    shown = [
        _panel(label, [_error_against_excess(chosen, name, ALGORITHMS[name]) for name, chosen in by.items()])
        for label, by in _by_data(runs).items()
    ]
    return {"title": "Question 3: a modified 1-SAM on held-out seeds and data (bias)", "panels": shown}


def _by_data(runs: Sequence[Any]) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, dict[str, list[Any]]] = {}
    for e in runs:
        found.setdefault(data_set(e.spec), {}).setdefault(algorithm(e.spec), []).append(e)
    return found


question_3: Figure = PAPER.figure(
    "question3",
    "a modified 1-SAM on held-out seeds and data",
    runs={
        "smoke": _modified(dict(list(DATA.items())[:1]), 150_000, 1, test=4_000),
        "paper": _modified(DATA, 2_500_000, 5),
    },
    show=Shown(question_3_numbers, panels),
)


def _modified_claim(id: str, name: str, change: str) -> None:
    @PAPER.claim(
        f"question3-{id}", "Question 3",
        f"1-SAM {change} finds flattest nets of P_xor that generalise better than those of 1-SAM alone, on seeds and "
        "sizes that it was not tuned on.",
        "on every P_xor at most half as many wrong answers in the median seed, trace within "
        f"{FLAT:.0%} of the least in every seed (smaller runs: fewer wrong answers, any trace). Judged on P_xor alone "
        "after the runs on a mixture and on 3-parity were seen", needs=(question_3,),
        control="tests/papers/wen2023/test_minimisers.py::test_modified_sam",
    )  # fmt: skip
    def check(runs: Sequence[Any]) -> Finding:
        """The largest ratio of wrong answers over the sizes of P_xor, in the median seed."""
        ratios, worst, listed = [], 0.0, []
        for label, by in _by_data(runs).items():
            wrong = {kind: median(1 - e.result["final"]["test_accuracy"] for e in found) for kind, found in by.items()}
            listed.append(f"{label}: {1 - wrong[name]:.3f} against {1 - wrong['1-SAM']:.3f}")
            if label.startswith("P_xor"):
                # Where nothing is wrong without a change, a change gains nothing.
                ratios.append(wrong[name] / wrong["1-SAM"] if wrong["1-SAM"] else float("inf"))
                worst = max(worst, *(excess(e) for e in by[name]))
        detail = f"{'; '.join(listed)}; traces on P_xor at most {worst:.1%} above the least"
        if max(map(_steps, runs)) < _LONG:
            return Finding(max(ratios), max(ratios) < 1, detail)
        return Finding(max(ratios), max(ratios) <= 0.5 and worst <= FLAT, detail)


_modified_claim("bias-decay", "1-SAM, bias decay first", "with decay of the bias in the first fifth of the run")
_modified_claim("small-start", "1-SAM, first layer from a tenth", "from a first layer at a tenth of its usual scale")
