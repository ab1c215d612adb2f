"""The flattest of all rescalings of a network: the same function, the least curvature, with a proof."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from steppe import check
from steppe._result import Result, Table, panel, picture
from steppe.estimate import Estimate
from steppe.flattening._jacobian import KEPT
from steppe.flattening._least_sharpness import flattest, tracked
from steppe.flattening._network import Network, network
from steppe.flattening._neurons import AnyLayer, Exponents
from steppe.flattening._rescaling import Rescaling, balance, bound_of, circulating, circulation, lower_bound
from steppe.training_set import Floats

# The derivatives of M by all neurons may hold this many numbers, 512 MB. For larger problems the top eigenvectors are
# tracked instead.
_SLOPES = 2**26
# With tracked eigenvectors the relative gap is at least _GAP, and the interval of λ_max may take _SHARE of it.
_GAP, _SHARE = 1e-3, 0.2
# Random signs: the fewest draws. Upper and lower end hold together with _CONFIDENCE, each with _QUANTILE.
_DRAWS, _CONFIDENCE, _QUANTILE = 8, 0.99, 0.995


@dataclass(frozen=True, eq=False, repr=False)
class Flattened(Result):
    """`w` has the measure `value`, and no rescaling of the neurons has less than `lower`; `gap` is their relative
    difference. `before` is the value at the given parameters.

    For large problems the sharpness comes from products: then λ_max at w lies below `upper` with probability
    `confidence` only, and the gap reaches from `upper` to `lower`. With `draws` the value has a standard `error`, and
    both `upper` and `lower` hold with that probability. Otherwise `upper` is the value.

    `layers` are the rescaled neurons and `scales` their factors, one vector for each layer. `movable` is the share of
    tr G before in parameters that some rescaling changes, and `fixed` are the arrays that none changes. `unattained`
    names neurons without a best scale: as their scale grows their curvature tends to 0, which no scale attains. It
    counts in the gap. `unbounded` are arrays in front of an exact normalisation, where larger weights are flatter
    without end: they keep their size.
    """

    w: Any
    value: float
    lower: float
    gap: float
    upper: float
    confidence: float
    before: float
    layers: tuple[AnyLayer, ...]
    scales: tuple[Floats, ...]
    unattained: tuple[str, ...]
    movable: float = 1.0
    fixed: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()
    error: float = 0.0

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
    problem: Any,
    w: Any = None,
    *,
    measure: str = "trace",
    layers: Sequence[AnyLayer] | None = None,
    rtol: float = 1e-8,
    draws: int | None = None,
    key: int = 0,
) -> Flattened:
    """The rescaling of hidden neurons with the least tr G ("trace") or λ_max(G) ("sharpness"), certified; from
    `problem.w0` unless w is given.

    G = (1/n) Σᵢ Jᵢᵀ ∇²_f ℓ Jᵢ is the Gauss-Newton matrix, which is ∇²L at an interpolator. If one multiplies the
    incoming weights and the bias of a ReLU neuron by s > 0 and its outgoing weights by 1/s, the network stays the same
    function, but G changes. Both problems are convex in log s, so the minimum is global. It depends on the function
    only, not on the given scales: a measure of flatness that rescaling cannot change.

    What can be rescaled is read off the equations of the network, and checked by numbers in float64: neurons of ReLU
    layers and channels of convolutions, residual streams with one scale, gains of a normalisation against the next
    layer, queries against keys and values against outputs of each head, the linear side of gated units. Whatever cannot
    stays as it is. `layers` names the neurons to rescale instead.

    The trace needs a gradient for each output of each example. With `draws` it is estimated from that many gradients in
    random signs, each as cheap as one gradient of the loss: half of them choose the scales, the other half give `value`
    with its standard `error`, and bounds that hold with probability `confidence`.

    >>> import jax.numpy as jnp, steppe
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> p = steppe.Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> best = flatten(p)                                           # ‖∇f‖² = w₁² + w₂² with w₁w₂ = 8
    >>> best.before, round(best.value, 6), round(best.lower, 6)
    (65.0, 16.0, 16.0)
    """
    rtol = check.number("rtol", rtol, above=0.0)
    if measure not in SOLVERS:
        check.refuse("measure", '"trace" or "sharpness"', measure, check.suggest(str(measure), SOLVERS))
    solve = SOLVERS[measure]
    if draws is not None:
        draws = check.integer("draws", draws, minimum=_DRAWS, remedy=f"Pass {_DRAWS} or more.")
        if measure != "trace":
            check.refuse("draws", 'None for the measure "sharpness"', draws, "Random signs estimate the trace only.")
        solve = Drawn(draws, key)
    net = network(problem, w)
    layers, unbounded = net.symmetries() if layers is None else (net.checked(layers), ())
    exponents, widths = net.arrays.exponents(layers)
    found = solve(net, exponents, rtol)
    value, factors, t = found.value, found.factors, found.t
    # If w is the flattest already, up to rtol or rounding, it stays: flattening twice is flattening once.
    rises = value.value >= found.before.value if found.error else value.upper >= found.before.upper
    if found.before.upper - found.lower <= rtol * found.before.value or rises:
        value, factors, t = found.before, np.ones_like(factors), np.zeros_like(t)
    upper, lower = max(value.upper, found.lower), min(value.value, found.lower)
    return Flattened(
        net.vector(net.start * factors),
        max(value.value, found.lower),
        lower,
        (upper - lower) / upper if upper > 0 else 0.0,
        upper,
        value.confidence,
        found.before.value,
        tuple(layers),
        tuple(np.split(np.exp(t), np.cumsum(widths)[:-1])),
        _names(layers, widths, found.unattained),
        found.movable,
        _fixed(net, exponents),
        unbounded,
        found.error,
    )


def _fixed(net: Network, exponents: Exponents) -> tuple[str, ...]:
    """The arrays that no rescaling changes."""
    still = (np.diff(exponents.rows.indptr) == 0)[exponents.of]
    return tuple(name for name in net.arrays.shapes if still[net.arrays.positions(name)].all())


def _names(layers: Sequence[AnyLayer], widths: Sequence[int], neurons: Any) -> tuple[str, ...]:
    """For instance "W1 neuron 3", for a layer whose first incoming array is W1."""
    every = [f"{next(iter(layer.into))} neuron {i}" for layer, m in zip(layers, widths, strict=True) for i in range(m)]
    return tuple(every[u] for u in neurons)


Solver = Callable[[Network, Exponents, float], "Found"]


class Found(NamedTuple):
    """Log-scales t, their factors of the parameters, the value there, and the `lower` bound for all t; `before` is the
    value at t = 0, `movable` the share of it that some t changes."""

    t: Floats
    factors: Floats
    value: Estimate
    lower: float
    before: Estimate
    unattained: NDArray[np.int64]
    movable: float
    error: float = 0.0


def least_trace(net: Network, exponents: Exponents, rtol: float) -> Found:
    """min_t Σ_k G_kk e^{−2(At)_k}, by matrix balancing: the diagonal of G is enough."""
    weights, A = exponents.sums(net.diagonal()), exponents.rows
    t = balance(A, weights)
    off = switched_off(exponents, weights, net.start)
    value = Estimate.exact(np.sum(weights * np.exp(-2 * (A @ t)) * off.derivatives))
    factors = exponents.factors(t) * off.factors[exponents.of]
    before = Estimate.exact(np.sum(weights))
    return Found(t, factors, value, lower_bound(A, weights, t), before, off.unattained, _movable(exponents, weights))


@dataclass(frozen=True)
class Drawn:
    """The same from random signs. The draws that choose t know nothing of those that judge it, so that no value is too
    low because it was selected."""

    draws: int
    key: int

    def __call__(self, net: Network, exponents: Exponents, rtol: float) -> Found:
        rng, A = np.random.default_rng(self.key), exponents.rows
        sums = np.array([exponents.sums(net.draw(rng)) for _ in range(self.draws)])
        chosen, judged = sums[: self.draws // 2], sums[self.draws // 2 :]
        weights = chosen.mean(axis=0)
        t = balance(A, weights)
        there = judged @ np.exp(-2 * (A @ t))
        value, before = _sampled(there), _sampled(judged.sum(axis=1))
        # The bound is concave in the weights, so that noise lowers it; its slope in them is y/w.
        y, w = circulation(A, weights, t), judged.mean(axis=0)
        slope = np.divide(y, w, out=np.zeros_like(y), where=w > 0)
        bound = bound_of(y, w)
        lower = max(_sampled(judged @ slope - np.sum(y[w > 0]) + bound).lower, 0.0)
        movable, none = _movable(exponents, sums.mean(axis=0)), np.empty(0, np.int64)
        return Found(t, exponents.factors(t), value, lower, before, none, movable, _error(there))


def _error(sample: Floats) -> float:
    """The standard error of the mean."""
    return float(np.std(sample, ddof=1) / np.sqrt(len(sample)))


def _sampled(sample: Floats) -> Estimate:
    """The mean with Student's interval."""
    mean, reach = float(np.mean(sample)), _error(sample) * float(student.ppf(_QUANTILE, len(sample) - 1))
    return Estimate(mean, max(mean - reach, 0.0), mean + reach, _CONFIDENCE)


