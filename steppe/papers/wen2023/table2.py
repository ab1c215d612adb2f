"""Table 2 of wen2023 as specs, at paper scale and at smoke scale (same data sizes where seconds allow)."""

from dataclasses import replace
from typing import Any

from steppe.papers.catalogue import Scale
from steppe.papers.wen2023.training import Row, Training

# Accuracy depends on the seed, so every figure is run for several.
SEEDS: dict[Scale, int] = {"smoke": 3, "paper": 5}

_GD = Row(lr=0.01, rho=0.0, batch_size=100, weight_decay=0.05, epochs=100_000)
_SAM = Row(lr=0.01, rho=0.05, batch_size=1, weight_decay=0.0, epochs=100_000)

PAPER: dict[str, Training] = {
    "fig1a": Training("no-bias", (_GD,)),
    "fig1b": Training("no-bias", (_SAM,)),
    "fig4a": Training("bias", (_GD,)),
    "fig4b": Training("bias", (replace(_SAM, epochs=200_000), replace(_SAM, rho=0.1, epochs=400_000))),
}

# The same data with narrower nets and fewer epochs reaches the same ends in seconds.
_SMALL: dict[str, Any] = {"width": 200, "test": 4_000, "per_decade": 10}
SMOKE: dict[str, Training] = {
    "fig1a": Training("no-bias", (replace(_GD, epochs=20_000),), **_SMALL),
    "fig1b": Training("no-bias", (replace(_SAM, epochs=4_000),), **_SMALL),
    "fig4a": Training("bias", (replace(_GD, epochs=20_000),), **_SMALL),
    "fig4b": Training("bias", (replace(_SAM, epochs=10_000), replace(_SAM, rho=0.1, epochs=30_000)), **_SMALL),
}


def specs(figure: str) -> dict[Scale, tuple[Training, ...]]:
    """The runs of a figure at each scale, one for each seed."""
    tables: dict[Scale, dict[str, Training]] = {"smoke": SMOKE, "paper": PAPER}
    return {
        scale: tuple(replace(table[figure], seed=seed) for seed in range(SEEDS[scale]))
        for scale, table in tables.items()
    }
