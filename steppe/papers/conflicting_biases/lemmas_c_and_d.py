"""Lemmas 3.1, C.1, D.1, D.2 and Proposition 3.2: M, and its points of least norm and of least sharpness."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory import printed
from steppe.papers.conflicting_biases.theory.manifold import (
    Manifold,
    eighth_sharpness,
    half_norm,
    least_norm,
    least_sharpness,
)

# Sums and products of a few numbers of order 1 in double precision.
_ROUNDING = 1e-10
_SMALL = "difference at rounding"
_DRAWS = 40


def examples(count: int, *, d: int = 4, positive: bool = False, key: int = 0) -> Iterator[tuple[Any, float]]:
    """Random (x, y) with M ≠ ∅: entries of both signs; every third example has two equal entries."""
    rng = np.random.default_rng(key)
    for k in range(count):
        x = rng.uniform(0.2, 2.0, d) * (1 if positive else rng.choice([-1, 1], d))
        if k % 3 == 0:
            x[1] = x[0]
        yield x, float(rng.uniform(0.2, 3.0) * np.sign(x[rng.integers(d)]))


def on_manifold(manifold: Manifold, rng: np.random.Generator) -> Any:
    while True:
        w = rng.normal(size=len(manifold.x))
        if manifold.depth % 2 or (manifold.residual(w) + manifold.y) * manifold.y > 0:
            return manifold.onto(w)


@PAPER.claim(
    "lemC.1-tangent", "Lemmas 3.1, C.1", "M is a manifold with T_w M = (x ⊙ w^{L−1})^⊥, for every depth L.", _SMALL
)
def tangent() -> Finding:
    """∇h by autodiff against L x ⊙ w^{L−1}, for L = 2 to 5: the relative difference; ∇h ≠ 0 makes M a manifold."""
    import jax
    import jax.numpy as jnp

    rng, worst, least = np.random.default_rng(1), 0.0, np.inf
    with jax.enable_x64(True):
        for L in (2, 3, 4, 5):
            gradient = jax.jit(jax.grad(lambda v, x, L=L: jnp.dot(x, v**L)))
            for x, y in examples(_DRAWS // 4, key=L):
                m = Manifold(x, y, L)
                w = on_manifold(m, rng)
                g = np.asarray(gradient(w, x))
                worst = max(worst, float(np.linalg.norm(m.projector(w) @ g) / np.linalg.norm(g)))
                least = min(least, float(np.linalg.norm(g)))
    return Finding(worst, worst < _ROUNDING and least > 0, f"{_DRAWS} points of M, L = 2 to 5; least ‖∇h‖ {least:.2g}")


@PAPER.claim(
    "eq11-sharpness", "Eq. 11", "S(w) = 4‖x ⊙ w‖² on M; ∇²L = D_{2(⟨x,w²⟩−y)x} + 4(x ⊙ w)(x ⊙ w)ᵀ everywhere.", _SMALL
)
def hessian() -> Finding:
    """∇²L by autodiff against D_{2hx} + 4(xw)(xw)ᵀ at any w, and its norm against 4‖x ⊙ w‖² on M."""
    import jax
    import jax.numpy as jnp

    rng, worst = np.random.default_rng(2), 0.0
    with jax.enable_x64(True):
        dense = jax.jit(jax.hessian(lambda v, x, y: 0.5 * (jnp.dot(x, v**2) - y) ** 2))
        for x, y in examples(_DRAWS):
            m = Manifold(x, y)
            w, v = on_manifold(m, rng), rng.normal(size=len(x))
            H = np.asarray(dense(v, x, y))
            worst = max(worst, float(np.abs(H - m.hessian(v)).max() / np.abs(H).max()))
            top = float(np.linalg.norm(np.asarray(dense(w, x, y)), 2))
            worst = max(worst, abs(float(m.sharpness(w)) / top - 1))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} examples of any sign")


# Proposition 3.2 and Lemma D.2: the minima by linear programs.


def program(x: Any, y: float, cost: Any) -> tuple[float, Any]:
    """min ⟨cost, u⟩ over u ≥ 0 with ⟨x, u⟩ = y: the value, and where u > 0."""
    from scipy.optimize import linprog

    found = linprog(cost, A_eq=x[None], b_eq=[y], method="highs")
    return float(found.fun), np.flatnonzero(found.x > 1e-9)


def least_value(as_printed: bool, which: str) -> Finding:
    """The closed forms of min ‖w²‖₁ and min S against linear programs in u = w²."""
    worst = 0.0
    for x, y in examples(_DRAWS, positive=True, key=3):
        if which == "norm":
            value, _ = program(x, y, np.ones(len(x)))
            stated = least_norm(x, y).value
        else:
            value, _ = program(x, y, 4 * x**2)
            stated = printed.least_sharpness(x, y) if as_printed else least_sharpness(x, y).value
        worst = max(worst, abs(stated / value - 1))
    return Finding(worst, worst < _ROUNDING, f"largest relative difference over {_DRAWS} examples")


PAPER.claim("prop3.2-norm", "Proposition 3.2 i, Eq. 6", "For x > 0 the least ‖w²‖₁ on M is y/x_max.", _SMALL)(
    partial(least_value, False, "norm")
)


def necessary(as_printed: bool, which: str) -> Finding:
    """How often the support of the minimum is where the proposition says, x of mixed signs."""
    right = 0
    for x, y in examples(_DRAWS, key=5):
        cost = np.ones(len(x)) if which == "norm" else x**2
        _, support = program(x, y, cost)
        if which == "norm":
            entry = printed.norm_entry(x) if as_printed else least_norm(x, y).x0
        else:
            entry = least_sharpness(x, y).x0
        right += bool(np.allclose(x[support], entry, rtol=1e-12, atol=0))
    return Finding(right / _DRAWS, right == _DRAWS, f"{right} of {_DRAWS} examples with entries of both signs")


PAPER.misprint(
    "prop3.2-norm-signs", "Proposition 3.2 i, Lemma D.1 i",
    printed=("For x of any signs the least norm is supported where |xᵢ| is largest.", "in every example"),
    corrected=("For x of any signs the least norm is supported where |xᵢ| is largest among the entries with y's sign.",
               "in every example"),
)(partial(necessary, which="norm"))  # fmt: skip
PAPER.claim(
    "prop3.2-sharpness", "Proposition 3.2 ii, Eq. 7",
    "For any x the least sharpness is supported where |xᵢ| is smallest among the entries with y's sign.",
    "in every example",
)(partial(necessary, False, "sharpness"))  # fmt: skip


@PAPER.claim(
    "lemD.2-sufficient", "Lemma D.2",
    "For x > 0 every w ∈ M supported on arg max x (arg min x) has the least norm (sharpness).", _SMALL,
)  # fmt: skip
def sufficient() -> Finding:
    """Every w supported on the ties of x_max (x_min) attains the minimum, x > 0."""
    rng, worst = np.random.default_rng(4), 0.0
    for x, y in examples(_DRAWS, positive=True, key=4):
        m = Manifold(x, y)
        for extreme, measure in ((least_norm(x, y), lambda w: np.sum(w**2)), (least_sharpness(x, y), m.sharpness)):
            w = np.zeros(len(x))
            w[extreme.support] = rng.normal(size=len(extreme.support))
            worst = max(worst, abs(float(measure(m.onto(w))) / extreme.value - 1))
    return Finding(worst, worst < _ROUNDING, f"{_DRAWS} examples, every third with ties")


PAPER.misprint(
    "lemD.2-value", "proof of Lemma D.2",
    printed=("For x > 0 the least sharpness on M is y x_min.", _SMALL),
    corrected=("For x > 0 the least sharpness on M is 4 y x_min.", _SMALL),
)(partial(least_value, which="sharpness"))  # fmt: skip

# The proof of Lemma D.1: gradient and Hessian on M of f = ½‖w‖² and f = S/8.


def proof_jacobian(which: str) -> Finding:
    """∇G, G = grad f, by autodiff against the displayed matrix of the proof of Lemma D.1."""
    rng, worst = np.random.default_rng(7), 0.0
    power = 1 if which == "norm" else 3
    for x, y in examples(_DRAWS // 2, key=7):
        w = on_manifold(Manifold(x, y), rng)
        n, s, q = x * w, float(np.sum((x * w) ** 2)), float(np.sum(x**power * w**2))
        diagonal = (np.ones_like(x) if which == "norm" else x**2) - q / s * x
        stated = np.diag(diagonal) - 2 / s * np.outer(n, x**power * w) + 2 * q / s**2 * np.outer(n, x**2 * w)
        dense = _jacobian(x, which, w)
        worst = max(worst, float(np.abs(stated - dense).max() / np.abs(dense).max()))
    return Finding(worst, worst < _ROUNDING, f"largest relative difference, {_DRAWS // 2} points of M")


def riemannian(as_printed: bool, which: str) -> Finding:
    """P ∇(P∇f) P by autodiff against the proof's formula for Hess f; f = ½‖w‖² or S/8."""
    rng, worst = np.random.default_rng(6), 0.0
    for x, y in examples(_DRAWS // 2, key=6):
        m = Manifold(x, y)
        w = on_manifold(m, rng)
        objective = half_norm if which == "norm" else eighth_sharpness(x)
        dense = m.projector(w) @ _jacobian(x, which, w) @ m.projector(w)
        stated = printed.norm_hessian(x, w) if as_printed else m.riemannian(*objective(w), w)[1]
        worst = max(worst, float(np.abs(stated - dense).max() / np.abs(dense).max()))
    return Finding(worst, worst < _ROUNDING, f"largest relative difference, {_DRAWS // 2} points of M")


def _jacobian(x: Any, which: str, w: Any) -> Any:
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        return np.asarray(_gradient_jacobian()(jnp.asarray(w), x, np.ones_like(x) if which == "norm" else x**2))


@cache
def _gradient_jacobian() -> Any:
    """∇ of grad f = P(weight ⊙ w), the gradient on M of f = ½⟨weight, w²⟩, compiled."""
    import jax
    import jax.numpy as jnp

    def jacobian(w: Any, x: Any, weight: Any) -> Any:
        def G(v: Any) -> Any:  # noqa: N802
            n = x * v
            return weight * v - n * jnp.dot(n, weight * v) / jnp.dot(n, n)

        return jax.jacfwd(G)(w)

    return jax.jit(jacobian)


PAPER.claim("lemD.1-jacobian-norm", "proof of Lemma D.1 i", "The displayed matrix is ∇G for G = grad ½‖w‖².", _SMALL)(
    partial(proof_jacobian, "norm")
)
PAPER.misprint(
    "lemD.1-hess-norm", "proof of Lemma D.1 i",
    printed=("Hess f(u) = P[(1 − ⟨w,xw⟩/‖xw‖²)·x] ⊙ u for f = ½‖w‖².", _SMALL),
    corrected=("Hess f(u) = P[1 − (⟨w,xw⟩/‖xw‖²)·x] ⊙ u for f = ½‖w‖².", _SMALL),
)(partial(riemannian, which="norm"))  # fmt: skip
PAPER.claim(
    "lemD.1-jacobian-sharpness",
    "proof of Lemma D.1 ii",
    "The displayed matrix (printed as ∇²G) is ∇G for G = grad ½‖xw‖².",
    _SMALL,
)(partial(proof_jacobian, "sharpness"))
PAPER.claim(
    "lemD.1-hess-sharpness", "proof of Lemma D.1 ii", "Hess f(u) = P(x² − (⟨w,x³w⟩/‖xw‖²)·x) ⊙ u for f = S/8.", _SMALL
)(partial(riemannian, False, "sharpness"))
