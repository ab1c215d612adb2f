"""min over t of Σ_c w_c e^{−2(t_dst − t_src)}: matrix balancing, with a lower bound that needs no convergence."""

import numpy as np

from steppe.constructions._examples import Floats
from steppe.constructions.flattest.rescaling import Rescaling

_SWEEPS = 1_000


def balance(form: Rescaling, weights: Floats, *, rtol: float = 1e-13) -> Floats:
    """t at the minimum: inflow = outflow at every neuron, by t_u ← t_u + ¼ log(in/out) in turn.

    A neuron without inflow or without outflow has no minimum and keeps its t. One hidden layer needs one sweep.

    >>> form = Rescaling.of([([[1.0]], -1, 0), ([[4.0]], 0, -1)], 1)
    >>> t = balance(form, form.weights(np.eye(1)))                 # e^{−2t} + 16 e^{2t}
    >>> form.gram(t).tolist()                                      # 2 √16
    [[8.0]]
    """
    t, flows = np.zeros(form.units), weights.copy()
    ends = [(np.flatnonzero(form.dst == u), np.flatnonzero(form.src == u)) for u in range(form.units)]
    for _ in range(_SWEEPS):
        moved = 0.0
        for u, (into, out) in enumerate(ends):
            inflow, outflow = flows[into].sum(), flows[out].sum()
            if inflow > 0 and outflow > 0:
                step = 0.25 * np.log(inflow / outflow)
                t[u] += step
                flows[into] *= np.exp(-2 * step)
                flows[out] *= np.exp(2 * step)
                moved = max(moved, abs(step))
        if moved <= rtol:
            break
    return t


def lower_bound(form: Rescaling, weights: Floats, t: Floats) -> float:
    """A number that Σ_c w_c e^{−2(t_dst − t_src)} nowhere falls below; its minimum if t is one.

    With any circulation y ≥ 0 (inflow = outflow at every neuron) convexity of exp gives Σ_c x_c ≥ Σ_c y_c (1 + log
    x_c/y_c), and t drops out: Σ_c y_c (1 + log w_c/y_c). The circulation is made of the flows at t.
    """
    y = _circulation(form, weights * form.scales(t))
    carried = y > 0
    return float(np.sum(y[carried] * (1 + np.log(weights[carried] / y[carried]))))


def _circulation(form: Rescaling, flows: Floats) -> Floats:
    """Flows cut down until every neuron passes on what it gets: forward where it gives more, then backward."""
    y = flows.copy()
    for order, own, other in ((1, form.src, form.dst), (-1, form.dst, form.src)):
        for u in range(form.units)[::order]:
            give, get = y[own == u].sum(), y[other == u].sum()
            if give > get:
                y[own == u] *= get / give
    return y
