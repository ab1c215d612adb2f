"""The one example behind figures 4, 15 and 16, and what theory says of it. The paper does not state its own.

Ours is a draw in which the paper's observations can all be seen: the least norm generalises better than the least
sharpness, the best point of M lies between, and gradient descent diverges while flat points of M remain.
"""

from dataclasses import dataclass
from typing import Any

from steppe.papers.conflicting_biases.theory.manifold import least_norm, least_sharpness


@dataclass(frozen=True)
class Example:
    """x > 0, y > 0 and the start α·1; rates are counted in units of η₁ = 2/S_max = 1/(2 y x_max)."""

    x: tuple[float, ...] = (1.0, 0.4)
    y: float = 0.66
    alpha: float = 0.05

    @property
    def unit(self) -> float:
        """η₁, at which 2/η is the sharpness of the least-norm solution; η_c as α → 0."""
        return 1 / (2 * self.y * max(self.x))

    @property
    def limit(self) -> float:
        """The η (in η₁) at which 2/η is the least sharpness on M: beyond it nothing on M is stable."""
        return max(self.x) / min(self.x)

    def manifold(self) -> Any:
        from steppe.papers.conflicting_biases.theory import Manifold

        return Manifold(self.x, self.y)

    def flow(self, count: int = 200) -> Any:
        """Points along the gradient flow from α·1 to its limit."""
        import numpy as np

        from steppe.papers.conflicting_biases.theory import flow_end, flow_path

        start = np.full(len(self.x), self.alpha)
        return flow_path(self.x, start, np.linspace(0, flow_end(self.x, self.y, start), count))

    def critical(self) -> float:
        """η_c = 2/s_GF in η₁: s_GF is the largest sharpness along the flow."""
        return 2 / float(self.manifold().operator_norm(self.flow(2000)).max()) / self.unit

    def best_rate(self) -> float:
        """The η (in η₁) at which 2/η is the sharpness of M_G, the best generalising point of M."""
        from steppe.papers.conflicting_biases.theory import least_risk

        return 2 / float(self.manifold().sharpness(least_risk(self.x, self.y))) / self.unit

    def risks(self) -> dict[str, float]:
        """The risk of the three idealised algorithms."""
        from steppe.papers.conflicting_biases.theory import least_risk, risk

        d = len(self.x)
        return {
            "norm": float(risk(least_norm(self.x, self.y).point(d))),
            "sharpness": float(risk(least_sharpness(self.x, self.y).point(d))),
            "optimal": float(risk(least_risk(self.x, self.y))),
        }

    def at_sharpness(self, rates: Any) -> Any:
        """For d = 2: the point of M with S = 2/η (η in η₁), or the flow's limit where that is flatter."""
        import numpy as np

        from steppe.papers.conflicting_biases.theory import flow_limit

        x = np.asarray(self.x)
        target = np.maximum(1 / (2 * np.asarray(rates, dtype=float) * self.unit), self.y * x.min())
        # ⟨x, u⟩ = y and ⟨x², u⟩ = 1/(2η), two equations for two entries.
        u = np.linalg.solve(np.stack([x, x**2]), np.stack([np.full_like(target, self.y), target])).T
        end = flow_limit(x, self.y, self.alpha)
        return np.where((x**2 @ end**2 <= target)[:, None], end, np.sqrt(np.maximum(u, 0)))
