"""Appendix H.7: what the kernel and the μP parameterisation keep constant as a network gets wider."""

from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.conflicting_biases.paper import PAPER

_WIDTHS = (64, 256, 1024)
_DRAWS, _STEPS = 20, 3


@PAPER.misprint(
    "net-kernel-outputs", "appendix H.7",
    printed=("Kernel parameterisation: f = W_L h_L keeps the outputs at the start O(1) for every width.",
             "outputs at the start ∝ width^p, |p| < 0.15"),
    corrected=("Kernel parameterisation: f = W_L h_L/√n_L keeps the outputs at the start O(1) for every width.",
               "outputs at the start ∝ width^p, |p| < 0.15"),
)  # fmt: skip
def outputs_of_kernel(as_printed: bool) -> Finding:
    """The power of the width with which the outputs of the kernel parameterisation grow at the start."""
    import jax.numpy as jnp

    from steppe.networks import FCN, Scaled, kernel

    # As printed the last layer has no 1/√n, unlike the hidden layers.
    parameterisation = Scaled("kernel as printed", -0.5) if as_printed else kernel
    sizes, x = [], jnp.asarray(np.random.default_rng(0).normal(size=(8, 10)))
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=parameterisation, bias=False)
        draws = (network.init((10,), 2, np.random.default_rng(k), np.float64) for k in range(_DRAWS))
        sizes.append(float(np.sqrt(np.mean([np.mean(np.square(network(w, x))) for w in draws]))))
    return _power_of_width(sizes)


@PAPER.misprint(
    "net-mup-features", "appendix H.7",
    printed=("μP: with f = W_L h_L/√n_L features are learned at every width.",
             "features move ∝ width^p, |p| < 0.15"),
    corrected=("μP: with f = W_L h_L/n_L and learning rates ∝ n features are learned at every width.",
               "features move ∝ width^p, |p| < 0.15"),
)  # fmt: skip
def features_of_mup(as_printed: bool) -> Finding:
    """The power of the width with which μP's features move in a few steps, at rates at which the outputs move by O(1).

    Those rates are ∝ n for μP; for the kernel parameterisation, which is what is printed, they do not depend on n.
    """
    from steppe.networks import FCN, kernel, mup

    moved = []
    for width in _WIDTHS:
        network = FCN((width, width), parameterisation=kernel if as_printed else mup, bias=False)
        moved.append(_movement(network, 0.1 * (1 if as_printed else width)))
    return _power_of_width(moved)


def _movement(network: Any, rate: float) -> float:
    """Root mean square change of the last hidden layer."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(8, 10))), jnp.asarray(rng.normal(size=(8, 2)))
    start = network.init((10,), 2, rng, np.float64)
    slope = jax.jit(jax.grad(lambda w: 0.5 * jnp.mean(jnp.sum((network(w, x) - y) ** 2, axis=1))))
    end = start
    for _ in range(_STEPS):
        end = jax.tree.map(lambda a, g: a - rate * g, end, slope(end))
    change = network.features(end, x)[-1] - network.features(start, x)[-1]
    return float(jnp.sqrt(jnp.mean(change**2)))


def _power_of_width(values: list[float]) -> Finding:
    power = float(np.polyfit(np.log(_WIDTHS), np.log(values), 1)[0])
    # A single draw at the smallest width changes an exponent by about 0.15.
    return Finding(power, abs(power) < 0.15, f"widths {_WIDTHS}: {np.round(values, 4).tolist()}")
