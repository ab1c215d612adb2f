"""A torch problem for `steppe.flatten`: squared gradients of its outputs, and checks in float64."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steppe import check, linalg
from steppe.curvature import gauss_newton
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.estimate import Accuracy, Estimate
from steppe.flattening._least_sharpness import Jacobian
from steppe.flattening._network import Network, network
from steppe.flattening._scales import Groups
from steppe.torch._backend import TORCH
from steppe.torch._data import Batch
from steppe.torch._problem import Problem
from steppe.torch._products import loss_hessian
from steppe.torch._symmetries import scale_groups
from steppe.training_set import Floats

# Outputs of an example whose loss is no sum over outputs, and entries of a Jacobian: 1 GB in float64.
_OUTPUTS, _KEPT = 512, 2**27
# Examples on which two networks are compared.
_COMPARED = 4
# Examples of a piece with random signs of its own: fewer mean less noise, and more passes.
_PIECE = 4
_ELEMENTWISE = nn.MSELoss | nn.BCEWithLogitsLoss | nn.BCELoss | nn.SmoothL1Loss | nn.HuberLoss

# v ↦ Rv with R Rᵀ the Hessian of the loss by the outputs, for vectors v of their shape.
Root = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class TorchNetwork(Network):
    problem: Problem
    w: np.ndarray

    def read(self) -> Groups:
        return scale_groups(self.problem, self.w)

    @cached_property
    def _wide(self) -> tuple[Problem, list[Batch]]:
        """The network in float64, if it takes it; a few examples, and random numbers of their mean and spread."""
        problem = self.problem.double or self.problem
        few, generator = problem.few, torch.Generator().manual_seed(2)
        few = few.rows(0, min(_COMPARED, few.size)) if problem.apart else few

        def drawn(a: Any) -> Any:
            if not isinstance(a, Tensor) or not a.is_floating_point():
                return a
            noise = torch.randn(a.shape, generator=generator, dtype=torch.float64)
            spread = float(a.double().std(correction=0)) or 1.0
            return (float(a.double().mean()) + spread * noise).to(a)

        return problem, [few, few.each(drawn)]

    def outputs(self, w: Floats) -> NDArray[Any]:
        problem, batches = self._wide
        with problem.at(problem.network.leaves(w)), torch.no_grad():
            return np.stack([_tensor(problem.outputs(batch)).cpu().numpy() for batch in batches])

    def diagonal(self) -> Floats:
        total = np.zeros(self.w.size)
        for rows in self._rows():
            # In float64: large and small squares are added.
            total += (rows.double() ** 2).sum(0).cpu().numpy()
        return total

    def draw(self, rng: np.random.Generator) -> Floats:
        problem, leaves, total = self.problem, self.problem.network.leaves(self.w), np.zeros(self.w.size)
        with problem.at(leaves):
            for batch in problem.pieces(_PIECE):
                f, root = self._rooted(batch)
                signs = torch.from_numpy(rng.choice(np.array([-1.0, 1.0]), tuple(f.shape))).to(f)
                slopes = torch.autograd.grad(f, leaves, root(signs), allow_unused=True, materialize_grads=True)
                total += problem.network.joined(slopes).astype(float) ** 2
        return total

    def rows(self) -> int:
        with self.problem.at(self.problem.network.leaves(self.w)), torch.no_grad():
            few = self.problem.few
            return int(_tensor(self.problem.outputs(few)).numel()) // few.size * len(self.problem)

    def root(self) -> Floats:
        if self.rows() * self.w.size > _KEPT:
            remedy = "Flatten on fewer examples: problem.on((x[:k], y[:k])), or take the trace."
            check.refuse("problem", f"one whose Jacobian has at most {_KEPT:,} entries", self.rows(), remedy)
        return np.concatenate([rows.double().cpu().numpy() for rows in self._rows()])

    def jacobian(self, kept: NDArray[np.bool_]) -> Jacobian:
        return _Held(self.root()[:, kept])

    def largest(self, w: np.ndarray, rtol: float, start: Floats | None = None) -> Estimate:
        operator = TORCH.operator(gauss_newton, self.problem, w, statistics=FULL_BATCH, memory=MEMORY)
        return linalg.largest(operator, operator.size, accuracy=Accuracy(rtol), key=0).estimate

    def _rows(self) -> Iterator[Tensor]:
        """The rows of B, (outputs, parameters) for each example; for each batch if its examples see each other."""
        problem, leaves = self.problem, self.problem.network.leaves(self.w)
        with problem.at(leaves):
            for batch in problem.pieces(1):
                f, root = self._rooted(batch)
                for start in range(0, f.numel(), most := max(1, 2**24 // self.w.size)):
                    units = torch.zeros((min(most, f.numel() - start), f.numel()), dtype=f.dtype, device=f.device)
                    units[range(len(units)), range(start, start + len(units))] = 1.0
                    pulled = torch.stack([root(unit.reshape(f.shape)) for unit in units])
                    yield torch.cat([a.reshape(len(units), -1) for a in _pulled(f, leaves, pulled)], 1).detach()

    def _rooted(self, batch: Batch) -> tuple[Tensor, Root]:
        """The outputs of a batch, and the root of the Hessian of what it adds to L."""
        problem = self.problem
        f, share = _tensor(problem.outputs(batch)), problem.share(batch)
        target = batch.each(problem.network.ready).target
        curved = loss_hessian(problem, batch, f.detach(), target, share)
        function = problem.loss_function.function
        if isinstance(function, _ELEMENTWISE):
            weights = _convex(curved(torch.ones_like(f))).sqrt()
            return f, lambda v: weights * v
        if isinstance(function, nn.CrossEntropyLoss):
            return f, _of_softmax(f.detach(), curved)
        return f, _dense(problem, batch, f.detach(), curved)


@network.register
def _(problem: Problem, w: Any = None) -> Network:
    return TorchNetwork(problem, TORCH.prepared(problem, w))


@dataclass(frozen=True, eq=False)
class _Held:
    """A matrix by its products."""

    matrix: Floats

    @property
    def rows(self) -> int:
        return len(self.matrix)

    def pull(self, V: Floats) -> Floats:
        return self.matrix.T @ V

    def push(self, Y: Floats) -> Floats:
        return self.matrix @ Y


def _pulled(f: Tensor, leaves: list[Tensor], rows: Tensor) -> Any:
    """The gradients for many rows at once; one by one if an operation cannot be batched."""
    settings: dict[str, Any] = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an operation that cannot be batched runs in a loop
            return torch.autograd.grad(f, leaves, rows, is_grads_batched=True, **settings)
    except RuntimeError:
        single = [torch.autograd.grad(f, leaves, row, **settings) for row in rows]
        return [torch.stack(parts) for parts in zip(*single, strict=True)]


def _tensor(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        remedy = "Wrap it in a module that returns the tensor of predictions."
        check.refuse("model", "a module that returns one tensor", type(outputs).__name__, remedy)
    return outputs


def _convex(bends: Tensor) -> Tensor:
    """Second derivatives without the rounding below zero; a loss that bends down is refused."""
    if float(bends.min()) < -1e-4 * float(bends.abs().max()):
        remedy = "Flatten with a loss that is convex in the outputs: G is no curvature otherwise."
        check.refuse("loss", "convex in the outputs", f"a second derivative of {float(bends.min()):.3g}", remedy)
    return bends.clamp_min(0.0)


def _of_softmax(f: Tensor, curved: Callable[[Tensor], Tensor]) -> Root:
    """∇²ℓ = ω (diag p − ppᵀ) = RRᵀ with R = √ω (diag √p − p √pᵀ). ω counts weights, masks and means: it is read off
    one product."""
    axis = 1 if f.ndim > 1 else 0
    p = torch.softmax(f, axis)
    s = p.sqrt()
    # Any vector that is not constant; the one with the largest answer at every position is the most likely class.
    v = torch.zeros_like(f).scatter_(axis, f.argmin(axis, keepdim=True), 1.0) + torch.linspace(
        0.0, 1.0, f.shape[axis], dtype=f.dtype, device=f.device
    ).reshape([-1 if k == axis else 1 for k in range(f.ndim)])
    model = p * v - p * (p * v).sum(axis, keepdim=True)
    size = (v * model).sum(axis, keepdim=True)
    found = (v * curved(v)).sum(axis, keepdim=True)
    weights = torch.where(size > 0, found / size.clamp_min(torch.finfo(f.dtype).tiny), 0.0).clamp_min(0.0).sqrt()
    return lambda v: weights * (s * v - p * (s * v).sum(axis, keepdim=True))


def _dense(problem: Problem, batch: Batch, f: Tensor, curved: Callable[[Tensor], Tensor]) -> Root:
    """The square root of the Hessian of each example; of the batch, if its loss is not made of theirs."""
    n = batch.size if problem.loss_function.splits and f.shape[:1] == (batch.size,) else 1
    outputs = f.numel() // n
    if outputs > _OUTPUTS:
        remedy = "Use CrossEntropyLoss, MSELoss or BCEWithLogitsLoss."
        rule = f"a loss of at most {_OUTPUTS} outputs that belong together, for one of this kind"
        check.refuse("loss", rule, f"{outputs} outputs", remedy)
    columns = []
    for k in range(outputs):
        unit = torch.zeros((n, outputs), dtype=f.dtype, device=f.device)
        unit[:, k] = 1.0
        columns.append(curved(unit.reshape(f.shape)).reshape(n, outputs))
    m, V = torch.linalg.eigh(torch.stack(columns, 1).double())
    half = (V * _convex(m).sqrt()[:, None]) @ V.mT

    def root(v: Tensor) -> Tensor:
        return torch.einsum("nab,nb->na", half.to(v), v.reshape(n, outputs)).reshape(f.shape)

    return root
