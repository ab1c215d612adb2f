"""Compiled twins of a dynamics on a known network, each equal to the generic path in tests. `build` picks one."""

from steppe.kernels.path import Path
from steppe.kernels.sim_bn import SimBNKernel
from steppe.kernels.three_layer import ThreeLayerKernel
from steppe.kernels.three_layer_relu import ThreeLayerReLUKernel
from steppe.kernels.training import Recipe
from steppe.kernels.two_layer import TwoLayerKernel
from steppe.problem import Problem

__all__ = ["build"]

_KERNELS = (TwoLayerKernel, ThreeLayerReLUKernel, ThreeLayerKernel, SimBNKernel)


def build(problem: Problem, recipe: Recipe | None, key: int | None = None) -> Path | None:
    """A kernel for this problem and dynamics, or None where only the generic path knows them.

    `recipe` is `dynamics.recipe()`: None for a dynamics that no kernel knows. Label noise is drawn from `key`, the key
    of the run.
    """
    if recipe is None:
        return None
    return next((kind(problem, recipe, key) for kind in _KERNELS if kind.fits(problem, recipe, key)), None)


def __dir__() -> list[str]:
    return list(__all__)
