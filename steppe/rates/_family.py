"""Any dynamics at many rates: SGD, heavy ball, SAM, Adam or others of optax, and the sharpness that each bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, linalg, until, when
from steppe.curvature import hessian
from steppe.dynamics import GD, SAM, Dynamics, HeavyBall, Optax
from steppe.dynamics._run import carried
from steppe.estimate import Accuracy
from steppe.outcome import Outcome
from steppe.problem import Problem
from steppe.rates._critical import Follow, Followed
from steppe.rates._descent import AVERAGED, Descent, Reached
from steppe.rates._descents import Limits

# At most so many measurements of the sharpness for each factor of ten in steps.
_LOOKS = when.logarithmic(per_decade=20)


@dataclass(frozen=True)
class Family:
    """One dynamics at every rate. It is at its edge where the stable sharpness, λ_max(S∇²L S), meets `limit`.

    `limit(lr, norm)` is the edge at the rate lr where the gradient has this norm. `scales(state)` are the entries of
    the diagonal S at a state of the dynamics; S = 1 without it. `convention` says all this in words.
    """

    make: Callable[[float], Dynamics]
    convention: str
    limit: Callable[[float, float], float]
    scales: Callable[[Any], NDArray[Any]] | None = None

    @classmethod
    def of(cls, dynamics: Any) -> "Family":
        """A function of the rate as a family, for a dynamics whose edge is known.

        >>> family = Family.of(lambda lr: HeavyBall(lr, 0.9))
        >>> family.convention, round(family.limit(0.1, 0.0), 6)
        ('heavy ball: λ_max(∇²L), edge at 2(1 + β)/η with β = 0.9', 38.0)
        """
        if isinstance(dynamics, Family):
            return dynamics
        example = dynamics(1.0) if callable(dynamics) else None
        if not isinstance(example, Dynamics) or example.in_time:
            remedy = "Pass for example dynamics=lambda lr: HeavyBall(lr, 0.9), or steppe.rates.Family.adam()."
            check.refuse("dynamics", "a function that makes a dynamics in steps from a rate", dynamics, remedy)
        batched = "" if example.batch_size is None else f", batches of {example.batch_size} (the edge is that of all)"
        if isinstance(example, HeavyBall):
            beta = float(example.momentum)
            words = f"heavy ball: λ_max(∇²L), edge at 2(1 + β)/η with β = {beta:g}"
            return cls(dynamics, words + batched, lambda lr, norm: 2 * (1 + beta) / lr)
        if isinstance(example, SAM):
            rho = float(example.rho)
            words = f"SAM: λ_max(∇²L), edge at λ(1 + ρλ/‖∇L‖) = 2/η with ρ = {rho:g}"
            return cls(dynamics, words + batched, lambda lr, norm: sam_edge(lr, rho, norm))
        known = "gradient descent: λ_max(∇²L), edge at 2/η"
        other = f"{type(example).__name__}: λ_max(∇²L) beside 2/η, which is the edge of gradient descent only"
        return cls(dynamics, (known if isinstance(example, GD) else other) + batched, lambda lr, norm: 2 / lr)

    @classmethod
    def adam(cls, *, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, batch_size: int | None = None) -> "Family":
        """`optax.adam` at every rate. With P = √ν̂ + ε held fixed, P^(−½)∇²L P^(−½) has the edge 2(1 + β₁)/((1 − β₁)η).

        >>> round(Family.adam().limit(1.0, 0.0), 6)                                          # Cohen et al. 2022: 38/η
        38.0
        """
        import optax

        edge = 2 * (1 + b1) / (1 - b1)

        def make(lr: float) -> Dynamics:
            return Optax(optax.adam(lr, b1=b1, b2=b2, eps=eps), batch_size)

        def scales(state: Any) -> NDArray[Any]:
            memory = next(s for s in jax.tree.leaves(state, is_leaf=_of_adam) if _of_adam(s))
            nu = np.concatenate([np.asarray(leaf, dtype=float).ravel() for leaf in jax.tree.leaves(memory.nu)])
            corrected = nu / max(1 - b2 ** int(memory.count), np.finfo(float).tiny)
            return 1 / np.sqrt(np.sqrt(corrected) + eps)

        words = (
            f"Adam: λ_max(P^−½ ∇²L P^−½), P = √ν̂ + ε with ν̂ bias-corrected and held fixed, edge at "
            f"2(1 + β₁)/((1 − β₁) η) = {edge:.4g}/η with β₁ = {b1:g}"
        )
        return cls(make, words, lambda lr, norm: edge / lr, scales)


def sam_edge(lr: float, rho: float, norm: float) -> float:
    """The λ with λ(1 + ρλ/‖∇L‖) = 2/η, where a step of SAM along the gradient stops to lower a quadratic loss (Long and
    Bartlett 2024).

    >>> sam_edge(0.5, 0.0, 1.0), sam_edge(0.5, 1.0, 2.0)                       # λ(1 + λ/2) = 4
    (4.0, 2.0)
    """
    if rho == 0:
        return 2 / lr
    if norm == 0:
        return 0.0
    return norm / (2 * rho) * (math.sqrt(1 + 8 * rho / (lr * norm)) - 1)


def _of_adam(state: Any) -> bool:
    import optax

    return isinstance(state, optax.ScaleByAdamState)


class Carried:
    """A `Runner`: each rate runs alone from w until the last goal, or until its steps are used up."""

    together = False

    def __init__(self, problem: Problem, w: Array, limits: Limits, family: Family, key: int):
        self.problem, self.w, self.limits, self.family, self.key = problem, w, limits, family, key
        self.done: dict[float, Descent] = {}
        self.stable: dict[tuple[float, float], dict[str, float]] = {}

    def outcomes(self) -> dict[float, Outcome]:
        return {lr: descent.outcome for lr, descent in self.done.items()}

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]:
        for lr in rates:
            if lr not in self.done:
                self.done[lr] = self._descent(lr)
        return tuple(self.done[lr] for lr in rates)

    def _descent(self, lr: float) -> Descent:
        """One run for each goal, all from w and with the same batches; the last one is recorded."""
        problem, w, goals = self.problem, self.w, self.limits.goals
        dynamics, most = self.family.make(lr), until.steps(self.limits.most(lr))
        reached, gradients = [], 0
        for goal in goals:
            follow = Follow(Followed.fresh(problem, key=self.key))
            record: dict[str, Callable[[Problem, Array], Any]] = {}
            if goal == goals[-1]:
                record = {"loss": _loss, "sharpness": follow, "l1": _l1, "l2": _l2}
                record |= {f"distance_{n}": _distance(w, n) for n in (1, 2)}
            stop = until.loss(goal) | most
            ended, state = carried(problem, dynamics, w, stop=stop, record=record, when=_LOOKS, key=self.key)
            gradients += ended.gradients
            if ended.outcome == "reached":
                middle = _centre(problem, dynamics, state, self.key)
                reached.append(Reached(goal, ended.steps, ended.w, middle))
                self.stable[lr, goal] = self._stable(lr, ended.w, state)
        products, columns = follow.followed.products, ended.records
        names = ("step", "loss", "sharpness", "l1", "l2")
        records = {name: np.asarray(columns[name], dtype=float) for name in names}
        records |= {f"distance_l{n}": np.asarray(columns[f"distance_{n}"], dtype=float) for n in (1, 2)}
        return Descent(lr, ended.outcome, ended.steps, gradients, products, tuple(reached), records)

    def _stable(self, lr: float, w: Array, state: Any) -> dict[str, float]:
        """The stable sharpness where a goal was reached, and its limit there."""
        norm = float(jnp.linalg.norm(jax.grad(self.problem.loss)(w)))
        limit = {"limit": self.family.limit(lr, norm)}
        if self.family.scales is None:
            return limit
        S, H = self.family.scales(state), hessian(self.problem, w)
        with linalg.one_thread():
            scaled = lambda v: S * np.asarray(H(S * np.asarray(v, dtype=float)), dtype=float)  # noqa: E731
            found = linalg.largest(scaled, S.size, accuracy=Accuracy(1e-3, max_matvecs=300), key=self.key).estimate
        return limit | {"stable_sharpness": found.value}


def _loss(problem: Problem, w: Array) -> Array:
    return problem.loss(w)


def _l1(problem: Problem, w: Array) -> Array:
    return jnp.sum(jnp.abs(w))


def _l2(problem: Problem, w: Array) -> Array:
    return jnp.linalg.norm(w)


def _distance(start: Array, order: int) -> Callable[[Problem, Array], Array]:
    return lambda problem, w: jnp.linalg.norm(w - start, order)


def _centre(problem: Problem, dynamics: Dynamics, state: Any, key: int) -> Array:
    """The mean of the next iterates, the present one first; batches are those of a new epoch."""
    rng, n = np.random.default_rng(key), len(problem)
    size, order = dynamics.batch_size, rng.permutation(n)
    total = jnp.zeros_like(dynamics.position(state))
    for k in range(AVERAGED):
        total = total + dynamics.position(state)
        index = None if size is None else jnp.asarray(np.take(order, np.arange(k * size, (k + 1) * size), mode="wrap"))
        state, _ = dynamics.step(problem, state, index, key=jax.random.key(k))
    return total / AVERAGED
