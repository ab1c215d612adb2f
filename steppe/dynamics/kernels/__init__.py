"""Compiled fast paths, each equal to the generic path in tests. `build` picks one, or None."""

from steppe.dynamics.base import Dynamics
from steppe.dynamics.kernels.sim_bn import SimBNKernel
from steppe.dynamics.kernels.three_layer import ThreeLayerKernel
from steppe.dynamics.kernels.three_layer_relu import ThreeLayerReLUKernel
from steppe.dynamics.kernels.two_layer import TwoLayerKernel
from steppe.dynamics.path import Path
from steppe.problems import Problem

_KERNELS = (TwoLayerKernel, ThreeLayerReLUKernel, ThreeLayerKernel, SimBNKernel)


def build(problem: Problem, dynamics: Dynamics, key: int | None = None) -> Path | None:
    """A kernel for this problem and dynamics, or None where only the generic path knows them.

    `key` is that of the run; label noise is drawn from it.
    """
    return next((kind(problem, dynamics, key) for kind in _KERNELS if kind.fits(problem, dynamics, key)), None)