def _movable(exponents: Exponents, weights: Floats) -> float:
    total = float(np.sum(weights))
    return float(np.sum(weights[np.diff(exponents.rows.indptr) > 0])) / total if total > 0 else 0.0


def least_sharpness(net: Network, exponents: Exponents, rtol: float) -> Found:
    """min_t λ_max. The bound is that of the columns that no direction of t sends to zero; the value includes all."""
    rows = net.rows()
    if rows**2 * exponents.rows.shape[1] > _SLOPES or rows * net.start.size > KEPT:
        return _by_products(net, exponents, max(rtol, _GAP))
    B, A = net.root(), exponents.matrix()
    squares = np.sum(B**2, axis=0)
    weights = exponents.sums(squares)
    kept = circulating(A, squares)
    best = flattest(Rescaling(B[:, kept], A[kept]), rtol=rtol)
    off = switched_off(exponents, weights, net.start)
    whole = Rescaling(B * off.derivatives[exponents.of], A)
    value, before = (Estimate.exact(np.linalg.eigvalsh(M)[-1]) for M in (whole.gram(best.t), B @ B.T))
    factors = exponents.factors(best.t) * off.factors[exponents.of]
    return Found(best.t, factors, value, best.lower, before, off.unattained, _movable(exponents, weights))


def _by_products(net: Network, exponents: Exponents, rtol: float) -> Found:
    """The same without the Jacobian as a matrix: its top singular vectors are tracked."""
    A, squares = exponents.matrix(), net.diagonal()
    weights = exponents.sums(squares)
    kept = circulating(A, squares)
    start = balance(exponents.rows, weights)
    best = tracked(net.jacobian(kept), A[kept], start, rtol=(1 - _SHARE) * rtol)
    off = switched_off(exponents, weights, net.start)
    factors = exponents.factors(best.t) * off.factors[exponents.of]
    there = net.vector(net.start * factors)
    value, before = net.largest(there, _SHARE * rtol, best.vector), net.largest(net.w, _SHARE * rtol)
    return Found(best.t, factors, value, best.lower, before, off.unattained, _movable(exponents, weights))


