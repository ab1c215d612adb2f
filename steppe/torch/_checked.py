"""A product is checked before a number is read off it: against differences, another mode of autodiff, and itself."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import torch
from torch.autograd import forward_ad

from steppe import check
from steppe.torch._data import Batch
from steppe.torch._problem import Problem, gradients
from steppe.torch._products import Operator, Piece, Scalar, loss

# Examples of the comparison with differences.
_FEW = 8
# Relative steps of the differences, in float64 and in float32. Rounding asks for large ones, kinks for small ones: a
# product is right if one of them agrees.
_STEPS = {np.dtype(np.float64): (1e-4, 1e-5, 1e-6, 1e-7), np.dtype(np.float32): (3e-2, 1e-2, 3e-3, 1e-3)}
# Beyond this number of parameters the differences are in float32 too: a copy in float64 takes two vectors.
_LARGE = 10_000_000
# The relative error of the best of them.
_AGREES = {np.dtype(np.float64): 1e-3, np.dtype(np.float32): 5e-2}


def check_gradient(problem: Problem, w: np.ndarray) -> None:
    """Refuses a loss whose gradient is not its slope: it detaches, rounds or replaces a derivative."""
    wide, v = _elsewhere(problem, w)
    batch = _few(problem)
    g = _gradient(wide, v, batch)
    size = float(np.linalg.norm(g))
    if size == 0.0:
        return

    def gap(u: np.ndarray, step: float) -> float:
        ahead, behind = (_value(wide, v + sign * step * u, batch) for sign in (1, -1))
        return abs(float(g @ u) - (ahead - behind) / (2 * step))

    u = g / size + _direction(g.size, g.dtype, 1)
    length = _length(v)
    if any(
        gap(u, s * length) <= _AGREES[v.dtype] * size + _rounding(wide, v, batch, s * length) for s in _STEPS[v.dtype]
    ):
        return
    parts = _blocks(problem, u)
    step = _STEPS[v.dtype][1] * length
    errors = [gap(part, step) / (float(np.linalg.norm(part)) or 1.0) for part in parts]
    _refuse(problem, int(np.argmax(errors)), "its gradient is not the slope of the loss")


def check_hessian(problem: Problem, w: np.ndarray, scalar: Scalar, piece: Piece, operator: Operator) -> None:
    """The product with ∇²L against differences of gradients, or with another Hessian of scalars; a second mode of
    autodiff; and itself."""
    check_gradient(problem, w)
    if scalar is loss:
        _against_differences(problem, w, piece)
    _itself(problem, operator, lambda u: forward_over_reverse(problem, w, scalar, u))


def check_product(problem: Problem, w: np.ndarray, operator: Operator) -> None:
    """The product with a matrix JᵀCJ, or by differences, against itself."""
    check_gradient(problem, w)
    _itself(problem, operator, lambda u: None)


def _against_differences(problem: Problem, w: np.ndarray, piece: Piece) -> None:
    wide, v = _elsewhere(problem, w)
    batch = _few(problem)
    u = _direction(w.size, w.dtype, 2)
    network, leaves = problem.network, problem.network.leaves(v.astype(w.dtype))
    with problem.at(leaves):
        product = network.joined(piece(problem, leaves, batch)(network.split(network.tensor(u))))
    size, length = float(np.linalg.norm(product)), _length(v)
    best, where = np.inf, 0
    for s in _STEPS[v.dtype]:
        step = s * length
        ahead, behind = (_gradient(wide, v + sign * step * u, batch) for sign in (1, -1))
        difference = (ahead - behind) / (2 * step)
        error = difference - product
        rounding = 16 * float(np.finfo(v.dtype).eps) * float(np.linalg.norm(ahead)) / step
        # In float32 the product itself is rounded, relative to the gradient.
        rounding += 64 * float(np.finfo(w.dtype).eps) * (size + float(np.linalg.norm(ahead)) / length)
        excess = float(np.linalg.norm(error)) - rounding
        if excess <= _AGREES[v.dtype] * max(size, float(np.linalg.norm(difference))):
            return
        if excess < best:
            best, where = excess, int(np.argmax([np.linalg.norm(part) for part in _cut(problem, error)]))
    _refuse(problem, where, "its second derivative disagrees with differences of gradients")


def _itself(problem: Problem, operator: Operator, other: Callable[[np.ndarray], np.ndarray | None]) -> None:
    v = _direction(operator.size, operator.dtype, 3)
    a = operator(v)
    size = float(np.linalg.norm(a))
    if size == 0.0:
        return
    if not np.isfinite(size):
        worst = int(np.argmax([~np.isfinite(part).all() for part in _cut(problem, a)]))
        _refuse(problem, worst, "its product is NaN or infinite")
    # Along Hv a random part of it shows.
    u = a / size
    b = operator(u)
    scale = max(size, float(np.linalg.norm(b)))
    within = max(float(np.finfo(operator.dtype).eps) ** 0.5, 4 * (operator.precision or 0.0)) * scale
    if (second := other(v)) is not None and float(np.linalg.norm(second - a)) > within:
        error = [float(np.linalg.norm(part)) for part in _cut(problem, second - a)]
        _refuse(problem, int(np.argmax(error)), "two modes of autodiff disagree on its second derivative")
    mixed = operator(u + 2 * v)
    mixed -= b + 2 * a
    if float(np.linalg.norm(mixed)) > within:
        error = [float(np.linalg.norm(part)) for part in _cut(problem, mixed)]
        _refuse(problem, int(np.argmax(error)), "its product is not linear, H(u + 2v) = Hu + 2Hv")
    if abs(float(u @ a) - float(v @ b)) > within:
        gaps = [abs(float(part @ a) - float(v @ np.asarray(operator(part)))) for part in _blocks(problem, u)]
        _refuse(problem, int(np.argmax(gaps)), "its product is not symmetric, ⟨u, Hv⟩ = ⟨Hu, v⟩")


def forward_over_reverse(problem: Problem, w: np.ndarray, scalar: Scalar, v: np.ndarray) -> np.ndarray | None:
    """The product by a forward derivative of the gradient; None if the network has none."""
    network = problem.network
    leaves, parts = network.leaves(w), network.split(network.tensor(v))
    total = np.zeros_like(w)
    try:
        with torch.inference_mode(False), torch.enable_grad(), forward_ad.dual_level(), warnings.catch_warnings():
            # PyTorch loads its forward derivatives by a function that it has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            duals = [forward_ad.make_dual(leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
            with problem.at(duals):
                for batch in problem.pieces(_PIECE if problem.alone else None):
                    slopes = gradients(scalar(problem, batch), duals)
                    tangents = [forward_ad.unpack_dual(slope).tangent for slope in slopes]
                    filled = [torch.zeros_like(s) if t is None else t for s, t in zip(slopes, tangents, strict=True)]
                    total += network.joined(filled)
    except (RuntimeError, NotImplementedError):
        return None
    return total


# Examples of a pass of the second mode, which keeps nothing.
_PIECE = 128


def _few(problem: Problem) -> Batch:
    return problem.few.rows(0, _FEW) if problem.alone else problem.batches.first()


def _elsewhere(problem: Problem, w: np.ndarray) -> tuple[Problem, np.ndarray]:
    """The problem in float64, if it can be, near w but on no kink: a bias of zero can put many neurons on one."""
    wide = (problem.double if w.size <= _LARGE else None) or problem
    shift = _direction(w.size, w.dtype, 0)
    shift *= w.size**0.5 * 1e-3 * (np.abs(w) + _length(w) / w.size**0.5)
    shift += w
    return wide, shift.astype(wide.w0.dtype)


def _direction(size: int, dtype: Any, seed: int) -> np.ndarray:
    """A random direction in that precision: for many parameters each vector counts."""
    kind = np.float32 if dtype == np.float32 else np.float64
    v = np.random.default_rng(seed).standard_normal(size, dtype=kind)
    v /= np.linalg.norm(v)
    return v


def _length(w: np.ndarray) -> float:
    return float(np.linalg.norm(w)) or 1.0


def _value(problem: Problem, w: np.ndarray, batch: Batch) -> float:
    with problem.at(problem.network.leaves(w)), torch.no_grad():
        return float(problem.value(batch))


def _gradient(problem: Problem, w: np.ndarray, batch: Batch) -> np.ndarray:
    leaves = problem.network.leaves(w)
    with problem.at(leaves):
        return problem.network.joined(gradients(problem.value(batch), leaves))


def _rounding(problem: Problem, w: np.ndarray, batch: Batch, step: float) -> float:
    return 16 * float(np.finfo(w.dtype).eps) * abs(_value(problem, w, batch)) / step


def _cut(problem: Problem, vector: np.ndarray) -> list[np.ndarray]:
    sizes = [int(np.prod(shape)) for shape in problem.network.shapes]
    return np.split(vector, np.cumsum(sizes)[:-1])


def _blocks(problem: Problem, vector: np.ndarray) -> list[np.ndarray]:
    """The vector with all parameters but one set to zero."""
    places = np.cumsum([0, *(int(np.prod(shape)) for shape in problem.network.shapes)])
    blocks = []
    for start, stop in pairwise(places):
        block = np.zeros_like(vector)
        block[start:stop] = vector[start:stop]
        blocks.append(block)
    return blocks


def _refuse(problem: Problem, index: int, trouble: Any) -> NoReturn:
    name = problem.network.names[index]
    remedy = (
        "Look for a custom autograd function, a detached tensor or a rounding in or after that layer; "
        "or leave the layer out by `parameters`."
    )
    check.refuse("model", "differentiable twice, rightly", f"parameter {name!r}: {trouble}", remedy)
