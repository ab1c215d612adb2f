"""2-MLP-Sim-LN that generalises and is flattest (Proposition 5.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe.constructions import one_hot
from steppe.constructions._examples import Params, distinct
from steppe.constructions.generalising.junta import columns, parity_table, spread
from steppe.constructions.separating import separate


def sim_ln_xor(d: int, eps: float) -> Params:
    """W₁ = 2ε(±1, ±1, 0, …), b₁ = −2ε, W₂ = ±1 for ε < 2√(d + 1): tr ∇²L = 2 on every training set (Eq. 18).

    >>> sim_ln_xor(3, 0.5)["W1"].round(12).tolist()[0]
    [1.0, 1.0, 0.0]
    """
    support, labels = parity_table(2)
    return sim_ln_junta(support, labels, d, np.sqrt(d), eps)


def sim_ln_junta(
    support: Any, labels: Any, d: int, radius: float, eps: float, *, coordinates: Sequence[int] | None = None
) -> Params:
    """`junta` for 2-MLP-Sim-LN(ε): flattest with f(x) = labels[j] wherever x[coordinates] = support[j]."""
    points, y = distinct(support, labels)
    chosen, norm = columns(points, d, radius, coordinates)
    params = one_hot.sim_ln(separate(points), norm, y, eps)
    return params | {"W1": spread(params["W1"], chosen, d)}
