"""D.6: inner biases. Where one piece of the activation is 0, the flattest interpolators with biases memorise."""

import numpy as np

from steppe.activations import leaky, quadratic, rectifier
from steppe.data import multi_index
from steppe.experiments._paper import Finding
from steppe.flattening import _memorising as memorising
from steppe.papers.multi_index import theory
from steppe.papers.multi_index.setting import model

_D, _N, _SEEDS = 20, 100, 3


def _pair(seed: int) -> tuple[float, float, float, float]:
    """Flatness of Theorem 4's network with biases 0, of one neuron a point, the bound below both, and its loss."""
    rng = np.random.default_rng(seed)
    link, U, _ = model("sum", "relu", 1, _D, rng)
    x, y, *_ = multi_index(link, U, _N, key=rng)
    student = theory.copies(link, U, 4 * _N)
    f = theory.features(student.W, x, rectifier, b=np.zeros(4 * _N))
    net = memorising.two_layer(x, y)
    h = x @ net["W1"].T + net["b1"]
    assert np.max(np.abs(rectifier(h) @ net["W2"] - y)) < 1e-9
    slopes = np.sum((h > 0) * net["W2"] ** 2, axis=1) * (np.sum(x**2, axis=1) + 1)
    flatness = 2 * float(np.mean(slopes + np.sum(rectifier(h) ** 2, axis=1)))
    loss = theory.sampled_loss(net["W1"], net["W2"], rectifier, link, U, b=net["b1"], n=10_000, key=rng).value
    return float(f.q @ np.abs(student.a)), flatness, theory.pointwise(x, y, 4 * _N, rectifier, bias=True), loss


def flattest_has_no_bias(*, as_printed: bool) -> Finding:
    """ReLU: the memorising network's flatness over that of Theorem 4's, and over the least possible."""
    found = np.array([_pair(seed) for seed in range(_SEEDS)])
    over, least, loss = found[:, 1] / found[:, 0], found[:, 1] / found[:, 2], found[:, 3] / 0.5
    if as_printed:
        detail = f"{_SEEDS} draws, d = {_D}, n = {_N}: from {over.min():.3f} to {over.max():.3f}"
        return Finding(float(over.min()), bool((over >= 1).all()), detail)
    detail = f"its population loss is {loss.min():.3g} to {loss.max():.3g} of predicting 0's"
    # Each neuron balanced, in float64; the loss is far from small.
    return Finding(float(least.max()), bool((least <= 1 + 1e-9).all() and (loss > 0.5).all()), detail)


def dearer_with_bias(*, as_printed: bool) -> Finding:
    """q of a neuron with bias b over that without, the least over b: LeakyReLU as printed, quadratic as corrected."""
    activation = leaky(0.1) if as_printed else quadratic
    x = np.random.default_rng(0).standard_normal((2000, _D))
    grid = np.linspace(-3, 3, 61)
    q = theory.features(np.repeat(np.eye(1, _D), len(grid), axis=0), x, activation, b=grid).q
    least = int(np.argmin(q))
    ratio = float(q[least] / q[len(grid) // 2])
    # A sample of 2,000 places the least of the quadratic within ±0.1 of 0.
    return Finding(ratio, ratio >= 0.98, f"least at b = {grid[least]:+.1f}")
