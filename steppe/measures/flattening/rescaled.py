"""The same function with other parameters: neurons multiplied by factors of one's own."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.measures.flattening.neurons import Arrays, Neurons, exponents
from steppe.problems import Problem


def rescaled(problem: Problem, w: Any, layers: Sequence[Neurons], scales: Sequence[Any]) -> Array:
    """w with what leads into each neuron multiplied by its factor s > 0, and what leads out of it by s^{−degree}.

    `scales` has a vector for each of the `layers`, as `Flattened` has.

    >>> import steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.problems.networks.TwoLayer(bias=False)
    >>> p = Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> rescaled(p, p.w0, [Neurons({"W1": 0}, {"W2": 0})], [[0.5]]).tolist()
    [4.0, 2.0]
    """
    vector = problem.vector(w)
    A, widths = exponents(Arrays.of(problem.unravel), layers, vector.size)
    factors = [np.asarray(s, dtype=float) for s in scales]
    got = [s.shape for s in factors]
    if got != [(m,) for m in widths] or not all((np.isfinite(s) & (s > 0)).all() for s in factors):
        rule = f"{len(widths)} vectors of {widths} finite numbers > 0, one a neuron"
        check.refuse("scales", rule, got, "Pass one factor for each neuron of each layer.")
    logs = np.log(np.concatenate(factors)) if factors else np.empty(0)
    return jnp.asarray(np.asarray(vector, dtype=float) * np.exp(A @ logs), vector.dtype)
