"""Sharpness along a trajectory, from the eigenvectors of the measurement before."""

from dataclasses import replace

from jax import Array

from steppe import check, linalg
from steppe.estimate import Estimate
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Curvature, Statistics, hessian
from steppe.measures.policy import check_matrix
from steppe.problems import Problem
from steppe.seed import seed


class Tracker:
    """λ_max of ∇²L at one point of a trajectory after another: `record={"sharpness": Tracker()}` in `steppe.run`.

    A call costs at most `max_matvecs` products, many of them fewer, and gives the value to `rtol`; the first one
    certifies its interval as `sharpness` does, and so does every `certify_every`-th. In between the lower end of the
    interval is proven, the upper one is what so few products can prove: far away. Where the spectrum moved too fast
    for so few, as when gradient descent is thrown back from the edge of stability, the value is certified too; with
    `insist=False` it is not, and `settled` is False. `takeover` tells whether another eigenvector took over.

    One tracker follows one trajectory. It starts afresh when a problem of another size comes.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(8), jnp.eye(8) * jnp.arange(8.0)[None], jnp.ones(8), steppe.losses.mse)
    >>> track = Tracker()
    >>> [round(track(p, w).value, 3) for w in (p.w0, p.w0 + 1)]     # (2/n) XᵀX everywhere: 2/8 · 7²
    [12.25, 12.25]
    """

    def __init__(
        self,
        *,
        rtol: float = 1e-3,
        confidence: float = 0.99,
        max_matvecs: int = 6,
        certify_every: int | None = None,
        insist: bool = True,
        curvature: Curvature = hessian,
        statistics: Statistics = FULL_BATCH,
        memory: float = MEMORY,
        key: int | Array = 0,
    ):
        check_matrix(curvature, statistics, memory)
        if certify_every is not None:
            check.integer("certify_every", certify_every, minimum=1)
        self._fresh = linalg.Tracker(1, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs, key=seed(key))
        self._certify_every, self._insist, self._curvature = certify_every, insist, curvature
        self._statistics, self._memory = statistics, memory
        self._state = self._fresh

    @property
    def settled(self) -> bool:
        return self._state.settled

    @property
    def takeover(self) -> bool:
        return self._state.takeover

    def __call__(self, problem: Problem, w: Array) -> Estimate:
        with linalg.one_thread():
            return self._measured(problem, w)

    def _measured(self, problem: Problem, w: Array) -> Estimate:
        operator = self._curvature(problem, w, statistics=self._statistics, memory=self._memory)
        if self._state.p != operator.size:
            self._state = replace(self._fresh, p=operator.size)
        due = self._certify_every is not None and self._state.calls % self._certify_every == 0
        follow = self._state.insist if self._insist else self._state.measure
        estimate, self._state = (self._state.certify if due else follow)(operator)
        return measured(estimate, self._statistics)
