"""Networks whose first and second derivatives in the parameters are known in closed form."""

import abc
from typing import Any

from jax import Array


class ClosedForm(abc.ABC):
    """A network of scalar output that knows ‖∇f(x)‖² and Δf(x) = tr ∇²f(x), derivatives in all its parameters.

    The exact trace then costs one forward pass instead of one product for each parameter.
    """

    @abc.abstractmethod
    def curvature(self, params: Any, x: Array) -> tuple[Array, Array]:
        """(‖∇f(xᵢ)‖², Δf(xᵢ)) for each example, (n,) each."""
