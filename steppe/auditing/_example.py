"""A small trained network to audit: 300 digits, one hidden layer, gradient descent at the edge of stability."""

from typing import Any

import numpy as np

# After so many steps the sharpness is 2/η to within a few per cent; they take about a second.
_LR, _STEPS = 0.2, 1000


def example() -> tuple[Any, Any]:
    """(problem, optimizer): OneHidden, 64-16-10, trained on 300 digits of scikit-learn; nothing is downloaded."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    import steppe
    from steppe import losses, networks, until
    from steppe.dynamics import GD

    digits = load_digits()
    x, y = (digits.data[:300] / 16.0).astype(np.float32), np.eye(10, dtype=np.float32)[digits.target[:300]]
    network = networks.OneHidden()
    start = network.init(64, 16, np.random.default_rng(0), np.float32, outputs=10)
    problem = steppe.Problem(network, start, x, y, losses.half_mse)
    optimizer = GD(_LR)
    run = steppe.run(problem, optimizer, stop=until.steps(_STEPS), key=0)
    return steppe.Problem(network, problem.unravel(run.w), x, y, losses.half_mse), optimizer
