"""Does 1-SAM leave a flattest net? From the one that memorises and from the one that generalises, at many ρ/‖W₁‖.

Both have 100 neurons and the least trace; a net of four is split into 25 copies. Besides, there are 100 spare neurons,
small and with W₂ = 0. `sharing` of `recorded` says on which share of the examples a neuron fires: 1/100 in the first,
about ¼ in the second. A run has left its start once its sharing has crossed their geometric mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from steppe.experiments import Experiment, Finding, Shown
from steppe.figures import panels, series
from steppe.papers.wen2023._paper import PAPER
from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Escape(Experiment, kind="wen2023/escape"):
    """1-SAM from a flattest net on P_xor, with ρ = `radius` · ‖(W₁, b₁)‖.

    The start has noise of `noise` times the root mean square of each parameter array: at an exact interpolator every
    gradient is 0, and SAM rests. The first layer of the `spare` neurons, with entries as those at the start of a
    training, has `spare_norm` of the norm of the others. With LayerNorm ‖(W₁, b₁)‖ is held at its value, 10.
    """

    network: Literal["bias", "sim-ln"]
    start: Literal["memorising", "generalising"]
    radius: float
    seed: int = 0
    d: int = 30
    n: int = 100
    epochs: int = 3_000
    lr: float = 0.01
    noise: float = 1e-4
    spare: int = 100
    spare_norm: float = 1e-6
    precision: Literal["float32", "float64"] = "float32"

    def run(self, checkpoint: Checkpoint | None, progress: Callable[[Any], None] | None) -> Computed:
        import numpy as np

        from steppe import data, losses, measures, networks, until, when
        from steppe.dynamics import SAM, Projected, run
        from steppe.papers.wen2023 import recorded
        from steppe.problem import Problem

        split = data.xor(self.d, self.n, test=10_000, replace=False, key=np.random.default_rng([self.seed, 0]))
        params = flattest(self.network, self.start, split.x, split.y)
        rng = np.random.default_rng([self.seed, 1])
        params = {
            name: a + self.noise * np.sqrt(np.mean(a**2)) * rng.standard_normal(a.shape) for name, a in params.items()
        }
        length = _norm(params)
        spare = networks.TwoLayer().init(self.d, max(self.spare, 1), rng, np.float64)
        scale = self.spare_norm * length / _norm(spare)
        for name, factor in {"W1": scale, "b1": scale, "W2": 0.0}.items():
            params[name] = np.concatenate([params[name], factor * spare[name][: self.spare]])
        params = {name: a.astype(self.precision) for name, a in params.items()}
        network = networks.TwoLayer() if self.network == "bias" else networks.SimLN(_EPS)
        problem = Problem(network, params, split.x, split.y, losses.mse)
        test = problem.on(split.x_test, split.y_test)
        length = _norm(params)
        step: Any = SAM(self.lr, self.radius * length)
        if self.network == "sim-ln":
            step = Projected(step, {"W1", "b1"}, length)
        done = run(
            problem,
            step,
            stop=until.epochs(self.epochs),
            record={
                "train_loss": measures.loss,
                "test_accuracy": lambda p, w: measures.accuracy(test, w),
                "trace": lambda p, w: measures.trace(p, w).parts["gauss_newton"].value,
                "sharing": recorded.sharing,
            },
            when=when.logarithmic(per_decade=8, in_epochs=True),
            progress=progress,
            checkpoint=checkpoint,
            key=self.seed,
        )
        final = {name: column[-1].item() for name, column in done.records.items()}
        return Computed(done.records, {}, {"outcome": done.outcome, "final": final})


_EPS = 1e-5


def flattest(network: str, start: str, x: Any, y: Any) -> dict[str, Any]:
    """The flattest net of that kind on x and y with one neuron for each example. With LayerNorm ‖(W₁, b₁)‖ = 10."""
    import numpy as np

    from steppe.flattening import memorising
    from steppe.papers.wen2023.theory import generalising

    normalised = network == "sim-ln"
    if start == "memorising":
        return _scaled(memorising.sim_ln(x, y, _EPS)) if normalised else memorising.two_layer(x, y)
    d, copies = x.shape[1], len(y) // 4
    params = generalising.sim_ln_xor(d, _EPS) if normalised else generalising.xor(d)
    # Copies with weights divided by √k on both sides have the same output and the same trace; a normalised layer keeps
    # its length, and the gradient of W₂ its own.
    split = {name: np.repeat(a, copies, axis=0) / np.sqrt(copies) for name, a in params.items()}
    return _scaled(split) if normalised else split


def _norm(params: dict[str, Any]) -> float:
    return math.sqrt(sum(float((params[name].astype(float) ** 2).sum()) for name in ("W1", "b1")))


def _scaled(params: dict[str, Any]) -> dict[str, Any]:
    factor = 10 / _norm(params)
    return params | {name: factor * params[name] for name in ("W1", "b1")}


def left(e: Any) -> float | None:
    """The first recorded epoch at which the sharing is on the other side of √(1/n · ¼); None if it never is. A run that
    diverged has not left for another minimum."""
    middle, memorises = math.sqrt(0.25 / e.spec["n"]), e.spec["start"] == "memorising"
    for epoch, sharing in zip(e.curves["epoch"], e.curves["sharing"], strict=True):
        if bool(sharing > middle) == memorises:
            return float(epoch)
    return None


_RADII = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
_LABELS: dict[tuple[Literal["bias", "sim-ln"], Literal["memorising", "generalising"]], tuple[str, str]] = {
    ("bias", "memorising"): ("bias, from memorising", "red"),
    ("sim-ln", "memorising"): ("LayerNorm, from memorising", "blue"),
    ("bias", "generalising"): ("bias, from generalising", "orange"),
    ("sim-ln", "generalising"): ("LayerNorm, from generalising", "sky"),
}


def _runs(radii: Sequence[float], seeds: int, **rest: Any) -> tuple[Escape, ...]:
    return tuple(
        Escape(network, start, radius, seed=seed, **rest)
        for seed in range(seeds)
        for network, start in _LABELS
        for radius in radii
    )


def by_start(runs: Sequence[Any]) -> dict[tuple[str, str], dict[float, list[Any]]]:
    found: dict[tuple[str, str], dict[float, list[Any]]] = {}
    for e in runs:
        found.setdefault((e.spec["network"], e.spec["start"]), {}).setdefault(e.spec["radius"], []).append(e)
    return found


def _rate(e: Any) -> float:
    """One over the epoch of escape; 0 for a run that stayed."""
    epoch = left(e)
    return 0.0 if epoch is None else 1 / max(epoch, 1.0)


def escape_numbers(runs: Sequence[Any]) -> dict[str, Any]:
    """Diverged runs are crosses. A run that stayed is drawn below the slowest rate that could have been seen. The four
    series are set apart a little in both directions, where they would cover each other."""
    by, epochs = by_start(runs), runs[0].spec["epochs"]
    rates, accuracies = [], []
    for k, (key, (label, colour)) in enumerate(_LABELS.items()):
        aside, floor = 1.07 ** (k - 1.5), 0.5 * 0.8**k / epochs
        for kind, diverged in (("points", False), ("crosses", True)):
            chosen = [e for found in by[key].values() for e in found if (e.result["outcome"] == "diverged") is diverged]
            x = [aside * e.spec["radius"] for e in chosen]
            if not diverged:
                rates.append(series(x, [max(0.9**k * _rate(e), floor) for e in chosen], kind, colour))
            accuracies.append(series(x, [e.result["final"]["test_accuracy"] for e in chosen], kind, colour))
        stable = {
            r: found for r, found in sorted(by[key].items()) if all(e.result["outcome"] != "diverged" for e in found)
        }
        x = [aside * r for r in stable]
        rates.append(
            series(
                x, [max(0.9**k * median(map(_rate, found)), floor) for found in stable.values()], "line", colour, label
            )
        )
        ends = [median(e.result["final"]["test_accuracy"] for e in found) for found in stable.values()]
        accuracies.append(series(x, ends, "line", colour))
    radius = "ρ over the norm of the first layer"
    return {
        "title": "Escape of 1-SAM from flattest nets (stayed: at the bottom; crosses on the right: diverged)",
        "panels": [
            {"x": radius, "y": "rate of escape (1/epochs)", "log": "xy", "series": rates},
            {"x": radius, "y": "test accuracy at the end", "log": "x", "series": accuracies},
        ],
    }


escape = PAPER.figure(
    "escape",
    "escape of 1-SAM from flattest nets that memorise or generalise",
    runs={"smoke": _runs((1e-3,), 1, epochs=200), "paper": _runs(_RADII, 5)},
    show=Shown(escape_numbers, panels),
)


@PAPER.claim(
    "escape-layer-norm", "Question 2",
    "With LayerNorm 1-SAM leaves the flattest net that memorises at every ρ tried, and never the one that generalises.",
    "share of runs that left: 1 from the first, 0 from the second", needs=(escape,),
    control="tests/papers/wen2023/test_minimisers.py::test_escape",
)  # fmt: skip
def layer_norm_leaves(runs: Sequence[Any]) -> Finding:
    return _shares_that_left(runs, "sim-ln", 1.0)


@PAPER.claim(
    "escape-bias", "Question 2",
    "With bias 1-SAM leaves neither the flattest net that memorises nor the one that generalises, at any ρ for which "
    "it is stable.", "share of stable runs that left: 0 from both, with 2 stable radii or more (smaller runs: 1)",
    needs=(escape,), control="tests/papers/wen2023/test_minimisers.py::test_escape",
)  # fmt: skip
def bias_stays(runs: Sequence[Any]) -> Finding:
    return _shares_that_left(runs, "bias", 0.0)


def _shares_that_left(runs: Sequence[Any], network: str, expected: float) -> Finding:
    """The share of stable runs that left the net that memorises; none may leave the one that generalises."""
    by, shares, listed = by_start(runs), {}, []
    enough = True
    for start in ("memorising", "generalising"):
        radii = by[network, start]
        stable = {r: found for r, found in radii.items() if all(e.result["outcome"] != "diverged" for e in found)}
        chosen = [e for found in stable.values() for e in found]
        shares[start] = sum(left(e) is not None for e in chosen) / len(chosen) if chosen else float("nan")
        enough &= len(stable) >= min(2, len(radii))
        listed.append(f"{start}: {shares[start]:.0%} of {len(chosen)}, ρ/‖W₁‖ up to {max(stable, default=0):g}")
    holds = enough and shares["memorising"] == expected and shares["generalising"] == 0
    return Finding(shares["memorising"], holds, "; ".join(listed))
