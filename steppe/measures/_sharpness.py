"""λ_max, the spectral norm and the top eigenvalues of a curvature matrix, and the tracker along a run."""

import sys
import warnings
from dataclasses import replace

from jax import Array

from steppe import check, linalg
from steppe._random import Key, generator, seed
from steppe.curvature import FULL_BATCH, MEMORY, Curvature, Statistics, hessian, smaller
from steppe.estimate import Accuracy, Estimate
from steppe.measures._kinks import kinks
from steppe.measures._policy import check_matrix, check_policy, measured
from steppe.problem import Problem

# λ_max, the algebraically largest eigenvalue of the Hessian.


class KinkWarning(UserWarning):
    """The Hessian is not defined where it was measured."""


def sharpness(
    problem: Problem,
    w: Array,
    *,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """λ_max(∇²L(w)), with an interval that holds it with probability `confidence`.

    The Ritz value of Lanczos from a random start lies below, the bound that the start's randomness gives above, the
    rounding of the products is added on both sides. The work ends when the interval is rtol wide, relative to the
    value; `converged` is False where `max_matvecs` came first. `curvature` may be another matrix of
    `measures.operators`, whose Gram matrix takes its place where that is smaller.

    Warns where w is at kinks across which the Hessian jumps by more than rtol: see `kinks`.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(sharpness(p, p.w0).value, 6)                          # ∇²L = [[1, 1], [1, 1]]
    2.0

    Kuczyński and Woźniakowski 1992 for the bound; see `steppe.linalg.largest`.
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    with linalg.one_thread():
        pair = linalg.largest(
            operator,
            operator.size,
            accuracy=Accuracy(rtol, confidence, max_matvecs),
            key=generator(key),
        )
    warn_of_kinks(problem, w, rtol=rtol, sharpness=pair.estimate.value if curvature is hessian else None)
    return measured(pair.estimate, statistics)


def warn_of_kinks(problem: Problem, w: Array, *, rtol: float = 1e-3, sharpness: float | None = None) -> None:
    """Says so, at the line that called this package, where the Hessian jumps at w by more than rtol: see `kinks`."""
    found = kinks(problem, w, rtol=rtol, sharpness=sharpness)
    if found.matter:
        warnings.warn(
            f"{found.matter} pre-activations are within rounding of a kink, across which the Hessian jumps: it is not "
            "defined there, and that of one side was measured. See steppe.measures._kinks(problem, w).",
            KinkWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """The `stacklevel`, for the function that asks, of the nearest caller outside of steppe."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "steppe":
        frame, level = frame.f_back, level + 1
    return level


# The largest magnitude of an eigenvalue of the Hessian.


def spectral_norm(
    problem: Problem,
    w: Array,
    *,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """‖∇²L(w)‖ = max |λ|, with the arguments of `sharpness`.

    It is the sharpness unless the most negative eigenvalue is the larger one, as it may be at a start far from any
    minimum: power iteration then converges to it and calls it sharpness.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.zeros(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(spectral_norm(p, p.w0).value, 6)                      # ∇²L = [[0, −1], [−1, 0]] at 0
    1.0
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    warn_of_kinks(problem, w)
    with linalg.one_thread():
        pair = linalg.spectral_norm(
            operator,
            operator.size,
            accuracy=Accuracy(rtol, confidence, max_matvecs),
            key=generator(key),
        )
    return measured(pair.estimate, statistics)


# The k algebraically largest eigenvalues of the Hessian.


def top_eigenvalues(
    problem: Problem,
    w: Array,
    k: int,
    *,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    block: int = 1,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> tuple[Estimate, ...]:
    """λ₁ ≥ … ≥ λ_k of ∇²L(w), all intervals holding together with probability `confidence`.

    `block` vectors at once see as many copies of a multiple eigenvalue; take it as large as the cluster. The other
    arguments are those of `sharpness`.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> [abs(round(e.value, 6)) for e in top_eigenvalues(p, p.w0, 2)]
    [2.0, 0.0]
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    block = check.integer("block", block, minimum=1)
    p = problem.w0.size
    if check.integer("k", k, minimum=1) > p:
        check.refuse("k", f"at most the number of parameters, {p}", k, "There are no more eigenvalues.")
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    warn_of_kinks(problem, w)
    many = min(k, operator.size)
    with linalg.one_thread():
        pairs = linalg.top_eigenpairs(
            operator,
            operator.size,
            many,
            block=min(block, operator.size),
            accuracy=Accuracy(rtol, confidence, max_matvecs),
            basis=max(32, 2 * (many + 2 * block)),
            key=generator(key),
        )
    # A Gram matrix leaves out zeros only.
    zeros = [Estimate.exact(0.0)] * (k - many)
    return tuple(measured(e, statistics) for e in (*pairs.estimates, *zeros))


# Sharpness along a trajectory, from the eigenvectors of the measurement before.


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
        self._fresh = linalg.Tracker(1, accuracy=Accuracy(rtol, confidence), call_matvecs=max_matvecs, key=seed(key))
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
