"""Beyond the paper: approximate interpolation, ‖Φa − y‖ ≤ τ, where the labels have noise that does not vanish."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.multi_index.resumed import rows
from steppe.papers.multi_index.setting import Activation, model, sigma

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

# `share` = τ/(noise √n): at 1 as much is left as there is noise. `loss` without the noise.
NAMES = ("seed", "share", "flatness", "lower", "residual", "loss")


@dataclass(frozen=True)
class Approximate:
    """Inner weights of correlation ν, label noise of standard deviation `noise`, and τ from 0 up."""

    KIND: ClassVar[str] = "multi-index/approximate"

    activation: Activation
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2)
    nu: float = 0.5
    r: int = 1
    noise: float = 0.5
    d: int = 30
    n: int = 150
    m: int = 600
    seeds: int = 10
    rtol: float = 1e-5

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        from steppe.store import Computed

        return Computed(rows(NAMES, self.seeds * len(self.shares), self._row, checkpoint), {}, {})

    def _row(self, k: int) -> dict[str, float]:
        import numpy as np

        from steppe.data import multi_index
        from steppe.papers.multi_index import theory

        seed, which = divmod(k, len(self.shares))
        rng, activation = np.random.default_rng([seed, 0]), sigma(self.activation)
        link, U, _ = model("sum", self.activation, self.r, self.d, rng)
        x, y, *_ = multi_index(link, U, self.n, noise=self.noise, key=rng)
        W = theory.correlated(self.m, U, self.nu, key=rng)
        f = theory.features(W, x, activation)
        tau = self.shares[which] * self.noise * self.n**0.5
        best = theory.flattest_interpolator(f.phi, y, f.q, f.p, tau=tau, rtol=self.rtol)
        return {
            "seed": seed, "share": self.shares[which], "flatness": best.flatness, "lower": best.lower,
            "residual": best.residual, "loss": theory.population_loss(W, best.a, activation, link, U),
        }  # fmt: skip
