"""Beyond the paper: the flattest of all interpolators, inner weights included, with and without inner biases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.multi_index.setting import Activation, model, sigma

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Alternating:
    """From inner weights of correlation ν, `rounds` times `steps` steps of descent; one row before and one after each.

    With `bias` an example is (x, 1) and an inner weight (w, b) of unit norm: ‖(x, 1)‖ in the flatness, as D.6 has it.
    """

    KIND: ClassVar[str] = "multi-index/alternating"

    activation: Activation
    bias: bool = False
    noise: float = 0.0
    r: int = 1
    d: int = 20
    n: int = 100
    m: int = 300
    nu: float = 0.05
    rounds: int = 20
    steps: int = 10
    fresh: int = 4000
    rtol: float = 1e-5
    seed: int = 0

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe.data import multi_index
        from steppe.papers.multi_index import theory
        from steppe.store import Computed

        rng, activation = np.random.default_rng([self.seed, 0]), sigma(self.activation)
        link, U, _ = model("sum", self.activation, self.r, self.d, rng)
        x, y, *_ = multi_index(link, U, self.n, noise=self.noise, key=rng)
        student = theory.copies(link, U, self.m)
        W = theory.correlated(self.m, U, self.nu, key=rng)
        if self.bias:
            # As long as a coordinate of w, so that no direction is favoured.
            W = np.column_stack([W, rng.standard_normal(self.m) / self.d**0.5])
            W /= np.linalg.norm(W, axis=1, keepdims=True)
        points = np.column_stack([x, np.ones(self.n)]) if self.bias else x
        columns: dict[str, list[float]] = {"step": [], "flatness": [], "loss": [], "error": [], "correlation": []}
        lr, step = 0.3, 0
        for round_ in range(self.rounds + 1):
            if round_ == 0:
                f = theory.features(W, points, activation)
                best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=self.rtol)
            elif lr > 0:
                done = theory.descend(points, y, W, activation, steps=self.steps, lr=lr, rtol=self.rtol)
                W, best, lr, step = done.W, done.interpolator, done.lr, step + len(done.values) - 1
            cost = theory.features(W, points, activation).q * np.abs(best.a) ** (2 - 2 / (activation.degree + 1))
            inner, b = (W[:, :-1], W[:, -1]) if self.bias else (W, None)
            fresh = theory.sampled_loss(inner, best.a, activation, link, U, b=b, n=self.fresh, key=1)
            along = np.linalg.norm(inner @ U.T, axis=1)
            columns["step"].append(step)
            columns["flatness"].append(best.flatness)
            columns["loss"].append(fresh.value)
            columns["error"].append((fresh.upper - fresh.value) / 4)
            columns["correlation"].append(float(cost @ along / cost.sum()))
        costs = theory.features(student.W, x, activation, b=np.zeros(self.m) if self.bias else None)
        result = {
            "bias": 0.0 if b is None else float(cost @ np.abs(b) / cost.sum()),
            "teacher": float(costs.q @ np.abs(student.a) ** costs.p),
            "pointwise": theory.pointwise(x, y, self.m, activation, bias=self.bias),
        }
        return Computed({k: np.array(v) for k, v in columns.items()}, {"W": W, "a": best.a}, result)
