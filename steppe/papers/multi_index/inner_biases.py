"""D.6: where one piece of the activation is 0, the flattest interpolators with inner biases memorise."""

import numpy as np

from steppe.experiments import Finding
from steppe.papers.multi_index.lemmas import Check
from steppe.papers.multi_index.setting import PAPER, Activation, model, sigma

D, N, DRAWS = 20, 100, 3


def teacher_and_memorising(seed: int) -> tuple[float, float, float, float]:
    """Flatness of Theorem 4's network with biases 0 and of one neuron a point, the bound below; loss of the second."""
    from steppe.activations import rectifier
    from steppe.data import multi_index
    from steppe.flattening import memorising
    from steppe.papers.multi_index import theory

    rng = np.random.default_rng(seed)
    link, U, _ = model("sum", "relu", 1, D, rng)
    x, y, *_ = multi_index(link, U, N, key=rng)
    teacher = theory.flatness(theory.copies(link, U, 4 * N), x, rectifier, b=np.zeros(4 * N))
    net = memorising.two_layer(x, y)
    h = x @ net["W1"].T + net["b1"]
    assert np.max(np.abs(rectifier(h) @ net["W2"] - y)) < 1e-9
    slopes = np.sum((h > 0) * net["W2"] ** 2, axis=1) * (np.sum(x**2, axis=1) + 1)
    flatness = 2 * float(np.mean(slopes + np.sum(rectifier(h) ** 2, axis=1)))
    loss = theory.sampled_loss(net["W1"], net["W2"], rectifier, link, U, b=net["b1"], n=10_000, key=rng).value
    return teacher, flatness, theory.pointwise(x, y, 4 * N, rectifier, bias=True), loss


def memorising_over_teacher() -> Finding:
    """ReLU: the flatness of one neuron a point over that of Theorem 4's network."""
    found = np.array([teacher_and_memorising(seed) for seed in range(DRAWS)])
    over = found[:, 1] / found[:, 0]
    detail = f"{DRAWS} draws, d = {D}, n = {N}: from {over.min():.3f} to {over.max():.3f}"
    return Finding(float(over.min()), bool((over >= 1).all()), detail)


def memorising_over_least() -> Finding:
    """ReLU: the flatness of one neuron a point over the least possible, and its loss."""
    found = np.array([teacher_and_memorising(seed) for seed in range(DRAWS)])
    over, loss = found[:, 1] / found[:, 2], found[:, 3] / 0.5
    detail = f"its population loss is {loss.min():.3g} to {loss.max():.3g} of predicting 0's"
    # Each neuron is balanced, in float64; the loss is far from small.
    return Finding(float(over.max()), bool((over <= 1 + 1e-9).all() and (loss > 0.5).all()), detail)


PAPER.misprint(
    "d6-relu", "Section 1.2, D.6",
    printed=(
        "ReLU with inner biases: the flattest interpolators still have biases 0.",
        "its flatness over that of Theorem 4's network ≥ 1", memorising_over_teacher,
    ),
    corrected=(
        "… one neuron a point is flatter, is flattest of all, and has learned nothing.",
        "its flatness over the least possible = 1", memorising_over_least,
    ),
)  # fmt: skip


def cheapest_without_bias(name: Activation) -> Check:
    """q of a neuron with bias b over that without: the least over b."""

    def check() -> Finding:
        from steppe.papers.multi_index import theory

        x = np.random.default_rng(0).standard_normal((2000, D))
        grid = np.linspace(-3, 3, 61)
        q = theory.features(np.repeat(np.eye(1, D), len(grid), axis=0), x, sigma(name), b=grid).q
        least = int(np.argmin(q))
        ratio = float(q[least] / q[len(grid) // 2])
        # A sample of 2,000 places the minimum of the quadratic within ±0.1 of 0.
        return Finding(ratio, ratio >= 0.98, f"least at b = {grid[least]:+.1f}")

    return check


PAPER.misprint(
    "d6-cost", "D.6",
    printed=(
        "Without a piece that is 0, a neuron costs least with bias 0 (LeakyReLU).", "least q over b / q at 0 = 1",
        cheapest_without_bias("leaky"),
    ),
    corrected=(
        "… for even activations (quadratic); LeakyReLU's cost falls with b < 0.", "least q over b / q at 0 = 1",
        cheapest_without_bias("quadratic"),
    ),
)  # fmt: skip
