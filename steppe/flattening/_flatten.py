"""The flattest of all rescalings of a network: the same function, the least curvature, with a proof."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import check, linalg
from steppe._result import Result, Table, panel, picture
from steppe.curvature import gauss_newton, gram
from steppe.curvature._inputs import prepared
from steppe.curvature._matrices import rank
from steppe.estimate import Accuracy, Estimate
from steppe.flattening._jacobian import KEPT, Jacobian, diagonal, root
from steppe.flattening._least_sharpness import flattest, tracked
from steppe.flattening._neurons import Function, Neurons, hidden_layers
from steppe.flattening._rescaling import Rescaling, balance, circulating, lower_bound, merged
from steppe.problem import Problem
from steppe.training_set import Floats

# The derivatives of M by all neurons may hold this many numbers, 512 MB. For larger problems the top eigenvectors are
# tracked instead.
_SLOPES = 2**26
# With tracked eigenvectors the relative gap is at least _GAP, and the interval of λ_max may take _SHARE of it.
_GAP, _SHARE = 1e-3, 0.2


@dataclass(frozen=True, eq=False, repr=False)
class Flattened(Result):
    """`w` has the measure `value`, and no rescaling of the neurons has less than `lower`; `gap` is their relative
    difference. `before` is the value at the given parameters.

    For large problems the sharpness comes from products: then λ_max at w lies below `upper` with probability
    `confidence` only, and the gap reaches from `upper` to `lower`. Otherwise `upper` is the value.

    `layers` are the rescaled neurons and `scales` their factors, one vector for each layer. `unattained` names neurons
    without a best scale: as their scale grows their curvature tends to 0, which no scale attains. It counts in the gap.
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

    def table(self) -> Table:
        """One row for each neuron: its layer, its number and its factor."""
        widths = [len(s) for s in self.scales]
        return {
            "layer": np.repeat([next(iter(layer.into)) for layer in self.layers], widths),
            "neuron": np.concatenate([np.arange(m) for m in widths]),
            "scale": np.concatenate(self.scales),
        }

    def draw(self) -> Any:
        """The factors of each layer's neurons, in rising order."""
        panels = [
            panel("neurons by factor", np.arange(len(s)), ", ".join(layer.into), {"": np.sort(s)}, kind="points")
            for layer, s in zip(self.layers, self.scales, strict=True)
        ]
        return picture(f"{self.before:.4g} before, {self.value:.4g} after, at least {self.lower:.4g}", panels)


def flatten(
    problem: Problem,
    w: Any = None,
    *,
    measure: str = "trace",
    layers: Sequence[Neurons] | None = None,
    rtol: float = 1e-8,
) -> Flattened:
    """The rescaling of hidden neurons with the least tr G ("trace") or λ_max(G) ("sharpness"), certified; from
    `problem.w0` unless w is given.

    G = (1/n) Σᵢ Jᵢᵀ ∇²_f ℓ Jᵢ is the Gauss-Newton matrix, which is ∇²L at an interpolator. If one multiplies the
    incoming weights and the bias of a ReLU neuron by s > 0 and its outgoing weights by 1/s, the network stays the same
    function, but G changes. Both problems are convex in log s, so the minimum is global. It depends on the function
    only, not on the given scales: a measure of flatness that rescaling cannot change.

    Dense and convolutional layers are read off the equations of the network, in the order in which it uses them, and
    the symmetry is checked on the examples; if that fails, describe the neurons with `layers`. Activations that are not
    homogeneous are refused, and so is a layer in front of a normalisation: larger weights are flatter there, without
    end.

    >>> import steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> p = Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> best = flatten(p)                                           # ‖∇f‖² = w₁² + w₂² with w₁w₂ = 8
    >>> best.before, round(best.value, 6), round(best.lower, 6)
    (65.0, 16.0, 16.0)
    """
    w = prepared(problem, w)
    rtol = check.number("rtol", rtol, above=0.0)
    if measure not in SOLVERS:
        check.refuse("measure", '"trace" or "sharpness"', measure, check.suggest(str(measure), SOLVERS))
    function = Function(problem, w)
    layers = hidden_layers(function) if layers is None else _checked(function, layers)
    A, widths = function.arrays.exponents(layers)
    found = SOLVERS[measure](problem, w, A, rtol)
    value, factors, t = found.value, found.factors, found.t
    # If w is the flattest already, up to rtol or rounding, it stays: flattening twice is flattening once.
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
    """The layers that the user described, if their neurons can be rescaled."""
    for layer in layers:
        if not isinstance(layer, Neurons):
            check.refuse("layers", "a list of steppe.flattening.Neurons", layer, "Describe each group of neurons.")
        if not function.unchanged([layer]):
            got = f"{layer}, whose rescaling changes the predictions"
            remedy = "Name all their arrays and axes, and the degree."
            check.refuse("layers", "neurons that can be rescaled", got, remedy)
    return list(layers)


