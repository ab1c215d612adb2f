"""Massart, Sauer, Vapnik and Chervonenkis, Srebro: lemmas A.20 to A.23, corollary A.1 and theorem A.3 of wen2023 on
classes small enough to enumerate; each check gives (number, whether it holds, detail)."""

import itertools
import math
from typing import Any

import numpy as np

from steppe.papers.wen2023.theory.complexity import linear

pass  # MERGED
from steppe.papers.wen2023.claims.theorem_checks import signs

# (n, d) of the sets of Gaussian points whose dichotomies by half-spaces are listed.
_SETS = ((2, 2), (3, 2), (6, 2), (8, 2), (4, 3), (6, 3), (7, 4))


def dichotomies(x: Any) -> Any:
    """All different vectors 1[w·xᵢ > 0] over w, one a row: each is, or is not, separable, says a linear program."""
    from scipy.optimize import linprog

    n, d = x.shape
    rows = [
        s
        for s in signs(n)
        if linprog(np.zeros(d), A_ub=-s[:, None] * x, b_ub=-np.ones(n), bounds=(None, None), method="highs").status == 0
    ]
    return (np.array(rows) + 1) / 2


def _sets() -> Any:
    for n, d in _SETS:
        yield n, d, dichotomies(np.random.default_rng(n).normal(size=(n, d)))


def complexity(values: Any) -> float:
    """R_S of a class from its values on S, one function a row, over all 2ⁿ signs."""
    n = values.shape[1]
    return float(np.mean(np.max(signs(n) @ values.T, axis=1)) / n)


def lemma_a20() -> tuple[float, bool, str]:
    rng, ratios = np.random.default_rng(0), []
    for n, size in itertools.product((1, 4, 9), (2, 5, 30)):
        values = np.unique(rng.integers(0, 2, size=(size, n)), axis=0).astype(float)
        ratios.append(complexity(values) / math.sqrt(2 * math.log(max(len(values), 2)) / n))
    ratios += [complexity(values) / math.sqrt(2 * math.log(len(values)) / n) for n, _, values in _sets()]
    return max(ratios), max(ratios) <= 1, "random classes and half-spaces, all signs"


def lemma_a21() -> tuple[float, bool, str]:
    ratios = [len(values) / sum(math.comb(n, i) for i in range(d + 1)) for n, d, values in _sets()]
    return max(ratios), max(ratios) <= 1, f"half-spaces, (n, d) = {_SETS}"


def corollary_a1() -> tuple[float, bool, str]:
    ratios = [complexity(values) / math.sqrt(4 * d * math.log(n) / n) for n, d, values in _sets()]
    return max(ratios), max(ratios) <= 1, f"half-spaces, (n, d) = {_SETS}, all signs"


def lemma_a22() -> tuple[float, bool, str]:
    """d points are shattered, and no d + 1 are: the dichotomies of d + 1 points over 2^{d+1}, tried on 20 sets each."""
    shattered = all(len(dichotomies(np.eye(d))) == 2**d for d in (1, 2, 3, 4))
    rng = np.random.default_rng(0)
    share = max(len(dichotomies(rng.normal(size=(d + 1, d)))) / 2 ** (d + 1) for d in (1, 2, 3) for _ in range(20))
    return share, shattered and share < 1, "d = 1 to 4; the unit vectors are shattered"


def lemma_a23() -> tuple[float, bool, str]:
    """Half-planes through 0, x uniform on the circle: how often the largest deviation exceeds the bound, over δ."""
    n, delta, trials, rng = 400, 0.05, 100, np.random.default_rng(0)
    w = 2 * np.pi * (np.arange(720) + 0.5) / 720
    failed = 0
    for _ in range(trials):
        values = (np.cos(rng.uniform(0, 2 * np.pi, n)[None] - w[:, None]) > 0).astype(float)
        # Ten vectors of signs in place of all of them: R_S is within a few per cent.
        R = float(np.mean(np.max(values @ rng.choice([-1.0, 1.0], size=(n, 10)), axis=0)) / n)
        failed += bool(np.abs(values.mean(axis=1) - 0.5).max() > 2 * R + 3 * math.sqrt(math.log(4 / delta) / n))
    return failed / trials / delta, failed <= delta * trials, f"{trials} sets of {n} points, δ = {delta}"


def theorem_a3() -> tuple[float, bool, str]:
    """Linear maps of norm ≤ 1 and the square: the largest loss of one without training loss, over its rate.

    w* = e₁/2; w − w* is orthogonal to the inputs, the longest one has ‖w‖ = 1, and x is uniform on the unit sphere.
    """
    d, delta, needed = 400, 0.05, []
    for n in (10, 30, 100, 300, 390):
        x = np.random.default_rng(n).normal(size=(n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        basis = np.linalg.qr(x.T)[0]
        # In the null space the part of w* has length p: w* + v with ‖w* + v‖ = 1 reaches ‖v‖ = p + √(p² + 3/4).
        p = math.sqrt(0.25 - float(np.sum((basis.T @ np.eye(d)[0] / 2) ** 2)))
        loss = (p + math.sqrt(p**2 + 0.75)) ** 2 / d
        b = 4.0  # |f − y| ≤ 2 on the unit ball
        needed.append(loss / (2 * math.log(n) ** 3 * linear(x) ** 2 + b * math.log(1 / delta) / n))
    return max(needed), max(needed) <= 1, "the absolute constant that is needed, n from 10 to 390, d = 400"
