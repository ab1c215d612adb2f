"""Parameters picked by their names, for dynamics that treat some of them apart."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.dynamics.base import Dynamics
from steppe.problems import Problem


def refuse_unknown(problem: Problem, w: Array, names: frozenset[str]) -> None:
    """An error unless the parameters are a dict that has all the names."""
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
