"""A small trained network to audit: digits of 8 × 8 pixels, a hidden layer of ReLUs, gradient descent at its edge."""

from typing import Any

import numpy as np

# Gradient descent with this learning rate meets the edge of stability within these steps, in about a second.
_LR, _STEPS = 0.5, 1500


def example() -> tuple[Any, Any]:
    """(problem, optimizer): OneHidden, 64-16-10, trained on 300 digits of scikit-learn; nothing is downloaded."""
    from sklearn.datasets import load_digits

    import steppe
    from steppe import losses, networks, until
    from steppe.dynamics import GD

    digits = load_digits()
    x, y = (digits.data[:300] / 16.0).astype(np.float32), digits.target[:300].astype(np.int32)
    network = networks.OneHidden()
    start = network.init(64, 16, np.random.default_rng(0), np.float32, outputs=10)
    problem = steppe.Problem(network, start, x, y, losses.cross_entropy)
    optimizer = GD(_LR)
    run = steppe.run(problem, optimizer, stop=until.steps(_STEPS), key=0)
    return steppe.Problem(network, problem.unravel(run.w), x, y, losses.cross_entropy), optimizer