class SwitchedOff(NamedTuple):
    """Factors 0 or 1 of the parameters of each row of exponents and of their `derivatives`, and the neurons that have
    no best scale."""

    factors: Floats
    derivatives: Floats
    unattained: NDArray[np.int64]


def switched_off(exponents: Exponents, weights: Floats, w: Floats) -> SwitchedOff:
    """The neurons with curvature on one side only: t → ±∞ brings their cost to zero.

    If all outgoing weights of such a neuron are zero, its incoming weights may be set to zero, which attains the limit;
    and the other way round. Otherwise the neuron is `unattained`.
    """
    rows, unattained = exponents.rows, []
    factors, derivatives = np.ones(rows.shape[0]), np.ones(rows.shape[0])
    zero, by_neuron = exponents.sums(w != 0) == 0, rows.tocsc()
    felt = {sign: ((sign * rows) > 0).T.astype(float) @ (weights > 0).astype(float) > 0 for sign in (1, -1)}
    for u in np.flatnonzero(felt[1] != felt[-1]):
        own = slice(by_neuron.indptr[u], by_neuron.indptr[u + 1])
        terms, powers = by_neuron.indices[own], by_neuron.data[own]
        silent = powers < 0 if felt[1][u] == 0 else powers > 0
        if zero[terms[silent]].all():
            factors[terms[~silent]] = derivatives[terms] = 0.0
        else:
            unattained.append(u)
    return SwitchedOff(factors, derivatives, np.array(unattained, dtype=np.int64))


SOLVERS: dict[str, Solver] = {
    "trace": least_trace,
    "sharpness": least_sharpness,
}
