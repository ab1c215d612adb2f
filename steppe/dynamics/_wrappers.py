"""What wraps another dynamics: decay of some parameters, a held norm, label noise."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe._random import label_noise
from steppe.dynamics._base import Dynamics, batch_loss, rate
from steppe.kernels.training import Recipe
from steppe.problem import Problem


def inner(dynamics: Any) -> Dynamics:
    """The dynamics that is wrapped; raises if it is none."""
    if not isinstance(dynamics, Dynamics):
        check.refuse("dynamics", "a dynamics", dynamics, "Pass for example SAM(0.01, 0.1).")
    return dynamics


def named(names: Any) -> frozenset[str]:
    """The names of parameters; one text is no list of names."""
    try:
        found = None if isinstance(names, str | bytes) else frozenset(names)
    except TypeError:
        found = None
    if found is None:
        check.refuse("names", "a list or set of names", names, 'Pass for example {"W1", "b1"}.')
    return found


def refuse_unknown(problem: Problem, w: Array, names: frozenset[str]) -> None:
    """Raise unless the parameters are a dict that has all the names."""
    params = problem.unravel(w)
    if not isinstance(params, dict) or not names or not names <= params.keys():
        known = sorted(params) if isinstance(params, dict) else type(params).__name__
        remedy = f"The parameters of this problem are {known}."
        check.refuse("names", "names of parameters in a dict", sorted(names), remedy)


def scaled(problem: Problem, dynamics: Dynamics, state: Any, names: frozenset[str], factor: Array) -> Any:
    """The state of `dynamics` with those parameters multiplied by `factor`."""
    params = problem.unravel(dynamics.position(state))
    params |= {name: factor * params[name] for name in names}
    w = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(params)])
    return eqx.tree_at(dynamics.position, state, w)


class Wrapper(eqx.Module):
    """What a dynamics around another one takes over from it: its state, batches and costs."""

    dynamics: Dynamics

    @property
    def batch_size(self) -> int | None:
        return self.dynamics.batch_size

    @property
    def gradients_per_step(self) -> int:
        return self.dynamics.gradients_per_step

    def position(self, state: Any) -> Array:
        return self.dynamics.position(state)


@final
class Decayed(Wrapper, Dynamics):  # type: ignore[override]
    """The steps of `dynamics`; after each, the parameters called `names` are multiplied by 1 − `shrink`.

    That is weight decay λ of these parameters alone, with shrink = ηλ at the rate η.

    >>> import jax.numpy as jnp, steppe
    >>> params = {"a": jnp.array([8.0]), "b": jnp.array([7.0])}
    >>> p = steppe.Problem(lambda w, x: x @ w["a"], params, jnp.ones((1, 1)), jnp.ones(1), steppe.losses.mse)
    >>> steppe.run(p, Decayed(steppe.dynamics.GD(0.0), {"a"}, shrink=0.5), stop=steppe.until.steps(3)).w.tolist()
    [1.0, 7.0]
    """

    shrink: Array
    names: frozenset[str] = eqx.field(static=True)

    def __init__(self, dynamics: Dynamics, names: Iterable[str], shrink: ArrayLike):
        self.dynamics, self.names, self.shrink = inner(dynamics), named(names), rate("shrink", shrink)
        if not isinstance(self.shrink, jax.core.Tracer) and np.any(np.asarray(self.shrink) > 1):
            check.refuse("shrink", "at most 1", shrink, "More than 1 turns the signs: pass ηλ, such as 0.01.")

    def start(self, problem: Problem, w: Array) -> Any:
        refuse_unknown(problem, w, self.names)
        return self.dynamics.start(problem, w)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        new, loss = self.dynamics.step(problem, state, index, key=key)
        kept = 1 - self.shrink.astype(self.position(new).dtype)
        return scaled(problem, self.dynamics, new, self.names, kept), loss


@final
class Projected(Wrapper, Dynamics):  # type: ignore[override]
    """w ← Π(step(w)), where Π scales the parameters called `names`, together, to the Euclidean norm `norm`.

    The run begins at Π(w). This is the projected training of wen2023, figure 6b.

    >>> import steppe
    >>> params = {"a": jnp.array([3.0, 4.0]), "b": jnp.array([7.0])}
    >>> p = steppe.Problem(lambda w, x: x @ w["a"], params, jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> steppe.run(p, Projected(steppe.dynamics.GD(0.0), {"a"}, norm=10.0), stop=steppe.until.steps(1)).w.tolist()
    [6.0, 8.0, 7.0]
    """

    norm: Array
    names: frozenset[str] = eqx.field(static=True)

    def __init__(self, dynamics: Dynamics, names: Iterable[str], norm: ArrayLike):
        self.dynamics, self.names, self.norm = inner(dynamics), named(names), rate("norm", norm)

    def recipe(self) -> Recipe | None:
        recipe = self.dynamics.recipe()
        return None if recipe is None or recipe.held else replace(recipe, held=self.names, norm=float(self.norm))

    def start(self, problem: Problem, w: Array) -> Any:
        refuse_unknown(problem, w, self.names)
        return self._project(problem, self.dynamics.start(problem, w))

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        new, loss = self.dynamics.step(problem, state, index, key=key)
        return self._project(problem, new), loss

    def _project(self, problem: Problem, state: Any) -> Any:
        params = problem.unravel(self.position(state))
        length = jnp.sqrt(sum(jnp.sum(params[name] ** 2) for name in self.names))
        # Parameters that are all 0 have no direction, so they stay 0.
        factor = self.norm.astype(length.dtype) / jnp.where(length > 0, length, 1)
        return scaled(problem, self.dynamics, state, self.names, factor)


@final
class LabelNoise(Wrapper, Dynamics):  # type: ignore[override]
    """The steps of `dynamics` with labels y + σξ, where every step draws a standard Gaussian ξ (Blanc et al. 2020).

    The labels must be real numbers, so the loss must be `mse` or `half_mse`. A run stops by its loss on the labels
    without noise.

    >>> import jax.numpy as jnp, steppe
    >>> from steppe._random import step_key
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> r = steppe.run(p, LabelNoise(steppe.dynamics.GD(0.5), sigma=0.1), stop=steppe.until.steps(1))
    >>> bool(abs(r.w[0] - 1 - 0.5 * label_noise(step_key(0, 0), 1, 0.1, p.y)[0]) < 1e-6)   # f = y: the step is η σ ξ
    True
    """

    sigma: Array

    def __init__(self, dynamics: Dynamics, sigma: ArrayLike):
        self.dynamics, self.sigma = inner(dynamics), rate("sigma", sigma)

    def recipe(self) -> Recipe | None:
        recipe = self.dynamics.recipe()
        return None if recipe is None or recipe.sigma else replace(recipe, sigma=float(self.sigma))

    def start(self, problem: Problem, w: Array) -> Any:
        if problem.loss_function.name not in ("mse", "half_mse"):
            remedy = "Flip labels of a classification with steppe.data instead."
            check.refuse(
                "problem", "of loss mse or half_mse for Gaussian label noise", problem.loss_function.name, remedy
            )
        return self.dynamics.start(problem, w)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        noise = label_noise(key, min(self.batch_size or len(problem), len(problem)), self.sigma, problem.y)
        # The last batch of an epoch may be smaller: it uses the first of the same numbers.
        y = problem.y + noise if index is None else problem.y.at[index].add(noise[: len(index)])
        noisy = eqx.tree_at(lambda p: p.y, problem, y)
        new, _ = self.dynamics.step(noisy, state, index, key=jax.random.fold_in(key, 0))
        return new, batch_loss(problem, self.position(state), index)
