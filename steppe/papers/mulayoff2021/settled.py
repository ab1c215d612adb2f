"""A run taken on with its own step size, from the loss at which it stopped to one at which nothing moves any more."""

from typing import Any

from steppe.papers.mulayoff2021.runs import network

# Residuals of 1e-10: an instability too slow to show at 1e-8 has had its time, and kinks are met to 1e-6.
LOSS, KINK, STEPS = 1e-20, 1e-6, 2_000_000


def settled(entry: Any, k: int, lr: float) -> Any:
    """The modes at the minimum that run k of an entry ends at; None where it does not settle."""
    from steppe.dynamics._minima import minima
    from steppe.papers.mulayoff2021.theory import stability

    arrays = entry.params
    done = minima(arrays["x"], arrays["y"], network(arrays, k), [lr], loss=LOSS, max_steps=STEPS)
    if done.outcome != ("reached",):
        return None
    return stability.modes(done.params(0), arrays["x"][:, None], rtol=KINK)


def least_ratio(entry: Any, k: int, lr: float) -> tuple[float, bool]:
    """(the least λ_max η/2 of its modes once settled, whether it has kinks); infinite where it does not settle."""
    from steppe.papers.mulayoff2021.theory import stability

    modes = settled(entry, k, lr)
    if modes is None:
        return float("inf"), False
    return stability.lower_sharpness(modes, cap=64).upper * lr / 2, len(modes.kinks) > 0


def bound_ratio(entry: Any, k: int, lr: float) -> float:
    """λ_max^upper over the bound of Theorem 2 once settled."""
    from steppe.papers.mulayoff2021.theory import stability

    modes = settled(entry, k, lr)
    if modes is None:
        return float("inf")
    bound = stability.theorem_2(lr, modes.largest_entry(), modes.crowd, len(modes.x))
    return stability.upper_sharpness(modes, cap=64).upper / bound
