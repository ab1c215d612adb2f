"""Compiled fast paths, each equal to the generic path in tests. `build` picks one, or None."""

from steppe.dynamics.kernels.two_layer import build as build
