"""The least trace there is, for a training run: at interpolation, and for the outputs a net has on the way."""

from typing import Any

import numpy as np

from steppe.papers.wen2023.training import Training


def at_interpolation(spec: Training, problem: Any) -> float | None:
    """The least trace of a minimiser on this training set, None where none is known."""
    from steppe.papers.wen2023.theory import bounds

    known: dict[str, tuple[Any, ...]] = {
        "no-bias": (bounds.two_layer_no_bias,),
        "bias": (bounds.two_layer_bias,) if spec.depth == 2 else (bounds.deep_bias, spec.depth),
        "sim-ln": (bounds.sim_ln, spec.eps),
        "sim-bn": (bounds.sim_bn,),
    }
    if spec.activation != "relu" or spec.network not in known or (spec.network == "no-bias" and spec.depth > 2):
        return None
    bound, *arguments = known[spec.network]
    x, y = np.asarray(problem.x, float), np.asarray(problem.y, float)
    if problem.criterion.name == "logistic":
        return float(bounds.logistic(bound, x, y, *arguments, smoothing=problem.criterion.smoothing))
    return float(bound(x, y, *arguments))


def known_away_from_interpolation(spec: Training) -> bool:
    """ReLU nets without normalisation, whose Hessian has no residual part in its trace."""
    return spec.activation == "relu" and (spec.network == "bias" or (spec.network == "no-bias" and spec.depth == 2))


def least_trace(problem: Any, w: Any) -> float:
    """(1/n) Σ ℓ″(fᵢ) D |fᵢ|^{2(D−1)/D} ‖x′ᵢ‖^{2/D}: the least trace of any such net with this net's own outputs.

    Eq. 3 and theorem 4.1, which are stated at interpolation, with f(xᵢ) in place of yᵢ and the loss's own curvature.
    """
    depth = getattr(problem.predict, "depth", 2)
    lengths = np.sqrt(np.sum(np.asarray(problem.x, float) ** 2, axis=1) + problem.predict.bias)
    f = np.asarray(problem.predictions(w), float)
    least = depth * np.abs(f) ** (2 * (depth - 1) / depth) * lengths ** (2 / depth)
    return float(np.mean(_bend(problem.criterion.name, f) * least))


def _bend(loss: str, f: Any) -> Any:
    """ℓ″(f), which depends on the label for none of the losses."""
    if loss == "logistic":
        s = 1 / (1 + np.exp(-np.abs(f)))
        return s * (1 - s)
    return 2.0 if loss == "mse" else 1.0
