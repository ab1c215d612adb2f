"""The experiments of mulayoff2021's supplement as specs, at paper scale and at smoke scale.

Not in the supplement, and ours: the data (see `data`), the seeds, the factor of the initialisation in figures 1 and 3,
the warm-up in the experiment on initialisation, and when a run is given up. In figure 3 the start must be sharper than
2/η for nearly all step sizes, or else they all end at one minimum: factor 30. In figure 1 it must lie between the two
limits 2/η, or else tripling η would change nothing: factor 20; since it depends on the data, five seeds are run. In the
experiment on initialisation a warm-up of 5·10⁵ steps lets most runs from moderate starts converge before it ends:
5·10⁴ steps keep them.
"""

from dataclasses import replace

from steppe.experiments._paper import Scale
from steppe.papers.mulayoff2021.descent import Descent

# Every experiment is cut into parts that two cores share and that can be resumed one by one.
FIG1_LR = 1e-4
FACTORS = (15.0, 10.0, 5.0, 3.0, 1.0, 0.75)

_FIG1 = Descent(scale=20.0, low=FIG1_LR, high=FIG1_LR, count=1, below=0.1)
FIG1_SEEDS: dict[Scale, tuple[int, ...]] = {"smoke": (1, 3), "paper": (1, 2, 3, 4, 5)}
_FIG3: dict[Scale, Descent] = {
    "paper": Descent(scale=30.0, low=1e-4, high=0.5, count=200, parts=8, warmup=500_000),
    "smoke": Descent(scale=15.0, low=1e-3, high=0.4, count=12, parts=2, warmup=30_000, max_steps=150_000),
}
_INIT: dict[Scale, Descent] = {
    "paper": Descent(scale=1.0, low=1e-3, high=1.5, count=100, parts=2, warmup=50_000),
    "smoke": Descent(scale=1.0, low=8e-3, high=0.2, count=5, warmup=20_000, max_steps=300_000),
}


def _parts(spec: Descent) -> tuple[Descent, ...]:
    return tuple(replace(spec, part=k) for k in range(spec.parts))


SCALES: tuple[Scale, ...] = ("smoke", "paper")
FIG1: dict[Scale, tuple[Descent, ...]] = {
    scale: tuple(replace(_FIG1, seed=seed, factor=factor) for seed in FIG1_SEEDS[scale] for factor in (1.0, 3.0))
    for scale in SCALES
}
FIG3: dict[Scale, tuple[Descent, ...]] = {scale: _parts(_FIG3[scale]) for scale in SCALES}
INIT: dict[Scale, tuple[Descent, ...]] = {
    scale: tuple(part for factor in FACTORS for part in _parts(replace(_INIT[scale], scale=factor))) for scale in SCALES
}
