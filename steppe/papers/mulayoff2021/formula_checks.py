"""Claims of mulayoff2021 that are formulas: measured on random cases, or on the minima of a figure."""

from collections.abc import Callable

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.mulayoff2021.runs import network


def root_residual(*, printed: bool) -> Callable[[Evidence], Finding]:
    """How far (S75) is from solving the equation it is the root of, over a grid of η, C, p and n."""

    def check(evidence: Evidence) -> Finding:
        import itertools
        import math

        from steppe.papers.mulayoff2021.theory import stability

        bound = stability.theorem_2_as_printed if printed else stability.theorem_2
        worst = 0.0
        for lr, C, p, n in itertools.product((1e-3, 0.1, 1.0), (1.0, 5.0), (1, 4), (4, 10)):
            value = bound(lr, C, p, n)
            equation = 2 / lr + 2 * math.sqrt(3 * p / n) * C * math.sqrt(value)
            worst = max(worst, abs(value / equation - 1))
        return Finding(worst, worst <= 1e-12, "24 cases; the largest relative residual")

    return check


def jump_error(*, printed: bool) -> Callable[[Evidence], Finding]:
    """Slope jumps of random nets, read off the function, against the weights of the deltas, printed or corrected."""

    def check(evidence: Evidence) -> Finding:
        import numpy as np

        rng, worst = np.random.default_rng(0), 0.0
        for _ in range(20):
            w1, b1, w2 = rng.normal(size=(3, 6))
            weights = w1 * w2 if printed else np.abs(w1) * w2
            knots = -b1 / w1
            apart = np.min(np.abs(knots[:, None] - knots[None]) + np.diag(np.full(6, np.inf)))
            h = 0.25 * apart
            left, middle, right = (np.maximum(np.outer(knots + shift, w1) + b1, 0.0) @ w2 for shift in (-h, 0.0, h))
            # With neighbours 4h away f bends only at the knot itself between the three.
            jumps = (right - 2 * middle + left) / h
            worst = max(worst, float(np.max(np.abs(jumps - weights) / np.abs(weights))))
        # Rounding of f of order 1e-16 divided by h, which may be 1e-3.
        return Finding(worst, worst <= 1e-8, "20 nets of 6 neurons; the largest relative error")

    return check


def sgd_growth(evidence: Evidence) -> Finding:
    """The least growth of E‖u‖² a step just beyond 2/λ_max, over batch sizes and minima."""
    from steppe.papers.mulayoff2021.theory import stability

    growths: dict[int, list[float]] = {}
    limits: dict[int, list[float]] = {}
    for e in evidence["fig3"][:1]:
        arrays = e.params
        counted = [k for k, c in enumerate(e.curves["counted"]) if c]
        for k in counted[:: max(1, len(counted) // 3)][:3]:
            modes = stability.modes(network(arrays, k), arrays["x"][:, None])
            tangents = modes.tangents(modes.active)
            K = tangents @ tangents.T
            limit = 2 / modes.sharpness(modes.active)
            for batch in (1, 2, 5, len(K)):
                growths.setdefault(batch, []).append(stability.growth(K, 1.01 * limit, batch_size=batch))
                limits.setdefault(batch, []).append(stability.largest_stable_lr(K, batch_size=batch, rtol=1e-3) / limit)
    least = min(min(g) for g in growths.values())
    detail = "largest stable η over 2/λ_max: " + ", ".join(
        f"batch {b}: {min(v):.3f} to {max(v):.3f}" for b, v in limits.items()
    )
    return Finding(least, least > 1, detail)
