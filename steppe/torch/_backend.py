"""The torch backend: a `steppe.torch.Problem` behind the seam of steppe.curvature."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steppe import check
from steppe.curvature import (
    Backend,
    Curvature,
    FullBatch,
    PerChunk,
    Statistics,
    backend,
    empirical_fisher,
    fisher,
    gauss_newton,
    hessian,
    residual,
)
from steppe.curvature._backend import ExactTraces, Increase, Scores
from steppe.curvature._increase import OVERFLOW, ascents
from steppe.curvature._kinks import Kinks
from steppe.linalg import one_thread
from steppe.linalg._operator import ROUNDING
from steppe.torch import _checked, _products
from steppe.torch._groups import groups
from steppe.torch._problem import Problem, gradients
from steppe.torch._products import Operator

_SCALARS = {hessian: _products.loss, residual: _products.weighted_outputs}
_DIFFERENCES = {hessian: _products.gradients_along, residual: _products.residuals_along}
_MIDDLES = {
    gauss_newton: _products.loss_hessian,
    fisher: _products.loss_hessian,
    empirical_fisher: _products.squared_gradients,
}


@final
class Torch(Backend):
    def vector(self, problem: Problem, w: Any = None) -> np.ndarray:
        return problem.w0 if w is None else problem.vector(w)

    def reproducible(self, problem: Problem, w: Any = None) -> np.ndarray:
        # Checked when the problem was built.
        return self.vector(problem, w)

    def prepared(self, problem: Problem, w: Any = None) -> np.ndarray:
        v = self.vector(problem, w)
        check.finite("w", v, "Curvature is defined at finite parameters only: has the run diverged?")
        return v

    def scores(self, problem: Problem, w: np.ndarray) -> Scores:
        found, targets = [], []
        with problem.at(problem.network.leaves(w)), torch.no_grad():
            for batch in problem.pieces():
                f = problem.outputs(batch)
                if not isinstance(f, Tensor) or not isinstance(batch.target, Tensor):
                    remedy = "Compare outputs and targets of your own kind yourself."
                    seen = f"{type(f).__name__} and {type(batch.target).__name__}"
                    check.refuse("model", "a module whose outputs and targets are tensors", seen, remedy)
                found.append(f.cpu().numpy())
                targets.append(batch.target.cpu().numpy())
        return problem.loss_function.scores(np.concatenate(found), np.concatenate(targets))

    def loss_value(self, problem: Problem, w: np.ndarray) -> float:
        return problem.loss(w)

    def gradient(self, problem: Problem, w: np.ndarray) -> np.ndarray:
        return problem.gradient(w)

    def groups(self, problem: Problem, w: np.ndarray, count: int, *, seed: int) -> tuple[Problem, ...]:
        return groups(problem, count, seed=seed)

    def arrays(self, problem: Problem) -> Mapping[str, tuple[int, ...]]:
        return dict(zip(problem.network.names, problem.network.shapes, strict=True))

    def treatment(self, problem: Problem, statistics: Statistics) -> str:
        return problem.treatment

    def operator(
        self, curvature: Curvature, problem: Problem, w: Any, *, statistics: Statistics, memory: float
    ) -> Operator:
        _check_treatment(statistics)
        w = self.prepared(problem, w)
        if curvature is fisher and not problem.loss_function.natural:
            remedy = "Another loss names no distribution of labels; take gauss_newton, or empirical_fisher."
            rule = "CrossEntropyLoss, BCEWithLogitsLoss or MSELoss without weights for the Fisher matrix"
            check.refuse("loss", rule, problem.loss_function.function, remedy)
        if curvature not in _SCALARS and curvature not in _MIDDLES:
            remedy = "Take hessian, gauss_newton, residual, fisher or empirical_fisher."
            check.refuse("curvature", "one of steppe.curvature for a torch problem", curvature.name, remedy)
        scalar = _SCALARS.get(curvature)
        if scalar is None:
            piece, along = (
                _products.outputs_curved_by(_MIDDLES[curvature]),
                _products.outputs_along(_MIDDLES[curvature]),
            )
        else:
            piece, along = _products.hessian_of(scalar), _DIFFERENCES[curvature]
        try:
            operator = Operator(curvature.name, w.size, w.dtype, _products.Autograd(problem, w, piece, memory))
        except (RuntimeError, NotImplementedError):
            differences = _products.Differences(problem, w, along)
            operator = Operator(curvature.name, w.size, np.float64, differences, differences.precision)
            scalar = None
        if scalar is None:
            _once(problem, curvature, lambda: _checked.check_product(problem, w, operator))
        else:
            _once(problem, curvature, lambda: _checked.check_hessian(problem, w, scalar, piece, operator))
        return operator

    def smaller(
        self, curvature: Curvature, problem: Problem, w: Any, *, statistics: Statistics, memory: float
    ) -> Operator:
        return self.operator(curvature, problem, w, statistics=statistics, memory=memory)

    def exact_traces(
        self, curvature: Curvature, problem: Problem, w: Any, *, statistics: Statistics, memory: float
    ) -> ExactTraces:
        _check_treatment(statistics)
        return _Traces(problem, self.prepared(problem, w), statistics, memory)

    def increase(
        self,
        problem: Problem,
        w: Any,
        scale: NDArray[Any],
        *,
        statistics: Statistics,
        memory: float,
        seed: int,
    ) -> Increase:
        _check_treatment(statistics)
        v = self.prepared(problem, w)
        _once(problem, "gradient", lambda: _checked.check_gradient(problem, v))
        return _Increase(problem, v, np.asarray(scale, v.dtype), seed)

    def kinks(self, problem: Problem, w: Any, *, rtol: float, sharpness: float | None) -> Kinks:
        self.prepared(problem, w)
        return Kinks(())


TORCH = Torch()
backend.register(Problem, lambda problem: TORCH)


def _check_treatment(statistics: Statistics) -> None:
    if isinstance(statistics, FullBatch):
        return
    remedy = "The model's mode decides: call model.eval() before building the problem to hold the statistics fixed."
    if isinstance(statistics, PerChunk):
        remedy = f"Pass batches as data, for instance DataLoader(dataset, batch_size={statistics.size})."
    check.refuse("statistics", "FullBatch() for a torch problem", statistics, remedy)


def _once(problem: Problem, what: Any, examine: Any) -> None:
    """Checks a kind of product once for a problem."""
    if what not in problem.checked:
        with one_thread():
            examine()
        problem.checked.add(what)


@dataclass(frozen=True, eq=False)
class _Traces(ExactTraces):
    """Traces by one product for each parameter: PyTorch gives no cheap rows of a Jacobian for every network."""

    problem: Problem
    w: np.ndarray
    statistics: Statistics
    memory: float

    @property
    def splits(self) -> bool:  # type: ignore[override]
        problem = self.problem
        with problem.at(problem.network.leaves(self.w)), torch.no_grad():
            return isinstance(problem.outputs(problem.batches.first()), Tensor)

    def closed_form(self) -> None:
        return None

    def is_cheap(self, passes: int) -> bool:
        return False

    def gauss_newton(self) -> np.floating:
        return self.diagonal(gauss_newton)

    def rooted(self, root: Any) -> np.floating:
        return self.diagonal(next(kind for kind in _MIDDLES if kind.root is root))

    def diagonal(self, curvature: Curvature) -> np.floating:
        operator = TORCH.operator(curvature, self.problem, self.w, statistics=self.statistics, memory=self.memory)
        unit, total = np.zeros(operator.size), 0.0
        for k in range(operator.size):
            unit[k] = 1.0
            total += float(operator(unit)[k])
            unit[k] = 0.0
        return np.float64(total)


# Pairs of draws computed together, draws whose rounding is bounded, and examples that it is read off.
_BATCH, _ROUNDED, _EXAMPLES = 16, 2, 16


@dataclass(frozen=True, eq=False)
class _Increase(Increase):
    """The increase of the loss of a torch problem."""

    problem: Problem
    w: np.ndarray
    scale: np.ndarray
    seed: int

    @property
    def is_double(self) -> bool:
        return bool(self.w.dtype == np.float64)

    @contextmanager
    def in_double(self) -> Iterator["_Increase | None"]:
        wide = self.problem.double
        if wide is None:
            yield None
            return
        yield replace(self, problem=wide, w=self.w.astype(np.float64), scale=self.scale.astype(np.float64))

    def pairs(self, number: int) -> NDArray[np.float64]:
        here = self.problem.loss(self.w)
        found = []
        for step in self._moves(number, _BATCH):
            found.append(0.5 * (self.problem.loss(self.w + step) + self.problem.loss(self.w - step)) - here)
        pairs = np.array(found, dtype=float)
        check.finite("L(w + step)", pairs, OVERFLOW)
        return pairs

    def _moves(self, number: int, count: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng([self.seed, number])
        for _ in range(count):
            yield self.scale * rng.standard_normal(self.w.size).astype(self.w.dtype)

    def rounding(self, number: int | None = None) -> float:
        return self._rounding(self._moves(0 if number is None else 1 + number, _ROUNDED))

    def _rounding(self, moves: Any) -> float:
        """The computed loss of an example is that of parameters and predictions with relative errors of `unit`, rounded
        once more: its error is unit (|ℓᵢ| + ‖∇ℓᵢ ⊙ w‖ + ‖∇_f ℓᵢ ⊙ f‖), read off a few examples."""
        problem = self.problem
        unit = ROUNDING * float(np.finfo(self.w.dtype).eps)
        rng = np.random.default_rng([self.seed, 1])
        sizes = []
        for move in moves:
            v = self.w + move
            v = v + (unit * np.abs(self.w) * rng.standard_normal(v.size)).astype(v.dtype)
            sizes.append(_condition(problem, v, rng))
        size = max(sizes)
        return unit * size if np.isfinite(size) else np.inf

    def ascend(self, radius: float, *, steps: int, restarts: int) -> tuple[float, float, int, bool]:
        def slope(e: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            value, g = self.problem.value_and_gradient(self.w + self.scale * e)
            return value, self.scale * g

        rng = np.random.default_rng(self.seed)
        draws = [rng.standard_normal(self.w.size).astype(self.w.dtype) for _ in range(restarts)]
        value, e, gradients_taken, at_rest = ascents(slope, [np.zeros_like(self.w), *draws], radius, steps)
        check.finite("L(w + step)", value, OVERFLOW)
        return value, self._rounding([self.scale * e] * _ROUNDED), gradients_taken, at_rest


def _condition(problem: Problem, w: np.ndarray, rng: np.random.Generator) -> float:
    """The mean over a few examples, or over batches whose examples see each other, of |ℓ| + |⟨∇ℓ, ±w⟩| + |⟨∇_f ℓ, ±f⟩|
    with random signs; a sum, if the loss is one."""
    network, leaves = problem.network, problem.network.leaves(w)
    signed = network.split(network.tensor(w * rng.choice([-1.0, 1.0], w.size)))
    total, weight = 0.0, 0.0
    with problem.at(leaves):
        for place, batch in enumerate(problem.pieces(1)):
            if place == _EXAMPLES:
                break
            ready = batch.each(network.ready)
            f = network(ready.args, ready.kwargs)
            value = problem.loss_function(f, ready.target)
            ends = [*leaves, f] if isinstance(f, Tensor) and f.requires_grad else list(leaves)
            slopes = gradients(value, ends)
            along = sum(float((s * t).sum()) for s, t in zip(slopes, signed, strict=False))
            outer = 0.0
            if len(ends) > len(leaves):
                signs = torch.from_numpy(rng.choice([-1.0, 1.0], f.numel())).reshape(f.shape).to(f)
                outer = float((slopes[-1] * f.detach() * signs).sum())
            share = 1.0 if problem.loss_function.sums else problem.loss_function.count(batch)
            total += share * (abs(float(value.detach())) + abs(along) + abs(outer))
            weight += share
    if problem.loss_function.sums:
        return total * len(problem) / max(1.0, min(_EXAMPLES, len(problem)))
    return total / weight
