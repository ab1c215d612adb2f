"""How sharp a strongly stable minimum can be where the loss has kinks (mulayoff2021, Theorem 2 and (S75))."""

import math

from steppe import check


def theorem_2(lr: float, entry: float, crowd: int, n: int) -> float:
    """λ_max^upper ≤ ((α + √(α² + 4β))/2)², α = 2√3 C √(p_max/n), β = 2/η (S74): 2/η where nothing is kinked.

    Multiplied out it is 2/η + 6C²p/n + 2C √(3p/n (3C²p/n + 2/η)); the paper prints half of the last two terms.

    >>> round(theorem_2(0.1, 5.0, 0, 10), 9)
    20.0
    """
    alpha, beta = _terms(lr, entry, crowd, n)
    return ((alpha + math.sqrt(alpha**2 + 4 * beta)) / 2) ** 2


def theorem_2_as_printed(lr: float, entry: float, crowd: int, n: int) -> float:
    """(S75) as printed: 2/η + 3C²p/n + C √(3p/n (3C²p/n + 2/η)), below the root of (S72) that it should be."""
    alpha, beta = _terms(lr, entry, crowd, n)
    share = alpha**2 / 4  # 3C²p/n
    return beta + share + math.sqrt(share * (share + beta))


def _terms(lr: float, entry: float, crowd: int, n: int) -> tuple[float, float]:
    entry = check.number("entry", entry, minimum=0.0)
    crowd, n = check.integer("crowd", crowd, minimum=0), check.integer("n", n, minimum=1)
    return 2 * math.sqrt(3 * crowd / n) * entry, 2 / check.number("lr", lr, above=0.0)
