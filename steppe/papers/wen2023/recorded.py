"""What a training run records beside losses and trace: the least possible trace, and five properties of the minimum."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.papers.wen2023.theory import bounds
from steppe.papers.wen2023.training import Training

Floats = NDArray[np.floating]

# The least trace at interpolation, and of all nets with the same outputs as this one.


def least_trace_at_interpolation(spec: Training, problem: Any) -> float | None:
    """A lower bound of the trace over all interpolators of this training set; None if none is known."""
    known: dict[str, tuple[Any, ...]] = {
        "no-bias": (bounds.two_layer_no_bias,) if spec.depth == 2 else (bounds.deep_no_bias, spec.depth),
        "bias": (bounds.two_layer_bias,) if spec.depth == 2 else (bounds.deep_bias, spec.depth),
        "sim-ln": (bounds.sim_ln, spec.eps),
        "sim-bn": (bounds.sim_bn,),
    }
    if spec.activation != "relu" or spec.network not in known:
        return None
    bound, *arguments = known[spec.network]
    x, y = np.asarray(problem.x, float), np.asarray(problem.y, float)
    if problem.loss_function.name == "logistic":
        return float(bounds.logistic(bound, x, y, *arguments, smoothing=problem.loss_function.smoothing))
    return float(bound(x, y, *arguments))


def least_trace_is_known(spec: Training) -> bool:
    """Whether `least_trace` holds: for ReLU nets without normalisation, whose trace has no residual part."""
    return spec.activation == "relu" and spec.network in ("bias", "no-bias")


def least_trace(problem: Any, w: Any) -> float:
    """(1/n) Σ ℓ″(fᵢ) D |fᵢ|^{2(D−1)/D} ‖x′ᵢ‖^{2/D}: the least trace of any such net with the outputs of this one.

    This is Eq. 3 and theorem 4.1, which are stated at interpolation, with f(xᵢ) for yᵢ and the loss's own curvature.
    """
    depth = getattr(problem.predict, "depth", 2)
    lengths = np.sqrt(np.sum(np.asarray(problem.x, float) ** 2, axis=1) + problem.predict.bias)
    f = np.asarray(problem.predictions(w), float)
    least = depth * np.abs(f) ** (2 * (depth - 1) / depth) * lengths ** (2 / depth)
    return float(np.mean(_curvature(problem.loss_function.name, f) * least))


def _curvature(loss: str, f: Any) -> Any:
    """ℓ″(f), which does not depend on the label for these losses."""
    if loss == "logistic":
        s = 1 / (1 + np.exp(-np.abs(f)))
        return s * (1 - s)
    return 2.0 if loss == "mse" else 1.0


# Properties that could tell a generalising flattest minimiser from a memorising one (question 2 of the paper).
#
# All come from the contributions c_ij = v_j φ_j(xᵢ) of neuron j to the output on training example i, f(xᵢ) = Σⱼ c_ij.
# A memorising net has a neuron for each example; the four-neuron net of P_xor uses each neuron on a quarter of them.


def properties_are_known(spec: Training) -> bool:
    return spec.depth == 2 and spec.network in ("no-bias", "bias", "sim-bn", "sim-ln")


def feature_rank(problem: Any, w: Any) -> float:
    """(Σ σ²)²/Σ σ⁴ of the singular values of (c_ij): how many directions the features span."""
    return _participation(np.linalg.svd(contributions(problem, w), compute_uv=False) ** 2)


def active_neurons(problem: Any, w: Any) -> float:
    """(Σ s)²/Σ s² of the sizes sⱼ = Σᵢ |c_ij|: how many neurons do the work."""
    return _participation(np.abs(contributions(problem, w)).sum(axis=0))


def sharing(problem: Any, w: Any) -> float:
    """The share of the training examples on which a neuron fires, a mean over neurons weighted by their sizes sⱼ.

    It is 1/n for a net with one neuron for each example.
    """
    c = np.abs(contributions(problem, w))
    sizes = c.sum(axis=0)
    return float((c > 0).mean(axis=0) @ sizes / max(sizes.sum(), 1e-300))


def path_norm(problem: Any, w: Any) -> float:
    """Σⱼ ‖(W₁, b₁)ⱼ‖ |vⱼ|/sⱼ, sⱼ the normalisation's divisor of neuron j; 1/sⱼ is averaged over the examples."""
    rows, v, scales, _ = _parts(problem, w)
    return float(np.sum(np.linalg.norm(rows, axis=1) * np.abs(v) * np.mean(1 / scales, axis=0)))


def normalised_margin(problem: Any, w: Any) -> float:
    """min yᵢ f(xᵢ) over the path norm."""
    f = contributions(problem, w).sum(axis=1)
    return float(np.min(np.asarray(problem.y, float) * f) / max(path_norm(problem, w), 1e-300))


_MEASURED = (feature_rank, active_neurons, sharing, path_norm, normalised_margin)
PROPERTIES: dict[str, Callable[[Any, Any], float]] = {measure.__name__: measure for measure in _MEASURED}


def contributions(problem: Any, w: Any) -> Floats:
    """(c_ij), shape (n, m)."""
    _, v, scales, features = _parts(problem, w)
    return features / scales * v[None]


def _participation(sizes: Floats) -> float:
    return float(sizes.sum() ** 2 / max(float(np.sum(sizes**2)), 1e-300))


def _parts(problem: Any, w: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows of (W₁, b₁), outgoing weights, divisors of the normalisation (n or 1, m or 1), hidden layer (n, m)."""
    params = {name: np.asarray(a, float) for name, a in problem.unravel(w).items()}
    x, kind = np.asarray(problem.x, float), type(problem.predict).__name__
    rows, outer = params["W1"], params["W2"]
    h = x @ rows.T
    if "b1" in params:
        h, rows = h + params["b1"][None], np.column_stack([rows, params["b1"]])
    a = np.asarray(problem.predict.activation(h), float)
    scales = np.ones((1, 1))
    if kind == "SimLN":
        scales = np.maximum(np.linalg.norm(a, axis=1, keepdims=True), problem.predict.eps)
    elif kind == "SimBN":
        root = np.sqrt(np.mean(a**2, axis=0, keepdims=True))
        scales, outer = np.where(root > 0, root, 1), outer * params["gamma"]
    return rows, outer, scales, a
