"""Appendix H.7: what its parameterisations of the last layer do as the width grows."""

import jax
import jax.numpy as jnp
import numpy as np

from steppe.experiments._paper import Finding
from steppe.networks import FCN, kernel, mup
from steppe.networks._architecture import Scaled

_WIDTHS = (64, 256, 1024)
_DRAWS, _STEPS = 20, 3

# One draw at the least width changes an exponent by about this.
_TOLERANCE = 0.15

# The last layers are printed without the 1/√n that the hidden ones have.
_PRINTED = {mup: kernel, kernel: Scaled("kernel as printed", -0.5)}


def outputs_of_kernel(*, as_printed: bool) -> Finding:
    """The power of the width with which the outputs of the kernel parameterisation grow at the start."""
    sizes, x = [], jnp.asarray(np.random.default_rng(0).normal(size=(8, 10)))
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=_PRINTED[kernel] if as_printed else kernel, bias=False)
        draws = (network.init((10,), 2, np.random.default_rng(k), np.float64) for k in range(_DRAWS))
        sizes.append(float(np.sqrt(np.mean([np.mean(np.square(network(w, x))) for w in draws]))))
    return _power(sizes, 0.0)


def features_of_mup(*, as_printed: bool) -> Finding:
    """The power of the width with which μP's features move in a few steps at the rates that keep its outputs' steps.

    Those rates are ∝ n for μP; for the kernel parameterisation, which is what is printed, they do not depend on n.
    """
    moved = []
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=_PRINTED[mup] if as_printed else mup, bias=False)
        moved.append(_moved(network, 0.1 * (1 if as_printed else width)))
    return _power(moved, 0.0)


def _moved(network: FCN, rate: float) -> float:
    """Root mean square change of the last hidden layer."""
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(8, 10))), jnp.asarray(rng.normal(size=(8, 2)))
    start = network.init((10,), 2, rng, np.float64)
    slope = jax.jit(jax.grad(lambda w: 0.5 * jnp.mean(jnp.sum((network(w, x) - y) ** 2, axis=1))))
    end = start
    for _ in range(_STEPS):
        end = jax.tree.map(lambda a, g: a - rate * g, end, slope(end))
    change = network.features(end, x)[-1] - network.features(start, x)[-1]
    return float(jnp.sqrt(jnp.mean(change**2)))


def _power(values: list[float], expected: float) -> Finding:
    power = float(np.polyfit(np.log(_WIDTHS), np.log(values), 1)[0])
    return Finding(power, abs(power - expected) < _TOLERANCE, f"widths {_WIDTHS}: {np.round(values, 4).tolist()}")
