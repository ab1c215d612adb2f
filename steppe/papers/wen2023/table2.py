"""Table 2 of wen2023 as specs, at paper scale and at smoke scale (same data sizes where seconds allow)."""

from dataclasses import replace
from typing import Any

from steppe.experiments._paper import Scale
from steppe.papers.wen2023.training import Row, Training

# Accuracy depends on the seed, so every figure is run for several; the printed 2a, which dies at once, for two.
SEEDS: dict[Scale, int] = {"smoke": 2, "paper": 10}
_FEWER: dict[Scale, dict[str, int]] = {
    "smoke": {"fig2a": 1, "fig2a-printed": 1, "fig10a": 1},
    "paper": {"fig2a-printed": 2},
}


def _gd(lr: float, batch_size: int, weight_decay: float, epochs: float) -> Row:
    return Row(lr, 0.0, batch_size, weight_decay, int(epochs))


def _sam(lr: float, rho: float, epochs: float, **rest: float) -> Row:
    return Row(lr, rho, 1, 0.0, int(epochs), **rest)


_LOGISTIC: dict[str, Any] = {"loss": "logistic:0.2"}
_BALL: dict[str, Any] = {"data": "ball", "d": 10}
_SMALL_START: dict[str, Any] = {"first_layer_scale": 0.01}

PAPER: dict[str, Training] = {
    "fig1a": Training("no-bias", (_gd(0.01, 100, 0.05, 1e5),)),
    "fig1b": Training("no-bias", (_sam(0.01, 0.05, 1e5),)),
    # Table 2 prints ρ = 1 for the second stage of figure 2a, with which the net dies at once; see the claims. 0.6 is
    # our choice, of six tried, for figure 2b to come out (docs/wen2023.md).
    "fig2a": Training("sim-bn", (_sam(0.005, 0.1, 1e5), _sam(0.003, 0.6, 1e5))),
    "fig2a-printed": Training("sim-bn", (_sam(0.005, 0.1, 2e4), _sam(0.003, 1.0, 2e3))),
    "fig4a": Training("bias", (_gd(0.01, 100, 0.05, 1e5),)),
    "fig4b": Training("bias", (_sam(0.01, 0.05, 2e5), _sam(0.01, 0.1, 4e5))),
    "fig5a": Training("bias", (_gd(0.001, 1, 0.05, 1e5),), activation="softplus"),
    "fig5b": Training(
        "bias", (_sam(0.0005, 0.05, 1e5), _sam(0.001, 0.1, 1e5), _sam(0.005, 1.0, 5e3)), activation="softplus"
    ),
    "fig6a": Training("sim-ln", (_sam(0.1, 0.1, 1e5),), **_SMALL_START),
    "fig6b": Training("sim-ln", tuple(_sam(0.01, rho, 5e2, held=10.0) for rho in (0.1, 0.5, 1.0))),
    "fig7a": Training("no-bias", (_sam(0.01, 0.2, 1e5),), **_BALL),
    "fig7b": Training("bias", (_sam(0.01, 0.2, 1e5),), **_BALL),
    "fig8a": Training("no-bias", (_gd(0.1, 10, 0.01, 1e5),), **_LOGISTIC),
    "fig8b": Training("no-bias", (_sam(0.1, 0.2, 1e5),), **_LOGISTIC),
    "fig9a": Training("bias", (_gd(0.01, 1, 0.05, 1e5),), **_LOGISTIC),
    "fig9b": Training("bias", (_sam(0.1, 0.2, 1e5),), **_LOGISTIC),
    "fig10a": Training("sim-bn", (_sam(0.1, 0.2, 4e4),), gamma=1.0, **_LOGISTIC),
    "fig10b": Training("sim-ln", (_sam(1.0, 0.5, 1e3), _sam(1.0, 1.0, 1e5)), **_LOGISTIC, **_SMALL_START),
    "fig11a": Training("bias", (_gd(0.01, 1, 0.05, 1e5),), depth=3),
    "fig11b": Training("bias", (_sam(0.01, 0.05, 1e5),), depth=3),
}

# The same data with narrower nets and fewer epochs reaches the same ends in seconds. Each figure keeps this share of
# its epochs; a figure of 500 epochs is cheap enough to be kept whole. The last stage of figure 5b, with ρ = 1, is left
# out: narrow nets do not survive it.
_SMALL: dict[str, Any] = {"width": 200, "test": 4_000, "per_decade": 10}
_SHARES: dict[str, tuple[int, ...]] = {
    "fig1a": (20_000,), "fig1b": (4_000,), "fig2a": (1_500, 500), "fig2a-printed": (300, 50),
    "fig4a": (20_000,), "fig4b": (10_000, 30_000),
    "fig5a": (4_000,), "fig5b": (4_000, 4_000), "fig6a": (3_000,), "fig6b": (500, 500, 500), "fig7a": (4_000,),
    "fig7b": (8_000,), "fig8a": (4_000,), "fig8b": (4_000,), "fig9a": (4_000,), "fig9b": (8_000,),
    "fig10a": (1_000,), "fig10b": (500, 3_000), "fig11a": (500,), "fig11b": (500,),
}  # fmt: skip


def _smoke(figure: str) -> Training:
    paper = PAPER[figure]
    stages = tuple(replace(row, epochs=epochs) for row, epochs in zip(paper.stages, _SHARES[figure], strict=False))
    return replace(paper, stages=stages, **_SMALL)


SMOKE: dict[str, Training] = {figure: _smoke(figure) for figure in PAPER}


def seeds(figure: str, scale: Scale) -> int:
    return _FEWER[scale].get(figure, SEEDS[scale])


def specs(figure: str) -> dict[Scale, tuple[Training, ...]]:
    """The runs of a figure at each scale, one for each seed."""
    tables: dict[Scale, dict[str, Training]] = {"smoke": SMOKE, "paper": PAPER}
    return {
        scale: tuple(replace(table[figure], seed=seed) for seed in range(seeds(figure, scale)))
        for scale, table in tables.items()
    }
