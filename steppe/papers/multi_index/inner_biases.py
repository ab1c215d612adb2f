"""D.6: if one piece of the activation is 0, the flattest interpolators with inner biases memorise."""

import numpy as np

from steppe.experiments import Finding
from steppe.papers.multi_index.setting import PAPER, drawn, sigma

D, N, DRAWS = 20, 100, 3


def teacher_and_memorising(seed: int) -> tuple[float, float, float, float]:
    """Flatness of Theorem 4's network with biases 0, and of a net with one neuron for each point; the lower bound of
    both; the loss of the second."""
    from steppe.flattening import memorising
    from steppe.papers.multi_index import theory

    rng = np.random.default_rng(seed)
    relu, link, U, x, y = drawn("relu", 1, D, N, rng)
    teacher = theory.flatness(theory.copies(link, U, 4 * N), x, relu, b=np.zeros(4 * N))
    net = memorising.two_layer(x, y)
    h = x @ net["W1"].T + net["b1"]
    assert np.max(np.abs(relu(h) @ net["W2"] - y)) < 1e-9
    slopes = np.sum((h > 0) * net["W2"] ** 2, axis=1) * (np.sum(x**2, axis=1) + 1)
    flatness = 2 * float(np.mean(slopes + np.sum(relu(h) ** 2, axis=1)))
    loss = theory.sampled_loss(net["W1"], net["W2"], relu, link, U, b=net["b1"], n=10_000, key=rng).value
    return teacher, flatness, theory.pointwise(x, y, 4 * N, relu, bias=True), loss


@PAPER.misprint(
    "d6-relu", "Section 1.2, D.6",
    printed=("ReLU with inner biases: the flattest interpolators still have biases 0.",
             "flatness of a memorising net over that of Theorem 4's network ≥ 1"),
    corrected=("ReLU with inner biases: a net that memorises, one neuron for each point, is flattest of all.",
               "its flatness over the least possible = 1; its loss is above half of predicting 0's"),
)  # fmt: skip
def memorising_is_flattest(as_printed: bool) -> Finding:
    """The flatness of one neuron for each point over that of Theorem 4's network, or over the least possible."""
    teacher, memorising, least, loss = np.array([teacher_and_memorising(seed) for seed in range(DRAWS)]).T
    if as_printed:
        over = memorising / teacher
        detail = f"{DRAWS} draws, d = {D}, n = {N}: from {over.min():.3f} to {over.max():.3f}"
        return Finding(over.min(), (over >= 1).all(), detail)
    over, share = memorising / least, loss / 0.5
    detail = f"its population loss is {share.min():.3g} to {share.max():.3g} of predicting 0's"
    # Each neuron is balanced, in float64; the loss is far from small.
    return Finding(over.max(), (over <= 1 + 1e-9).all() and (share > 0.5).all(), detail)


@PAPER.misprint(
    "d6-cost", "D.6",
    printed=("If neither piece of the activation is 0 (LeakyReLU), a neuron costs least with bias 0.",
             "least q over b / q at b = 0 is 1"),
    corrected=("If the activation is even (quadratic), a neuron costs least with bias 0; LeakyReLU prefers b < 0.",
               "least q over b / q at b = 0 is 1"),
)  # fmt: skip
def cheapest_without_bias(as_printed: bool) -> Finding:
    """q of a neuron with bias b over that without: the least over b."""
    from steppe.papers.multi_index import theory

    x = np.random.default_rng(0).standard_normal((2000, D))
    grid, activation = np.linspace(-3, 3, 61), sigma("leaky" if as_printed else "quadratic")
    q = theory.features(np.repeat(np.eye(1, D), len(grid), axis=0), x, activation, b=grid).q
    least = int(np.argmin(q))
    ratio = float(q[least] / q[len(grid) // 2])
    # A sample of 2,000 places the minimum of the quadratic within ±0.1 of 0.
    return Finding(ratio, ratio >= 0.98, f"least at b = {grid[least]:+.1f}")
