"""The flattest of all rescalings of a network, and which solver finds it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import check, linalg
from steppe.curvature import gauss_newton, gram
from steppe.curvature._inputs import prepared
from steppe.curvature._matrices import rank
from steppe.estimate import Accuracy, Estimate
from steppe.flattening import _jacobian as curvature
from steppe.flattening._jacobian import Jacobian, switched_off
from steppe.flattening._least_sharpness import flattest, tracked
from steppe.flattening._neurons import Function, Neurons, exponents, hidden_layers
from steppe.flattening._rescaling import Floats, Rescaling, balance, circulating, lower_bound, merged
from steppe.problem import Problem

# The two measures: the diagonal of G suffices for the trace, the sharpness needs its root, or products with it.

# Numbers in the derivatives of M by all neurons: 512 MB, beyond which the top eigenvectors are tracked instead.
_SLOPES = 2**26
# The relative gap asked for where they are, and the share of it spent on not knowing λ_max exactly.
_GAP, _SHARE = 1e-3, 0.2


class Found(NamedTuple):
    """Log-scales t, the factors of the parameters that they make, the value there, and what no t falls below."""

    t: Floats
    factors: Floats
    value: Estimate
    lower: float
    before: Estimate
    unattained: NDArray[np.int64]


def least_trace(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """Σ_k G_kk e^{−2(At)_k}: matrix balancing."""
    weights = curvature.diagonal(problem, w)
    small = merged(A, weights)
    t = balance(*small)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    value = Estimate.exact(np.sum(weights * np.exp(-2 * (A @ t)) * off.derivatives))
    factors = np.exp(A @ t) * off.factors
    return Found(t, factors, value, lower_bound(*small, t), Estimate.exact(np.sum(weights)), off.unattained)


def least_sharpness(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """λ_max over the columns that no direction sends to zero; the others are added to the value that is reported, not
    to the bound."""
    rows = rank(gauss_newton, problem, w)
    if rows**2 * A.shape[1] > _SLOPES or rows * w.size > curvature.KEPT:
        return _by_products(problem, w, A, max(rtol, _GAP))
    root = curvature.root(problem, w)
    weights = np.sum(root**2, axis=0)
    kept = circulating(A, weights)
    best = flattest(Rescaling(root[:, kept], A[kept]), rtol=rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    whole = Rescaling(root * off.derivatives, A)
    value, before = (Estimate.exact(np.linalg.eigvalsh(M)[-1]) for M in (whole.gram(best.t), root @ root.T))
    return Found(best.t, np.exp(A @ best.t) * off.factors, value, best.lower, before, off.unattained)


def _by_products(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """The same without the root: its top singular vectors are tracked."""
    weights = curvature.diagonal(problem, w)
    kept = circulating(A, weights)
    start = balance(*merged(A, weights))
    best = tracked(Jacobian.of(problem, w, kept), A[kept], start, rtol=(1 - _SHARE) * rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    factors = np.exp(A @ best.t) * off.factors
    there = jnp.asarray(np.asarray(w, dtype=float) * factors, w.dtype)
    value, before = _largest(problem, there, _SHARE * rtol, best.vector), _largest(problem, w, _SHARE * rtol)
    return Found(best.t, factors, value, best.lower, before, off.unattained)


def _largest(problem: Problem, w: Array, rtol: float, start: Floats | None = None) -> Estimate:
    operator = gram(gauss_newton, problem, w)
    return linalg.largest(operator, operator.size, accuracy=Accuracy(rtol), start=start, key=0).estimate


SOLVERS: dict[str, Callable[[Problem, Array, csr_array, float], Found]] = {
    "trace": least_trace,
    "sharpness": least_sharpness,
}


# The flattest of all rescalings of a network: the same function, the least curvature, with a proof.


@dataclass(frozen=True, eq=False)
class Flattened:
    """`w`, whose measure is `value`; no rescaling of the neurons has less than `lower`, and `gap` is their relative
    difference. `before` is the value at the parameters that came.

    Where the sharpness was found by products, λ_max at w lies below `upper` with probability `confidence` only, and
    the gap reaches from there to `lower`.

    `layers` are the neurons that were rescaled and `scales` their factors, one vector a layer. `unattained` names
    neurons that no scale is best for: whatever they cost can be made small, not zero, and counts in the gap.
    """

    w: Array
    value: float
    lower: float
    gap: float
    upper: float
    confidence: float
    before: float
    layers: tuple[Neurons, ...]
    scales: tuple[Floats, ...]
    unattained: tuple[str, ...]


def flatten(
    problem: Problem,
    w: Any,
    *,
    measure: str = "trace",
    layers: Sequence[Neurons] | None = None,
    rtol: float = 1e-8,
) -> Flattened:
    """The rescaling of hidden neurons with the least tr G ("trace") or λ_max(G) ("sharpness"), certified.

    G = (1/n) Σᵢ Jᵢᵀ ∇²_f ℓ Jᵢ is the Gauss-Newton matrix, which is ∇²L at an interpolator. A neuron of a ReLU network
    whose incoming weights and bias are multiplied by s > 0 and whose outgoing weights by 1/s is the same function of
    the input; G is another matrix. Both problems are convex in log s, so the answer is global. It depends on the
    function only, not on which rescaling of it came: a measure of flatness that rescaling cannot change.

    The layers are read off the parameters (lists, dicts or modules of dense or convolutional layers) and the symmetry
    is checked on the examples; describe them with `layers` where that fails. Refused: activations that are not
    homogeneous, and a layer in front of a normalisation, which is the flatter the larger it is.

    >>> import steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> p = Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> best = flatten(p, p.w0)                                     # ‖∇f‖² = w₁² + w₂² with w₁w₂ = 8
    >>> best.before, round(best.value, 6), round(best.lower, 6)
    (65.0, 16.0, 16.0)
    """
    w = prepared(problem, w)
    rtol = check.number("rtol", rtol, above=0.0)
    if measure not in SOLVERS:
        check.refuse("measure", '"trace" or "sharpness"', measure, check.suggest(str(measure), SOLVERS))
    function = Function(problem, w)
    layers = hidden_layers(function) if layers is None else _checked(function, layers)
    A, widths = exponents(function.arrays, layers, w.size)
    found = SOLVERS[measure](problem, w, A, rtol)
    value, factors, t = found.value, found.factors, found.t
    # As good as the best already, or as rounding made it: then nothing moves, and flattening twice is flattening once.
    if found.before.upper - found.lower <= rtol * found.before.value or value.upper >= found.before.upper:
        value, factors, t = found.before, np.ones_like(factors), np.zeros_like(t)
    upper, lower = max(value.upper, found.lower), min(value.value, found.lower)
    return Flattened(
        jnp.asarray(np.asarray(w, dtype=float) * factors, w.dtype),
        max(value.value, found.lower),
        lower,
        (upper - lower) / upper if upper > 0 else 0.0,
        upper,
        value.confidence,
        found.before.value,
        tuple(layers),
        tuple(np.split(np.exp(t), np.cumsum(widths)[:-1])),
        _names(layers, widths, found.unattained),
    )


def _checked(function: Function, layers: Sequence[Neurons]) -> list[Neurons]:
    """Layers as the user described them, if their neurons can be rescaled."""
    for layer in layers:
        if not isinstance(layer, Neurons):
            check.refuse("layers", "a list of steppe.flattening.Neurons", layer, "Describe each group of neurons.")
        if not function.unchanged([layer]):
            got = f"{layer}, whose rescaling changes the predictions"
            check.refuse("layers", "neurons that can be rescaled", got, "Name all their arrays, axes and the degree.")
    return list(layers)


def _names(layers: Sequence[Neurons], widths: Sequence[int], neurons: Any) -> tuple[str, ...]:
    """Neuron 3 of the layer that W1 leads into: "W1 neuron 3"."""
    every = [f"{next(iter(layer.into))} neuron {i}" for layer, m in zip(layers, widths, strict=True) for i in range(m)]
    return tuple(every[u] for u in neurons)
