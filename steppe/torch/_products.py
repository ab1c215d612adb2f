"""Products of curvature matrices with vectors by autograd: graphs that are kept, built afresh, or differences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steppe import check
from steppe.torch._data import Batch
from steppe.torch._problem import Problem, gradients, held_bytes


@dataclass(frozen=True, eq=False)
class Graph:
    """A product of one piece of the data, from parts like the parameters to parts like them, and the ends of the graph
    that it keeps."""

    product: Callable[[Sequence[Tensor]], Sequence[Tensor]]
    ends: Sequence[Tensor]

    def __call__(self, parts: Sequence[Tensor]) -> Sequence[Tensor]:
        return self.product(parts)


# (problem, leaves, batch) ↦ the graph of a piece. Called, like its product, with the network at the leaves.
Piece = Callable[[Problem, list[Tensor], Batch], Graph]

# The share of the memory that a piece takes that is built afresh for every product.
_FRESH = 0.25


@dataclass(frozen=True, eq=False)
class Operator:
    """A symmetric matrix of a torch problem, by its products with numpy vectors."""

    name: str
    size: int
    dtype: Any
    product: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    precision: float | None = None

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Av."""
        return self.product(np.asarray(v))

    def dense(self) -> np.ndarray:
        """A itself, (size, size): for tests and small problems."""
        return np.stack([self(e) for e in np.eye(self.size)], axis=1)


class Autograd:
    """Σ over the pieces of the data of their products.

    The graphs of as many pieces are kept as fit into `memory`: a product is then one backward pass through the
    gradient, which costs 1.05 to 1.6 gradients. The others are built again for every product, for 2.4 to 3.1.
    """

    def __init__(self, problem: Problem, w: np.ndarray, piece: Piece, memory: float):
        self.problem, self.piece = problem, piece
        self.leaves = problem.network.leaves(w)
        each = self._bytes_an_example()
        self.size = None
        if each * len(problem) > memory and problem.alone:
            self.size = max(1, int(_FRESH * memory / each))
        self.kept: list[Graph] = []
        room = memory if each * len(problem) <= memory else (1 - _FRESH) * memory
        self.whole = True
        with problem.at(self.leaves):
            for batch in problem.pieces(self.size):
                room -= each * batch.size
                if room < 0:
                    self.whole = False
                    break
                self.kept.append(piece(problem, self.leaves, batch))

    def _bytes_an_example(self) -> float:
        """What the graph of a piece holds for an example, from a pass over a few of them."""
        problem = self.problem
        with problem.at(self.leaves), held_bytes(self.leaves) as held:
            # A product as well: whatever has no second derivative fails here.
            graph = self.piece(problem, self.leaves, problem.few)
            graph([torch.zeros_like(leaf) for leaf in self.leaves])
            _refuse_once_differentiable(graph.ends)
            return max(1.0, held() / problem.few.size)

    def _fresh(self) -> Iterator[Graph]:
        for place, batch in enumerate(self.problem.pieces(self.size)):
            if place >= len(self.kept):
                yield self.piece(self.problem, self.leaves, batch)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        network = self.problem.network
        parts = network.split(network.tensor(v))
        total: list[Tensor] | None = None
        with self.problem.at(self.leaves):
            for product in self.kept:
                total = _added(total, product(parts))
            if not self.whole:
                for product in self._fresh():
                    total = _added(total, product(parts))
        assert total is not None
        return network.joined(total)


def _refuse_once_differentiable(ends: Sequence[Tensor]) -> None:
    """Autograd leaves a function marked as once_differentiable out of a second derivative without a word: its node
    leads to no parameter."""
    nodes = [end.grad_fn for end in ends]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        if node.name() == "torch::autograd::Error":
            raise RuntimeError("a function that is marked as once_differentiable")
        upstream = {further for further, _ in node.next_functions} - seen
        seen |= upstream
        nodes += upstream


