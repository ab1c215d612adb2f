"""A PyTorch network, its data and its loss as a problem."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn, final

import numpy as np
import torch
from torch import Tensor, nn

from steppe import check
from steppe._guard import guard
from steppe.torch import _data, _loss
from steppe.torch._data import Batch, tensors
from steppe.torch._exact import seed
from steppe.torch._network import Chosen, Network, dropouts

# Examples of the passes that look at a network before it is measured; and that show whether they see each other.
_FEW, _PAIRS = 16, 4
_LABELS = "labels"


@final
class Problem:
    """L(w) of a PyTorch model on data, for every measure of steppe: `steppe.measures.sharpness(problem)`.

    `data` is a tuple (x, y) of tensors, a batch, a list of batches or a DataLoader. A batch is (x, y), (x₁, x₂, …, y),
    or a dictionary. The model gets x, the tensors x₁, x₂, …, or the entries of the dictionary by name. The loss gets
    (outputs, y); for a dictionary a loss of torch.nn gets its entry "labels", and a function of yours the whole
    dictionary: `lambda outputs, batch: outputs.loss`.

    L is the mean over examples, also if the last batch is smaller: a batch counts its examples, for cross-entropy the
    targets that are not ignored, or what `weight(target)` returns. With a loss that sums (reduction="sum") L is the sum
    of all batches. A loader that shuffles or drops the last batch is read in the order of its dataset, all of it; one
    that yields other data at every pass is refused. Data of more than `memory` bytes are loaded again at every pass.

    `parameters` chooses by name what w consists of: "layer1.*", a list of patterns, or a function of (name, parameter);
    by default everything that requires a gradient. A tied parameter counts once.

    The model is a snapshot: it is measured in the mode it is in, and left as it is. In training mode batch
    normalisation uses the statistics of each batch, with their derivatives, and the running ones stay as they are; in
    evaluation mode it uses the running ones. Dropout has to be off.

    Tensors (x, y) are one batch. For networks whose examples do not see each other it is cut into chunks if memory asks
    for it, or as `chunk` says.

    >>> import steppe, torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> _ = model.weight.data.fill_(3.0)
    >>> p = Problem(model, (torch.tensor([[1.0], [2.0]]), torch.zeros(2, 1)), torch.nn.MSELoss())
    >>> p.loss(p.w0), p.example_loss(p.w0, 1), len(p)       # (9 + 36) / 2, and 36
    (22.5, 36.0, 2)
    >>> round(steppe.measures.sharpness(p).value, 5)        # (2/2) (1 + 4)
    5.0
    """

    network: Network
    w0: np.ndarray
    batches: _data.Batches
    loss_function: _loss.Loss
    chunk: int | None
    memory: float
    # The kinds of products that have been checked.
    checked: set[Any]

    @guard
    def __init__(
        self,
        model: nn.Module,
        data: Any,
        loss: Any,
        *,
        parameters: Chosen = None,
        weight: Callable[[Any], float] | None = None,
        chunk: int | None = None,
        memory: float = 2**30,
    ):
        memory = check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, for instance 2**30.")
        chunk = None if chunk is None else check.integer("chunk", chunk, minimum=1)
        network = Network(model, parameters)
        function = _loss.read(loss, weight)
        w0 = network.joined(network.start)
        check.finite("model", w0, "Its parameters are NaN or infinite: has training diverged?")
        kept = _data.batches(data, lambda raw: _read(raw, network, function), memory)
        self.__dict__.update(
            network=network, loss_function=function, w0=w0, batches=kept, chunk=chunk, memory=memory, checked=set()
        )
        self._look()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Problem is frozen: build a new one instead of setting {name!r}")

    def __repr__(self) -> str:
        return f"Problem({type(self.network.copy).__name__}, {self.w0.size} parameters, {len(self)} examples)"

    def __len__(self) -> int:
        """The number of examples."""
        return sum(self.batches.sizes)

    @property
    def x(self) -> Any:
        """The inputs of all examples."""
        return _data.whole(self.batches, lambda batch: batch.args[0] if len(batch.args) == 1 else batch.args)

    @property
    def y(self) -> Any:
        """The targets of all examples."""
        return _data.whole(self.batches, lambda batch: batch.target)

    def unravel(self, w: Any) -> dict[str, Tensor]:
        """The parameters by name."""
        parts = self.network.split(self.network.tensor(self.vector(w)))
        return dict(zip(self.network.names, parts, strict=True))

    def vector(self, w: Any) -> np.ndarray:
        """`w`, a flat vector or a dictionary of tensors such as model.state_dict(), as a flat numpy vector."""
        if isinstance(w, Mapping):
            missing = [name for name in self.network.names if name not in w]
            if missing:
                check.refuse("w", "a dictionary of all chosen parameters", f"none named {missing[0]!r}", _START)
            parts = [torch.as_tensor(w[name]).detach() for name in self.network.names]
            if wrong := [
                n for n, p, s in zip(self.network.names, parts, self.network.shapes, strict=True) if p.shape != s
            ]:
                check.refuse(f"w[{wrong[0]!r}]", "of the shape in the model", tuple(w[wrong[0]].shape), _START)
            return self.network.joined([p.to(self.network.device) for p in parts])
        plain = w.detach().cpu().numpy() if isinstance(w, Tensor) else np.asarray(w)
        if plain.shape != self.w0.shape:
            rule = f"a flat vector of {self.w0.size} parameters, or a dictionary of them"
            check.refuse("w", rule, f"shape {plain.shape}", _START)
        if not np.issubdtype(plain.dtype, np.floating):
            check.refuse("w", "of a real floating type", str(plain.dtype), "Convert it: w.astype(float).")
        return plain.astype(self.w0.dtype, copy=False)

    def loss(self, w: Any) -> float:
        """L(w)."""
        with self.at(self.network.leaves(self.vector(w))), torch.no_grad():
            return sum(float(self.value(batch)) for batch in self.pieces())

    def gradient(self, w: Any) -> np.ndarray:
        """∇L(w), a flat vector."""
        return self.value_and_gradient(w)[1]

    def value_and_gradient(self, w: Any) -> tuple[float, np.ndarray]:
        """L(w) and ∇L(w)."""
        leaves, total = self.network.leaves(self.vector(w)), 0.0
        slopes = [torch.zeros_like(leaf) for leaf in leaves]
        with self.at(leaves):
            for batch in self.pieces():
                value = self.value(batch)
                total += float(value.detach())
                torch._foreach_add_(slopes, gradients(value, leaves))
        return total, self.network.joined(slopes)

    def example_loss(self, w: Any, i: int) -> float:
        """The loss of the example i alone."""
        i = check.integer("i", i, minimum=0)
        if i >= len(self):
            check.refuse("i", f"below the number of examples, {len(self)}", i, "Examples are counted from 0.")
        for batch in self.batches:
            if i < batch.size:
                break
            i -= batch.size
        with self.at(self.network.leaves(self.vector(w))), torch.no_grad():
            return float(self.batch_value(batch.rows(i, i + 1)))

    def on(self, data: Any) -> "Problem":
        """The same network, parameters and loss on other data, such as a test set."""
        other = copy.copy(self)
        kept = _data.batches(data, lambda raw: _read(raw, self.network, self.loss_function), self.memory)
        for name in ("total", "few", "apart", "most", "double"):
            other.__dict__.pop(name, None)
        other.__dict__.update(batches=kept, checked=set())
        other._look()
        return other

    # What products and measures are made of.

    @contextmanager
    def at(self, leaves: list[Tensor]) -> Iterator[None]:
        """The network with these parameters; what goes wrong inside is said in terms of the problem."""
        try:
            with self.network.at(leaves):
                yield
        except (torch.OutOfMemoryError, MemoryError) as error:
            self._refuse_memory(error)
        except RuntimeError as error:
            if "memory" in str(error) and "alloc" in str(error):
                self._refuse_memory(error)
            raise

    def outputs(self, batch: Batch) -> Any:
        """What the model returns; only inside of `at`, as the other functions of a batch."""
        batch = batch.each(self.network.ready)
        return self.network(batch.args, batch.kwargs)

    def batch_value(self, batch: Batch) -> Tensor:
        """The loss of a batch."""
        batch = batch.each(self.network.ready)
        return self.loss_function(self.network(batch.args, batch.kwargs), batch.target)

    def value(self, batch: Batch) -> Tensor:
        """What a batch adds to L."""
        return self.share(batch) * self.batch_value(batch)

    def share(self, batch: Batch) -> float:
        return 1.0 if self.loss_function.sums else self.loss_function.count(batch) / self.total

    @cached_property
    def total(self) -> float:
        total = sum(self.loss_function.count(batch) for batch in self.batches)
        if not total > 0:
            check.refuse("data", "batches that count", f"a total weight of {total:g}", "Are all targets ignored?")
        return total

    def pieces(self, size: int | None = None) -> Iterator[Batch]:
        """The batches, cut into pieces of at most `size` examples, or as memory allows, where that changes nothing."""
        for batch in self.batches:
            if not self.alone or batch.size <= (most := min(size or batch.size, self.most)):
                yield batch
                continue
            for start in range(0, batch.size, most):
                piece = batch.rows(start, start + most)
                if self.loss_function.sums or self.loss_function.count(piece) > 0:
                    yield piece

    @cached_property
    def few(self) -> Batch:
        """The first examples, or the first batch if they cannot be told apart."""
        batch = self.batches.first()
        return batch.rows(0, min(_FEW, self.chunk or _FEW)) if self.apart else batch

    @cached_property
    def apart(self) -> bool:
        """Whether the outputs for an example are the same without the other examples, to half of the digits.

        They are compared at w0 and at a random point at the distance ‖w0‖: a layer of zeros can hide a difference.
        """
        batch = self.batches.first().rows(0, _PAIRS)
        noise = np.random.default_rng(0).standard_normal(self.w0.size, np.float32)
        noise *= np.sqrt(np.mean(self.w0**2)) or 1.0
        return batch.size == 1 or all(self._apart_at(w, batch) for w in (self.w0, self.w0 + noise))

    def _apart_at(self, w: np.ndarray, batch: Batch) -> bool:
        with self.at(self.network.leaves(w)), torch.no_grad():
            try:
                together = list(tensors(self.outputs(batch)))
                alone = list(tensors(self.outputs(batch.rows(0, 1))))
            except (RuntimeError, ValueError, IndexError):
                return False  # such as batch normalisation, which refuses a single example
        return len(together) == len(alone) and all(map(_row_agrees, together, alone))

    @property
    def alone(self) -> bool:
        """Whether a batch can be cut: its examples do not see each other, and its loss is made of theirs."""
        return self.apart and self.loss_function.splits

    @cached_property
    def most(self) -> int:
        """The number of examples of a pass with a gradient that fit into the memory."""
        if self.chunk is not None or not self.alone:
            return self.chunk or max(self.batches.sizes)
        leaves = self.network.leaves(self.w0)
        with self.at(leaves), held_bytes(leaves) as held:
            self.value(self.few)
        return max(1, int(self.memory / max(1.0, held() / self.few.size)))

    @property
    def treatment(self) -> str:
        """How batch statistics are treated."""
        sizes = self.batches.sizes
        return "full batch" if len(sizes) == 1 or self.alone else f"batches of {max(sizes)}"

    @cached_property
    def double(self) -> "Problem | None":
        """The same problem in float64; None if the network fixes its own precision."""
        other = copy.copy(self)
        function = self.loss_function
        if isinstance(function.function, nn.Module):
            function = replace(function, function=copy.deepcopy(function.function).double())
        for name in ("double", "most"):
            other.__dict__.pop(name, None)
        other.__dict__.update(network=self.network.double(), w0=self.w0.astype(np.float64), loss_function=function)
        try:
            with other.at(other.network.leaves(other.w0)), torch.no_grad():
                value = other.batch_value(self.few)
        except RuntimeError:  # tensors made in the forward pass are in float32
            return None
        return other if value.dtype == torch.float64 else None

    def _look(self) -> None:
        """The errors that a first pass over a few examples shows."""
        network = self.network
        if names := dropouts(network.copy):
            remedy = "Call model.eval(), or set its probability to 0: every pass would be another function."
            check.refuse("model", "without dropout in training mode", ", ".join(names[:3]), remedy)
        with self.at(network.leaves(self.w0)):
            batch = self.few
            first = self.outputs(batch)
            _loss.check_shape(self.loss_function, first, batch.target)
            told = batch
            for each in self.batches:
                _loss.check_labels(self.loss_function, first, each.target)
                told = _telling(told, each)
            self.__dict__["loss_function"] = _loss.measured(
                self._placed_loss(),
                told.each(network.ready),
                lambda b: network(b.args, b.kwargs),
                len(self.batches) > 1,
            )
            value = self.batch_value(batch)
            if not value.requires_grad:
                _loss.refuse_without_slope(first)
            self._same_at_every_pass(batch)
        if self.chunk is not None and not self.alone:
            remedy = "Leave chunk out, or call model.eval(): batch statistics belong to the whole batch."
            check.refuse("chunk", "None for a model or a loss whose examples see each other", self.chunk, remedy)

    def _placed_loss(self) -> _loss.Loss:
        """The loss with its own tensors, such as class weights, where the model is."""
        function = self.loss_function.function
        if not isinstance(function, nn.Module):
            return self.loss_function
        return replace(self.loss_function, function=copy.deepcopy(function).to(self.network.device))

    def _same_at_every_pass(self, batch: Batch) -> None:
        with torch.no_grad():
            passes = []
            for number in (0, 1):
                seed(number, self.network.device)
                passes.append(list(tensors(self.outputs(batch))))
        for one, other in zip(*passes, strict=True):
            if not one.is_floating_point():
                continue
            gap = (one - other).abs().max() if one.numel() else one.new_zeros(())
            # Sums on a graphics card may be added in another order.
            if float(gap) > 16 * torch.finfo(one.dtype).eps * float(one.abs().max() if one.numel() else 0.0):
                seen = f"a difference of {float(gap):.3g} between two passes"
                remedy = "It draws random numbers: switch dropout and noise off, for instance with model.eval()."
                check.refuse("model", "the same function at every pass", seen, remedy)

    def _refuse_memory(self, error: BaseException) -> NoReturn:
        largest = max(self.batches.sizes)
        smaller = max(1, (self.chunk or largest) // 2)
        remedy = f"Pass chunk={smaller} to steppe.torch.Problem, or a smaller `memory` to the measure."
        if not self.alone:
            remedy = f"Its examples see each other, so it cannot be cut: pass batches of {smaller}, or model.eval()."
        check.refuse("data", "batches that fit into memory", f"{largest} examples: {error}", remedy)


_START = "Start from problem.w0."


def gradients(value: Tensor, leaves: list[Tensor], *, create_graph: bool = False) -> tuple[Tensor, ...]:
    """The gradient by each leaf, zero for those that the value does not depend on."""
    return torch.autograd.grad(value, leaves, create_graph=create_graph, allow_unused=True, materialize_grads=True)


@contextmanager
def held_bytes(leaves: list[Tensor]) -> Iterator[Callable[[], int]]:
    """The bytes that the graphs made inside hold, besides the parameters."""
    own = {leaf.untyped_storage().data_ptr() for leaf in leaves}
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield lambda: sum(seen.values())


def _row_agrees(together: Tensor, apart: Tensor) -> bool:
    if together.ndim == 0 or not together.is_floating_point():
        return True
    scale = float(together.abs().max()) * torch.finfo(together.dtype).eps ** 0.5
    return together[:1].shape == apart.shape and float((together[:1] - apart).abs().max()) <= scale


def _telling(known: Batch, batch: Batch) -> Batch:
    """The batch that tells more of what a loss counts: a few examples with the fewest ignored labels and with the most,
    in this order."""
    counts, before = _loss.ignored(batch.target), _loss.ignored(known.target)
    if counts is None or not counts.any() or (before is not None and before.any()):
        return known
    order = counts.argsort()
    return batch.taken(torch.cat([order[:_PAIRS], order[_PAIRS:][-_PAIRS:]]))


def _read(raw: Any, network: Network, loss: _loss.Loss) -> Batch:
    """What is input and what is target in a batch."""
    if isinstance(raw, Mapping):
        return _of_mapping(raw, network, loss)
    if isinstance(raw, Tensor):
        raw = (raw,)
    if not isinstance(raw, tuple | list) or not raw:
        remedy = "A batch is (x, y), (x1, x2, ..., y) or a dictionary."
        check.refuse("data", "batches of tensors", type(raw).__name__, remedy)
    parts = tuple(raw)
    inputs, target = (parts[:-1], parts[-1]) if len(parts) > 1 else (parts, parts[0])
    args: tuple[Any, ...] = inputs
    kwargs: Mapping[str, Any] = {}
    if len(inputs) == 1:
        (only,) = inputs
        if isinstance(only, Mapping) and network.binds((), only):
            args, kwargs = (), only
        elif isinstance(only, tuple | list) and network.binds(only, {}):
            args = tuple(only)
    return Batch(args, kwargs, target, _size(target, args, kwargs))


def _of_mapping(raw: Mapping[str, Any], network: Network, loss: _loss.Loss) -> Batch:
    inputs, target = dict(raw), dict(raw)
    if _loss.takes_target_apart(loss):
        if _LABELS not in raw:
            remedy = "Pass a function of (outputs, batch), such as lambda outputs, batch: outputs.loss."
            check.refuse("data", f"dictionaries with an entry {_LABELS!r} for this loss", sorted(raw), remedy)
        target = inputs.pop(_LABELS)
    by_name = network.binds((), inputs)
    args, kwargs = ((), inputs) if by_name else ((inputs,), {})
    if not by_name and not network.binds(args, {}):
        taken = ", ".join(inspect.signature(network.copy.forward).parameters)
        check.refuse("data", f"dictionaries with what forward takes: {taken}", sorted(inputs), "Rename the entries.")
    return Batch(args, kwargs, target, _size(target, args, kwargs))


def _size(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    sized = [t for t in tensors((target, args, kwargs)) if t.ndim > 0]
    if not sized:
        return 1
    size = sized[0].shape[0]
    if isinstance(target, Tensor) and len(args) == 1 and isinstance(args[0], Tensor) and args[0].shape[:1] != (size,):
        rows = args[0].shape[0] if args[0].ndim else "none"
        check.refuse("data", f"x of {size} rows, as many as y", rows, "Give x and y one row an example.")
    return int(size)
