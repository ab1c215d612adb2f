"""Labels that depend on a few coordinates: one neuron for each value these can take (Propositions 4.2 and A.1)."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions import one_hot
from steppe.constructions._examples import Floats, Params, distinct
from steppe.constructions.separating import separate


def xor(d: int, *, depth: int = 2) -> Params:
    """W₁ = r(±1, ±1, 0, …), b₁ = −r, W₂ = ±1/r with r = (d + 1)^¼ for depth 2 (Proposition 4.2, Eq. 5 corrected).

    Right on all of {−1, 1}^d, and flattest for every training set in it: tr ∇²L = 4√(d + 1). Eq. 5 prints
    r = (d² + 1)^¼; the same idea is flattest in any depth.

    >>> params = xor(15)                                            # r = 2
    >>> params["W1"][:, :2].round(12).tolist(), params["W2"].round(12).tolist()
    ([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]], [0.5, -0.5, -0.5, 0.5])
    """
    return parity(d, (0, 1), depth=depth)


def parity(d: int, coordinates: Sequence[int], *, depth: int = 2) -> Params:
    """Flattest net with f(x) = Π x_i over `coordinates` on all of {−1, 1}^d, 2^k neurons (Proposition A.1)."""
    support, labels = parity_table(len(coordinates))
    return junta(support, labels, d, np.sqrt(d), coordinates=coordinates, depth=depth)


def junta(
    support: Any,
    labels: Any,
    d: int,
    radius: float,
    *,
    coordinates: Sequence[int] | None = None,
    depth: int = 2,
) -> Params:
    """Flattest net with f(x) = labels[j] wherever x[coordinates] = support[j], for inputs of norm `radius`.

    `support` (k, s) lists every value of the s coordinates (by default the first s) and must be a set of extreme
    points. W₁ⱼ = r wⱼ/ε, b₁ⱼ = r(ε − wⱼ·vⱼ)/ε, W₂ⱼ = yⱼ/r, r² = |yⱼ|√(R² + 1) in depth 2 (Proposition A.1; its
    Eq. 16 prints vⱼ for wⱼ and R² + 1 for its root). It interpolates and is flattest for every training set.

    >>> junta([[0.0], [1.0]], [0.0, 3.0], 2, 1.0)["W2"].round(6).tolist()      # √(3/√2)
    [0.0, 1.456475]
    """
    points, y = distinct(support, labels)
    chosen, norm = columns(points, d, radius, coordinates)
    params = one_hot.deep(separate(points), norm, y, depth)
    return params | {"W1": spread(params["W1"], chosen, d)}


def parity_table(k: int) -> tuple[Floats, Floats]:
    """{−1, 1}^k and the product of each row, starting at (1, …, 1)."""
    rule = "Each of the 2^k values has its neuron; take fewer coordinates."
    if not 1 <= k <= 14:
        check.refuse("coordinates", "1 to 14 of them", k, rule)
    table = np.array(list(itertools.product((1.0, -1.0), repeat=k)))
    return table, table.prod(axis=1)


def spread(W: Floats, columns: list[int], d: int) -> Floats:
    """W (k, s) as k rows of R^d with the s columns in their places."""
    full = np.zeros((len(W), d))
    full[:, columns] = W
    return full


def columns(points: Floats, d: int, radius: float, coordinates: Sequence[int] | None) -> tuple[list[int], Floats]:
    """Where the label's coordinates sit among d, and ‖x′‖ = √(R² + 1) for each point of the support."""
    s = points.shape[1]
    d = check.integer("d", d, minimum=s, remedy="The inputs hold at least the label's coordinates.")
    largest = float(np.linalg.norm(points, axis=1).max())
    # √d and the norm of a corner may differ in the last bit.
    radius = check.number("radius", radius, minimum=largest * (1 - 1e-12), remedy="‖x‖ is at least that of its part.")
    named = range(s) if coordinates is None else coordinates
    chosen = [check.integer("coordinates", i, minimum=0) for i in named]
    if len(chosen) != s or len(set(chosen)) != s or max(chosen) >= d:
        rule = f"{s} different numbers from 0 to {d - 1}"
        check.refuse("coordinates", rule, coordinates, "Name the columns of x that the support describes.")
    return chosen, np.full(len(points), np.sqrt(radius**2 + 1))
