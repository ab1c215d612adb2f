"""Functions that a user might sweep, named MODULE:FUNCTION."""

import time

import numpy as np


def quadratic(curvature: float = 1.0, seed: int = 0):
    """½ λ w² from a random start: GD multiplies w by 1 − ηλ."""
    import jax.numpy as jnp

    import steppe

    w = np.random.default_rng(seed).normal(size=1)
    x = np.array([np.sqrt(curvature)])
    return steppe.Problem(lambda w, x: w * x, jnp.asarray(w), x, np.zeros(1), steppe.losses.half_mse)


def numbers(a: float, b: float = 2.0):
    if a == 13:
        raise ValueError("thirteen")
    return {"product": a * b, "column": np.arange(3) * a}


def slow(seed: int, seconds: float = 0.05):
    time.sleep(seconds)
    return {"square": seed**2}


def greedy(seed: int):
    held = np.ones(1 << 26)  # 512 MiB
    time.sleep(20)
    return {"sum": held.sum()}


def endless(seed: int):
    time.sleep(1000)
