"""Theorem B.1 in numbers: how far the flow from α·1 ends above the least norm, as α → 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class FlowBias:
    """ε(α) = ‖w_∞^L‖₁ − min for each α, by the closed form of the flow."""

    KIND: ClassVar[str] = "conflicting-biases/flow-bias"

    x: tuple[float, ...] = (1.0, 0.4)
    y: float = 0.66
    depth: int = 2
    smallest: float = 1e-6
    count: int = 25

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe.papers.conflicting_biases.theory import flow_limit
        from steppe.store import Computed

        alphas = np.logspace(np.log10(self.smallest), -0.5, self.count)
        x = np.asarray(self.x)
        ends = np.stack([flow_limit(x, self.y, a, depth=self.depth) for a in alphas])
        least = self.y / x.max()
        # ‖w^L‖₁ − y/x_max = Σ uᵢ(1 − xᵢ/x_max) on M: the difference of two near numbers is never formed.
        excess = np.abs(ends) ** self.depth @ (1 - x / x.max())
        return Computed({"alpha": alphas, "excess": excess}, {"w": ends}, {"least": least})

    def exponent(self) -> float:
        """p in ε ∝ α^p: 2(1 − x₂/x_max) for two layers, L for more."""
        from steppe.papers.conflicting_biases.theory import excess_rate

        return excess_rate(self.x) if self.depth == 2 else float(self.depth)
