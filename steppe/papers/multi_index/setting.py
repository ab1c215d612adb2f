"""What a run of multi-index is about: link, activation, noise and sizes; names become objects when it computes.

Lost with the paper's formulas, and ours: the sizes, the noise (standard deviations 0.1 and 1), the coefficients 1/√r of
the sum of r = 5, the matrix A and the outer function of the quadratic form. There A has eigenvalues ±1/√d, so that
y = relu(xᵀAx) depends on all d directions, and ν is the correlation to the first r of its eigenvectors.
"""

from typing import Any, Literal

Activation = Literal["relu", "leaky", "quadratic", "linear"]
LinkName = Literal["sum", "linear", "quadratic-form"]


def sigma(activation: Activation) -> Any:
    from steppe.activations import leaky, linear, quadratic, rectifier

    return {"relu": rectifier, "leaky": leaky(0.1), "quadratic": quadratic, "linear": linear}[activation]


def model(link: LinkName, activation: Activation, r: int, d: int, rng: Any) -> tuple[Any, Any, Any]:
    """The link, its U, and the r directions that inner weights are correlated to.

    "sum" is of r copies of the activation itself, and for r = 1 the single-index model.
    """
    import numpy as np

    from steppe.data import orthonormal
    from steppe.data._multi_index import Composed, Linear, QuadraticForm, SumOfSingleIndex

    coefficients = (1 / r**0.5,) * r
    if link == "quadratic-form":
        U = orthonormal(d, d, key=rng)
        signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0) / d**0.5
        form = QuadraticForm(tuple(tuple(row) for row in np.diag(signs).tolist()))
        return Composed(_relu, form), U, U[:r]
    U = orthonormal(r, d, key=rng)
    return Linear(coefficients) if link == "linear" else SumOfSingleIndex(sigma(activation), coefficients), U, U


def _relu(z: Any) -> Any:
    return z * (z > 0)