def _added(total: list[Tensor] | None, parts: Sequence[Tensor]) -> list[Tensor]:
    if total is None:
        return [p.detach().clone() for p in parts]
    torch._foreach_add_(total, list(parts))
    return total


# Hessians of scalars: of the loss, and of the outputs weighted by the slopes of the loss.

Scalar = Callable[[Problem, Batch], Tensor]


def loss(problem: Problem, batch: Batch) -> Tensor:
    return problem.value(batch)


def weighted_outputs(problem: Problem, batch: Batch) -> Tensor:
    """⟨∇_f L at w, f⟩."""
    f, target, share = _outputs(problem, batch)
    at = f.detach().requires_grad_()
    value = share * problem.loss_function(at, target)
    (slopes,) = torch.autograd.grad(value, at)
    return torch.sum(slopes * f)


def hessian_of(scalar: Scalar) -> Piece:
    """v ↦ ∇²m v by a second backward pass."""

    def piece(problem: Problem, leaves: list[Tensor], batch: Batch) -> Graph:
        slopes = gradients(scalar(problem, batch), leaves, create_graph=True)

        def product(parts: Sequence[Tensor]) -> Sequence[Tensor]:
            return _pulled(slopes, leaves, parts)

        return Graph(product, slopes)

    return piece


def _pulled(outputs: Sequence[Tensor], inputs: Sequence[Tensor], parts: Sequence[Tensor]) -> Sequence[Tensor]:
    """Σ (∂ output/∂ input)ᵀ part; the graph stays."""
    live = [(output, part) for output, part in zip(outputs, parts, strict=True) if output.requires_grad]
    if not live:
        return [torch.zeros_like(leaf) for leaf in inputs]
    ends, weights = zip(*live, strict=True)
    return torch.autograd.grad(
        ends, list(inputs), grad_outputs=weights, retain_graph=True, allow_unused=True, materialize_grads=True
    )


# Jᵀ C J, with C a matrix in the space of outputs.

# (problem, batch) ↦ the product with C at the outputs f.
Middle = Callable[[Problem, Batch, Tensor, Any, float], Callable[[Tensor], Tensor]]


def outputs_curved_by(middle: Middle) -> Piece:
    """v ↦ Jᵀ C J v. Jv is the derivative by z of ⟨Jᵀz, v⟩: two backward passes, which every network has."""

    def piece(problem: Problem, leaves: list[Tensor], batch: Batch) -> Graph:
        f, target, share = _outputs(problem, batch)
        curved = middle(problem, batch, f.detach(), target, share)
        z = torch.zeros_like(f, requires_grad=True)
        pulled = torch.autograd.grad(
            f, leaves, grad_outputs=z, create_graph=True, allow_unused=True, materialize_grads=True
        )

        def product(parts: Sequence[Tensor]) -> Sequence[Tensor]:
            (pushed,) = _pulled(pulled, [z], parts)
            return _pulled([f], leaves, [curved(pushed)])

        return Graph(product, pulled)

    return piece


def loss_hessian(problem: Problem, batch: Batch, f: Tensor, target: Any, share: float) -> Callable[[Tensor], Tensor]:
    """t ↦ ∇²_f L t."""
    at = f.clone().requires_grad_()
    value = share * problem.loss_function(at, target)
    slopes = gradients(value, [at], create_graph=True)
    return lambda t: _pulled(slopes, [at], [t])[0]


