"""λ_max, the spectral norm and the top eigenvalues of a curvature matrix, and the tracker along a run."""

import sys
import warnings
from dataclasses import replace

from jax import Array

from steppe import check, linalg
from steppe._random import Key, generator, seed
from steppe.curvature import AnyProblem, Curvature, Statistics, backend, hessian
from steppe.curvature._kinks import kinks
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._extreme import EIGENVALUE
from steppe.measures._policy import basis, check_matrix, check_policy, measured


class KinkWarning(UserWarning):
    """The Hessian is not defined at the parameters where it was measured."""


def sharpness(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    accuracy: Accuracy = EIGENVALUE,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """λ_max(∇²L(w)), with an interval that holds it with probability `confidence`.

    The Ritz value of Lanczos from a random start is the lower bound; the randomness of the start gives the upper bound;
    the rounding of the products widens both. The work ends when the interval has the relative width `rtol`;
    `converged` is False if `max_matvecs` products came first. `curvature` can be any matrix of `steppe.curvature`; its
    Gram matrix replaces it if that is smaller.

    Warns if w is at kinks across which the Hessian jumps by more than rtol: see `kinks`.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(sharpness(p, p.w0).value, 6)                          # ∇²L = [[1, 1], [1, 1]]
    2.0

    Kuczyński and Woźniakowski 1992 for the bound; see `steppe.linalg.largest`.
    """
    check_policy(problem, accuracy=accuracy, curvature=curvature, statistics=statistics, memory=memory, key=key)
    operator = backend(problem).smaller(curvature, problem, w, statistics=statistics, memory=memory)
    with linalg.one_thread():
        estimate = linalg.largest(
            operator, operator.size, accuracy=accuracy, basis=basis(operator.size, memory),
            precision=operator.precision, key=generator(key),
        ).estimate  # fmt: skip
    _warn_of_kinks(problem, w, rtol=accuracy.rtol, sharpness=estimate.value if curvature is hessian else None)
    return measured(estimate, problem, statistics)


def spectral_norm(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    accuracy: Accuracy = EIGENVALUE,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """‖∇²L(w)‖ = max |λ|, with the arguments of `sharpness`.

    It equals the sharpness unless the most negative eigenvalue is larger in magnitude, as can happen at a start far
    from any minimum. Power iteration converges to the spectral norm, not to the sharpness.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.zeros(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(spectral_norm(p, p.w0).value, 6)                      # ∇²L = [[0, −1], [−1, 0]] at 0
    1.0
    """
    check_policy(problem, accuracy=accuracy, curvature=curvature, statistics=statistics, memory=memory, key=key)
    operator = backend(problem).smaller(curvature, problem, w, statistics=statistics, memory=memory)
    _warn_of_kinks(problem, w)
    with linalg.one_thread():
        estimate = linalg.spectral_norm(
            operator, operator.size, accuracy=accuracy, basis=basis(operator.size, memory),
            precision=operator.precision, key=generator(key),
        ).estimate  # fmt: skip
    return measured(estimate, problem, statistics)


def top_eigenvalues(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    k: int,
    accuracy: Accuracy = EIGENVALUE,
    block: int = 1,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> tuple[Estimate, ...]:
    """λ₁ ≥ … ≥ λ_k of ∇²L(w); all intervals hold together with probability `confidence`.

    A block of `block` vectors sees up to `block` copies of a multiple eigenvalue: choose it as large as the cluster.
    The other arguments are those of `sharpness`.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> [abs(round(e.value, 6)) for e in top_eigenvalues(p, k=2)]
    [2.0, 0.0]
    """
    check_policy(problem, accuracy=accuracy, curvature=curvature, statistics=statistics, memory=memory, key=key)
    block = check.integer("block", block, minimum=1)
    p = problem.w0.size
    if check.integer("k", k, minimum=1) > p:
        check.refuse("k", f"at most the number of parameters, {p}", k, "There are no more eigenvalues.")
    operator = backend(problem).smaller(curvature, problem, w, statistics=statistics, memory=memory)
    _warn_of_kinks(problem, w)
    found = min(k, operator.size)
    with linalg.one_thread():
        pairs = linalg.top_eigenpairs(
            operator, operator.size, found, block=min(block, operator.size), accuracy=accuracy,
            basis=max(32, 2 * (found + 2 * block)), precision=operator.precision, key=generator(key),
        )  # fmt: skip
    # The Gram matrix lacks only eigenvalues that are zero.
    zeros = [Estimate.exact(0.0)] * (k - found)
    return tuple(measured(e, problem, statistics) for e in (*pairs.estimates, *zeros))


class Tracker:
    """λ_max of ∇²L at one point of a trajectory after another: `record={"sharpness": Tracker()}` in `steppe.run`.

    It keeps the leading eigenvectors from call to call. The first call certifies its interval as `sharpness` does, and
    so does every `certify_every`-th; any other call takes at most `call_matvecs` products, often fewer, and finds the
    value to rtol. The lower end of its interval is proven; the upper end is only what so few products can prove, and
    far away. If the spectrum moved too fast for them, as after an overshoot at the edge of stability, the value is
    certified as well; with `insist=False` it is not, and `settled` is False. `takeover` says whether another
    eigenvector has taken the lead.

    One tracker follows one trajectory. It starts again at a problem of another size.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.ones(8), jnp.eye(8) * jnp.arange(8.0)[None], jnp.ones(8),
    ...                    steppe.losses.mse)
    >>> track = Tracker()
    >>> [round(track(p, w).value, 3) for w in (p.w0, p.w0 + 1)]     # (2/n) XᵀX everywhere: 2/8 · 7²
    [12.25, 12.25]
    """

    def __init__(
        self,
        *,
        accuracy: Accuracy = EIGENVALUE,
        call_matvecs: int = 6,
        certify_every: int | None = None,
        insist: bool = True,
        curvature: Curvature = hessian,
        statistics: Statistics = FULL_BATCH,
        memory: float = MEMORY,
        key: int | Array = 0,
    ):
        Accuracy.expected(accuracy)
        check_matrix(curvature, statistics, memory)
        if certify_every is not None:
            check.integer("certify_every", certify_every, minimum=1)
        self._fresh = linalg.Tracker(1, accuracy=accuracy, call_matvecs=call_matvecs, key=seed(key))
        self._certify_every, self._insist, self._curvature = certify_every, insist, curvature
        self._statistics, self._memory = statistics, memory
        self._state = self._fresh

    @property
    def settled(self) -> bool:
        """Whether the value of the last call is accurate to rtol."""
        return self._state.settled

    @property
    def takeover(self) -> bool:
        """Whether the leading eigenvector of the last call is a new one."""
        return self._state.takeover

    def __call__(self, problem: AnyProblem, w: Array | None = None) -> Estimate:
        with linalg.one_thread():
            operator = self._curvature(problem, w, statistics=self._statistics, memory=self._memory)
            if self._state.p != operator.size:
                self._state = replace(self._fresh, p=operator.size)
            state = replace(self._state, precision=operator.precision)
            if self._certify_every is not None and state.calls % self._certify_every == 0:
                estimate, self._state = state.certify(operator)
            else:
                estimate, self._state = (state.insist if self._insist else state.measure)(operator)
            return measured(estimate, problem, self._statistics)


def _warn_of_kinks(problem: AnyProblem, w: Array | None, *, rtol: float = 1e-3, sharpness: float | None = None) -> None:
    """Warns, at the line that called this package, if the Hessian jumps at w by more than rtol: see `kinks`."""
    found = kinks(problem, w, rtol=rtol, sharpness=sharpness)
    if found.matter:
        warnings.warn(
            f"{found.matter} pre-activations are within rounding of a kink, across which the Hessian jumps: it is not "
            "defined there, and one side was measured. See steppe.measures.kinks(problem, w).",
            KinkWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """The `stacklevel`, seen from the calling function, of the nearest caller outside of steppe."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "steppe":
        frame, level = frame.f_back, level + 1
    return level
