"""Figures that look at the runs of several others."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments._paper import Scale
from steppe.papers.wen2023.table2 import seeds, specs
from steppe.papers.wen2023.training import Training


def joined(figures: Sequence[str]) -> dict[Scale, tuple[Training, ...]]:
    """The runs of all of them, one figure after the other."""
    scales: tuple[Scale, ...] = ("smoke", "paper")
    return {scale: tuple(s for id in figures for s in specs(id)[scale]) for scale in scales}


def parted(figures: Sequence[str], entries: Sequence[Any]) -> dict[str, list[Any]]:
    """The finished runs by figure; the number of runs tells the scale."""
    scales: tuple[Scale, ...] = ("smoke", "paper")
    counts = next(c for scale in scales if sum(c := [seeds(id, scale) for id in figures]) == len(entries))
    runs = iter(entries)
    return {id: [next(runs) for _ in range(count)] for id, count in zip(figures, counts, strict=True)}
