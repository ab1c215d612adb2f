"""Label-noise SGD (Blanc et al. 2020): any dynamics whose labels are drawn anew around the true ones at every step."""

from typing import Any, final

import equinox as eqx
import jax
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.dynamics.base import Dynamics, batch_loss, rate
from steppe.problems import Problem


@final
class LabelNoise(Dynamics):
    """The steps of `dynamics` with y + σξ for the labels of the batch, ξ standard Gaussian and fresh at every step.

    For real labels, that is losses of squares. The loss that stops a run is that of the true labels.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> r = steppe.run(p, LabelNoise(steppe.dynamics.GD(0.5), sigma=0.1), stop=steppe.until.steps(1))
    >>> bool(abs(r.w[0] - 1 - 0.5 * draw(step_key(0, 0), 1, 0.1, p.y)[0]) < 1e-6)   # f = y: the step is η σ ξ
    True
    """

    dynamics: Dynamics
    sigma: Array
    batch_size: int | None = eqx.field(static=True)

    def __init__(self, dynamics: Dynamics, sigma: ArrayLike):
        if not isinstance(dynamics, Dynamics):
            check.refuse("dynamics", "a dynamics", dynamics, "Pass for example GD(0.01, batch_size=1).")
        self.dynamics, self.sigma, self.batch_size = dynamics, rate("sigma", sigma), dynamics.batch_size

    @property
    def gradients_per_step(self) -> int:  # type: ignore[override]
        return self.dynamics.gradients_per_step

    def start(self, problem: Problem, w: Array) -> Any:
        if problem.criterion.name not in ("mse", "half_mse"):
            remedy = "Flip labels of a classification with steppe.problems.data instead."
            check.refuse("problem", "of loss mse or half_mse for Gaussian label noise", problem.criterion.name, remedy)
        return self.dynamics.start(problem, w)

    def position(self, state: Any) -> Array:
        return self.dynamics.position(state)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        noise = draw(key, min(self.batch_size or len(problem), len(problem)), self.sigma, problem.y)
        # The last batch of an epoch may be smaller: it takes the first of the same numbers.
        y = problem.y + noise if index is None else problem.y.at[index].add(noise[: len(index)])
        noisy = eqx.tree_at(lambda p: p.y, problem, y)
        new, _ = self.dynamics.step(noisy, state, index, key=jax.random.fold_in(key, 0))
        return new, batch_loss(problem, self.position(state), index)


def draw(key: Array, size: int, sigma: ArrayLike, y: Array) -> Array:
    """σξ for a batch of `size` labels like those of y."""
    return jax.numpy.asarray(sigma, y.dtype) * jax.random.normal(key, (size, *y.shape[1:]), y.dtype)


def step_key(key: int, step: int | Array) -> Array:
    """The key that the generic path hands to that step of a run."""
    return jax.random.fold_in(jax.random.key(key), step)