def squared_gradients(
    problem: Problem, batch: Batch, f: Tensor, target: Any, share: float
) -> Callable[[Tensor], Tensor]:
    """t ↦ Σᵢ cᵢ ∇_f ℓᵢ ⟨∇_f ℓᵢ, t⟩, with L = Σᵢ cᵢ ℓᵢ."""
    if not problem.loss_function.splits or f.shape[:1] != (batch.size,):
        remedy = "Take fisher or gauss_newton: this matrix needs the loss of each example."
        check.refuse("loss", "a mean or sum over the examples", "another function of the batch", remedy)
    at = f.clone().requires_grad_()
    (slopes,) = gradients(share * problem.loss_function(at, target), [at])
    counts = [problem.share(batch.rows(i, i + 1)) for i in range(batch.size)]
    rows = slopes.reshape(batch.size, -1)
    # An example whose targets are all ignored has no slope.
    weights = torch.tensor([1 / c if c else 0.0 for c in counts], dtype=f.dtype, device=f.device)

    def product(t: Tensor) -> Tensor:
        return ((weights * (rows * t.reshape(batch.size, -1)).sum(1))[:, None] * rows).reshape(f.shape)

    return product


def _outputs(problem: Problem, batch: Batch) -> tuple[Tensor, Any, float]:
    """The outputs of a batch, its target, and what it counts."""
    share = problem.share(batch)
    batch = batch.each(problem.network.ready)
    f = problem.network(batch.args, batch.kwargs)
    if not isinstance(f, Tensor):
        remedy = "Take the Hessian, or wrap the model in a module that returns the tensor of predictions."
        check.refuse("model", "a module that returns one tensor, for this matrix", type(f).__name__, remedy)
    return f, batch.target, share


# Differences, for networks that can be differentiated once only.

# (problem, w, v, step) ↦ the product with v, in which derivatives along v are central differences with this step.
Along = Callable[[Problem, np.ndarray, np.ndarray, float], np.ndarray]


def gradients_along(problem: Problem, w: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
    """(∇L(w + hv) − ∇L(w − hv))/2h."""
    ahead, behind = (problem.gradient(w + sign * step * v).astype(np.float64) for sign in (1, -1))
    difference: np.ndarray = (ahead - behind) / (2 * step)
    return difference


def outputs_along(middle: Middle) -> Along:
    """JᵀC (f(w + hv) − f(w − hv))/2h."""

    def along(problem: Problem, w: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
        network = problem.network
        ends, leaves = [network.leaves(w + sign * step * v) for sign in (1, -1)], network.leaves(w)
        total = [torch.zeros_like(leaf) for leaf in leaves]
        for batch in problem.pieces():
            moved = []
            for end in ends:
                with problem.at(end), torch.no_grad():
                    moved.append(_outputs(problem, batch)[0])
            with problem.at(leaves):
                f, target, share = _outputs(problem, batch)
                curved = middle(problem, batch, f.detach(), target, share)
                torch._foreach_add_(total, list(_pulled([f], leaves, [curved((moved[0] - moved[1]) / (2 * step))])))
        return network.joined(total).astype(np.float64)

    return along


def residuals_along(problem: Problem, w: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
    """The product with ∇²L − G."""
    return gradients_along(problem, w, v, step) - outputs_along(loss_hessian)(problem, w, v, step)


class Differences:
    """A product by differences, in float64 if the network takes it; `precision` is its error, four times the largest
    change that twice the step makes."""

    def __init__(self, problem: Problem, w: np.ndarray, along: Along):
        self.problem, self.along = problem.double or problem, along
        self.w = w.astype(self.problem.w0.dtype)
        eps = float(np.finfo(self.w.dtype).eps)
        self.step = eps ** (1 / 3) * max(float(np.linalg.norm(w)), 1.0)
        rng = np.random.default_rng(0)
        v, self.precision = rng.standard_normal(w.size), 16 * eps
        for _ in range(3):
            v = v / (np.linalg.norm(v) or 1.0)
            near, far = (along(self.problem, self.w, v, k * self.step) for k in (1, 2))
            size = float(np.linalg.norm(near))
            if size == 0.0:
                break
            self.precision = max(self.precision, 4 * float(np.linalg.norm(near - far)) / size)
            v = near

    def __call__(self, v: np.ndarray) -> np.ndarray:
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return np.zeros(self.w.size)
        return self.along(self.problem, self.w, v / size, self.step) * size
