"""The a priori bound of Kuczyński and Woźniakowski, for comparison with the Christoffel bound."""

import numpy as np


def kuczynski_wozniakowski(theta_min: float, theta_max: float, steps: int, p: int, *, confidence: float) -> float:
    """An upper bound for λ_max after `steps` Lanczos products from one uniformly random start, no restarts.

    P(λ_max − θ_max > ε (λ_max − λ_min)) ≤ 1.648 √p exp(−√ε (2k − 1)) (Kuczyński and Woźniakowski 1992,
    Theorem 4.2, applied to A − λ_min I). Both ends at (1 − confidence)/2 give the spread
    λ_max − λ_min ≤ (θ_max − θ_min)/(1 − 2ε) and λ_max ≤ θ_max + ε × spread; infinite where 2ε ≥ 1.
    It knows only the number of steps; the Christoffel bound reads the coefficients and is never far above it.

    >>> round(kuczynski_wozniakowski(0.0, 1.0, 100, 1000, confidence=0.99), 4)
    1.0022
    """
    delta = 0.5 * (1.0 - confidence)
    epsilon = (np.log(1.648 * np.sqrt(p) / delta) / (2 * steps - 1)) ** 2
    if 2.0 * epsilon >= 1.0:
        return float("inf")
    return float(theta_max + epsilon * (theta_max - theta_min) / (1.0 - 2.0 * epsilon))
