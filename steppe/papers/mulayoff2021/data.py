"""The data of mulayoff2021. The paper says "random"; what is drawn here is our choice, and each number an option."""

from typing import Any


def points(n: int, *, reach: float, gap: float, spread: float, seed: int) -> tuple[Any, Any]:
    """x sorted, uniform on [−reach, reach] given that neighbours are at least `gap` apart; y normal, times `spread`.

    Close neighbours with unlike y make gradient descent take forever, whatever its step size: hence the gap.
    """
    import numpy as np

    from steppe import check

    n = check.integer("n", n, minimum=1)
    reach, gap = check.number("reach", reach, above=0.0), check.number("gap", gap, minimum=0.0)
    room = 2 * reach - (n - 1) * gap
    if room <= 0:
        check.refuse("gap", f"below {2 * reach / max(n - 1, 1):g} for {n} points", gap, "Choose a smaller gap.")
    rng = np.random.default_rng([seed, 0])
    # Uniform order statistics on what is left of the interval, pushed apart again: exactly the conditional law.
    x = np.sort(rng.uniform(-reach, -reach + room, n)) + gap * np.arange(n)
    return x, check.number("spread", spread, above=0.0) * rng.normal(size=n)
