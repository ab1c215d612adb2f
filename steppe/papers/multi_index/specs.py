"""The experiments of section 6 as specs, at paper scale and at smoke scale."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steppe.experiments._paper import Scale
from steppe.papers.multi_index.alternating import Alternating
from steppe.papers.multi_index.approximate import Approximate
from steppe.papers.multi_index.generalising import Generalising
from steppe.papers.multi_index.interpolators import Interpolators
from steppe.papers.multi_index.scaling import Scaling
from steppe.papers.multi_index.setting import Activation

SCALES: tuple[Scale, ...] = ("smoke", "paper")
ACTIVATIONS: tuple[Activation, ...] = ("relu", "leaky", "quadratic")
NOISE, LOUD, DIRECTIONS = 0.1, 1.0, 5
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"d": 20, "n": 64, "m": 256, "count": 6},
    "paper": {"d": 50, "n": 250, "m": 1000, "count": 20},
}
Runs = dict[Scale, tuple[Interpolators, ...]]
SEEDS: dict[Scale, int] = {"smoke": 1, "paper": 10}


def _runs(*settings: Interpolators, smoke: Mapping[str, Any] = MappingProxyType({})) -> Runs:
    """Every setting with every seed; `smoke` changes those at smoke scale."""
    changes: dict[Scale, dict[str, Any]] = {"smoke": _SIZES["smoke"] | dict(smoke), "paper": _SIZES["paper"]}
    return {
        scale: tuple(
            replace(setting, seed=seed, **changes[scale]) for setting in settings for seed in range(SEEDS[scale])
        )
        for scale in SCALES
    }


def _noiseless_and_noisy(r: int) -> tuple[Interpolators, ...]:
    return tuple(
        Interpolators(activation=activation, r=r, noise=noise) for noise in (0.0, NOISE) for activation in ACTIVATIONS
    )


def _one_sided(r: int) -> tuple[Interpolators, ...]:
    return tuple(Interpolators(activation=a, r=r, noise=LOUD, one_sided=True) for a in ACTIVATIONS)


FIG2 = _runs(*_noiseless_and_noisy(1))
# A small grid shows where the link breaks if it does not end where nothing interpolates.
_MIDDLE = {"low": 0.05, "high": 0.7}
# Inner weights on one side of the true directions, and noise as strong as the signal: where the link breaks.
FIG2_LOUD = _runs(*_one_sided(1), smoke=_MIDDLE)
FIG3 = _runs(*_noiseless_and_noisy(DIRECTIONS))
FIG3_LOUD = _runs(*_one_sided(DIRECTIONS), smoke=_MIDDLE)
FIG4 = _runs(
    Interpolators(link="linear", activation="relu"),
    # With noise nothing fits: n examples in d < n dimensions.
    Interpolators(link="linear", activation="linear"),
    Interpolators(link="quadratic-form", activation="relu", r=DIRECTIONS),
)

# Everything in proportion, the dimension alone, the sample with the width. Quadratic activations span d(d + 1)/2
# dimensions, and n stays well below that.
_GROWN: dict[Scale, tuple[int, ...]] = {"smoke": (24, 48, 96), "paper": (16, 32, 48, 64, 96, 128)}
_DIMENSIONS: dict[Scale, tuple[int, ...]] = {"smoke": (16, 32, 64), "paper": (24, 32, 48, 64, 96, 128)}
_SAMPLES: dict[Scale, tuple[int, ...]] = {"smoke": (24, 48, 96), "paper": (40, 60, 80, 120, 160, 240)}
_DRAWS: dict[Scale, int] = {"smoke": 4, "paper": 10}


def _in_proportion(scale: Scale) -> dict[str, Any]:
    d = _GROWN[scale]
    return {"d": d, "n": tuple(2 * k for k in d), "m": tuple(8 * k for k in d)}


def _dimension(scale: Scale) -> dict[str, Any]:
    d, n = _DIMENSIONS[scale], 96 if scale == "paper" else 32
    return {"d": d, "n": (n,) * len(d), "m": (4 * n,) * len(d)}


def _sample(scale: Scale) -> dict[str, Any]:
    n = _SAMPLES[scale]
    return {"d": (40 if scale == "paper" else 32,) * len(n), "n": n, "m": tuple(4 * k for k in n)}


LAWS: tuple[Activation, ...] = ("relu", "quadratic")
GROWN = {
    scale: tuple(Scaling(activation, **_in_proportion(scale), seeds=_DRAWS[scale]) for activation in LAWS)
    for scale in SCALES
}
DIMENSION = {
    scale: tuple(Scaling(activation, **_dimension(scale), seeds=_DRAWS[scale]) for activation in LAWS)
    for scale in SCALES
}
SAMPLE = {
    scale: tuple(Scaling(activation, **_sample(scale), seeds=_DRAWS[scale]) for activation in LAWS) for scale in SCALES
}
RATE: dict[Scale, tuple[Generalising, ...]] = {
    "smoke": tuple(
        Generalising(activation, d=(16, 32, 48), n=(32, 64, 96), m=(128, 256, 384), seeds=3) for activation in LAWS
    ),
    "paper": tuple(Generalising(activation, **_in_proportion("paper")) for activation in LAWS),
}
APPROXIMATE: dict[Scale, tuple[Approximate, ...]] = {
    "smoke": tuple(
        Approximate(activation, shares=(0.0, 0.4, 0.8, 1.0), d=10, n=50, m=200, seeds=2) for activation in LAWS
    ),
    "paper": tuple(Approximate(activation) for activation in LAWS),
}
ALTERNATING: dict[Scale, tuple[Alternating, ...]] = {
    "smoke": tuple(
        Alternating(activation, bias=bias, d=8, n=24, m=60, rounds=5, rtol=1e-4)
        for bias in (False, True)
        for activation in LAWS
    ),
    "paper": tuple(
        Alternating(activation, bias=bias, noise=noise, seed=seed)
        for bias, noise in ((False, 0.0), (False, NOISE), (True, 0.0))
        for activation in ACTIVATIONS
        for seed in range(2)
    ),
}
