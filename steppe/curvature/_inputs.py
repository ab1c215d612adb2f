"""What a measure refuses before it computes anything."""

from functools import lru_cache
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core

from steppe import check
from steppe.curvature._equations import bodies, shaped, traced
from steppe.problem import Predict, Problem, Unravel


def a_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        check.refuse("problem", "a steppe.Problem", problem, "Build steppe.Problem(predict, params, x, y, loss).")


def vector(problem: Problem, w: Any) -> Array:
    """`w` as a flat vector of the problem, finite or not: to what is read off a run, divergence is a result."""
    a_problem(problem)
    for leaf in jax.tree.leaves(w):
        dtype = np.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            check.refuse("w", "of a real floating type", str(dtype), "Convert it: w.astype(float).")
    return problem.vector(w)


def steady_vector(problem: Problem, w: Any) -> Array:
    """The same, of a network that is one function in JAX. What it calls outside of JAX is not looked at: that would
    take two evaluations more at every moment that a run records."""
    v = vector(problem, w)
    _leaves_jax(problem)
    return v


def prepared(problem: Problem, w: Any) -> Array:
    """`w` as a finite flat vector, of 32 bits at least, of a problem whose network gives the same predictions every
    time."""
    v = vector(problem, w)
    check.finite("w", v, "Curvature is defined at finite parameters only: has the run diverged?")
    for dtype in problem.unravel.dtypes:
        if dtype.itemsize < 4:
            # Rounded to three digits, ∇²L v is no longer linear in v, nor symmetric.
            remedy = 'Build the problem from params.astype("float32") or float64.'
            check.refuse("params", "float32 or float64 for curvature", str(dtype), remedy)
    if _leaves_jax(problem):
        first, second = problem.predictions(v), problem.predictions(v)
        if not np.array_equal(first, second, equal_nan=True):
            _refuse_randomness(f"a difference of {float(jnp.max(jnp.abs(first - second))):.3g} between two calls")
    return v


def _leaves_jax(problem: Problem) -> bool:
    leaves, structure = jax.tree.flatten(problem.x)
    return _calls_out(problem.predict, problem.unravel, structure, tuple((a.shape, a.dtype) for a in leaves))


@lru_cache(maxsize=256)  # a network is looked at once, not at every step of a trajectory
def _calls_out(predict: Predict, unravel: Unravel, structure: Any, shapes: tuple[Any, ...]) -> bool:
    """Whether predict leaves JAX. Traces it twice: whatever it draws from a generator of its own is then different,
    and refused."""
    params = jax.eval_shape(unravel, shaped((unravel.size,), jnp.result_type(*unravel.dtypes)))
    x = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    names, numbers = zip(*(_content(traced(predict, params, x)) for _ in range(2)), strict=True)
    if names[0] != names[1] or not all(map(_equal, *numbers)):
        _refuse_randomness("another function at the second call")
    return not {"pure_callback", "io_callback"}.isdisjoint(names[0])


def _refuse_randomness(seen: str) -> NoReturn:
    remedy = "Fix its randomness: give it a constant key, or switch dropout off for measuring."
    check.refuse("predict", "the same function of (params, x) at every call", seen, remedy)


def _content(closed: core.ClosedJaxpr) -> tuple[list[str], list[Any]]:
    """The names of all equations, and all the numbers in them."""
    names, numbers = [], list(closed.consts)
    for equation in closed.jaxpr.eqns:
        names.append(equation.primitive.name)
        numbers += [v.val for v in equation.invars if isinstance(v, core.Literal)]
        for body in bodies(equation):
            inside = _content(body)
            names += inside[0]
            numbers += inside[1]
    return names, numbers


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    return np.array_equal(a, b, equal_nan=True)