def _names(layers: Sequence[Neurons], widths: Sequence[int], neurons: Any) -> tuple[str, ...]:
    """For instance "W1 neuron 3", for a layer whose first incoming array is W1."""
    every = [f"{next(iter(layer.into))} neuron {i}" for layer, m in zip(layers, widths, strict=True) for i in range(m)]
    return tuple(every[u] for u in neurons)


class Found(NamedTuple):
    """Log-scales t, their factors of the parameters, the value there, and the `lower` bound for all t; `before` is the
    value at t = 0."""

    t: Floats
    factors: Floats
    value: Estimate
    lower: float
    before: Estimate
    unattained: NDArray[np.int64]


def least_trace(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """min_t Σ_k G_kk e^{−2(At)_k}, by matrix balancing: the diagonal of G is enough."""
    weights = diagonal(problem, w)
    small = merged(A, weights)
    t = balance(*small)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    value = Estimate.exact(np.sum(weights * np.exp(-2 * (A @ t)) * off.derivatives))
    factors = np.exp(A @ t) * off.factors
    return Found(t, factors, value, lower_bound(*small, t), Estimate.exact(np.sum(weights)), off.unattained)


def least_sharpness(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """min_t λ_max. The bound is that of the columns that no direction of t sends to zero; the value includes all."""
    rows = rank(gauss_newton, problem, w)
    if rows**2 * A.shape[1] > _SLOPES or rows * w.size > KEPT:
        return _by_products(problem, w, A, max(rtol, _GAP))
    B = root(problem, w)
    weights = np.sum(B**2, axis=0)
    kept = circulating(A, weights)
    best = flattest(Rescaling(B[:, kept], A[kept]), rtol=rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    whole = Rescaling(B * off.derivatives, A)
    value, before = (Estimate.exact(np.linalg.eigvalsh(M)[-1]) for M in (whole.gram(best.t), B @ B.T))
    return Found(best.t, np.exp(A @ best.t) * off.factors, value, best.lower, before, off.unattained)


def _by_products(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """The same without the Jacobian as a matrix: its top singular vectors are tracked."""
    weights = diagonal(problem, w)
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


class SwitchedOff(NamedTuple):
    """Factors 0 or 1 of the parameters and of their `derivatives`, and the neurons that have no best scale."""

    factors: Floats
    derivatives: Floats
    unattained: NDArray[np.int64]


def switched_off(exponents: csr_array, weights: Floats, w: Floats) -> SwitchedOff:
    """The neurons with curvature on one side only: t → ±∞ brings their cost to zero.

    If all outgoing weights of such a neuron are zero, its incoming weights may be set to zero, which attains the limit;
    and the other way round. Otherwise the neuron is `unattained`.
    """
    factors, derivatives, unattained = np.ones(exponents.shape[0]), np.ones(exponents.shape[0]), []
    by_neuron = exponents.tocsc()
    felt = {sign: ((sign * exponents) > 0).T.astype(float) @ (weights > 0).astype(float) > 0 for sign in (1, -1)}
    for u in np.flatnonzero(felt[1] != felt[-1]):
        own = slice(by_neuron.indptr[u], by_neuron.indptr[u + 1])
        parameters, powers = by_neuron.indices[own], by_neuron.data[own]
        silent = powers < 0 if felt[1][u] == 0 else powers > 0
        if (w[parameters[silent]] == 0).all():
            factors[parameters[~silent]] = derivatives[parameters] = 0.0
        else:
            unattained.append(u)
    return SwitchedOff(factors, derivatives, np.array(unattained, dtype=np.int64))


SOLVERS: dict[str, Callable[[Problem, Array, csr_array, float], Found]] = {
    "trace": least_trace,
    "sharpness": least_sharpness,
}
