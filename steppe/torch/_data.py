"""The data of a torch problem: tensors, batches or a DataLoader as the same batches at every pass."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import data as loading

from steppe import check
from steppe.torch._exact import kept_randomness

_LOADER = "Pass tensors, a list of batches, or a DataLoader that yields the same batches at every pass."


@dataclass(frozen=True, eq=False)
class Batch:
    """What the model takes, what the loss gets besides the outputs, and the number of examples."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    target: Any
    size: int

    def rows(self, start: int, stop: int) -> "Batch":
        """The examples from `start` to `stop`."""

        def cut(tensor: Any) -> Any:
            with_rows = isinstance(tensor, Tensor) and tensor.ndim > 0 and tensor.shape[0] == self.size
            return tensor[start:stop] if with_rows else tensor

        return replace(self.each(cut), size=min(stop, self.size) - start)

    def taken(self, index: Tensor) -> "Batch":
        """The examples with these numbers."""

        def take(tensor: Any) -> Any:
            with_rows = isinstance(tensor, Tensor) and tensor.ndim > 0 and tensor.shape[0] == self.size
            return tensor[index.to(tensor.device)] if with_rows else tensor

        return replace(self.each(take), size=len(index))

    def doubled(self) -> "Batch":
        """Each example twice."""
        return self.taken(torch.arange(self.size).repeat(2))

    def each(self, f: Callable[[Any], Any]) -> "Batch":
        """The batch with f of each tensor, or of each other leaf."""
        return replace(self, args=mapped(f, self.args), kwargs=mapped(f, self.kwargs), target=mapped(f, self.target))


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    """f of each leaf of nested tuples, lists and dictionaries."""
    if isinstance(tree, Mapping):
        return {key: mapped(f, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(f, value) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(mapped(f, value) for value in tree)
    return f(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """All leaves of nested tuples, lists and dictionaries, and of objects that behave as one of them."""
    parts = tree.values() if isinstance(tree, Mapping) else tree
    if isinstance(tree, Mapping | tuple | list):
        for part in parts:
            yield from leaves(part)
    else:
        yield tree


def tensors(tree: Any) -> Iterator[Tensor]:
    """The tensors among the leaves."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Tensor))


# From what the user passes to batches.


def batches(data: Any, read: Callable[[Any], Batch], memory: float) -> "Batches":
    """The batches of the data; `read` says what is input and what is target in one of them."""
    if isinstance(data, loading.DataLoader):
        return _of_passes(_reader(data), read, memory, lambda: _kept_generators(data))
    if isinstance(data, loading.Dataset):
        remedy = "Pass DataLoader(dataset, batch_size=...)."
        check.refuse("data", "tensors, batches or a DataLoader", type(data).__name__, remedy)
    if isinstance(data, Tensor | Mapping | tuple) or (isinstance(data, list) and _is_one_batch(data)):
        return Batches((_checked(read(data)),))
    if not isinstance(data, Iterable) or isinstance(data, str | bytes | np.ndarray):
        remedy = _LOADER + " Arrays become tensors by torch.from_numpy."
        check.refuse("data", "tensors, batches or a DataLoader", type(data).__name__, remedy)
    if isinstance(data, Iterator):
        check.refuse("data", "batches that can be read again", "an iterator", "Pass list(data).")
    if not isinstance(data, Sequence):
        return _of_passes(data, read, memory, kept_randomness)
    kept = tuple(_checked(read(raw)) for raw in data)
    return Batches(_some(kept))


def _is_one_batch(data: list[Any]) -> bool:
    return bool(data) and any(isinstance(part, Tensor) for part in data)


def _some(kept: tuple[Batch, ...]) -> tuple[Batch, ...]:
    if not kept:
        check.refuse("data", "at least one batch", "none", "Is the dataset empty, or shorter than a dropped batch?")
    return kept


def _checked(batch: Batch) -> Batch:
    found = list(tensors((batch.args, batch.kwargs, batch.target)))
    kinds = {type(leaf) for leaf in leaves((batch.args, batch.kwargs, batch.target))}
    if not found or np.ndarray in kinds:
        seen = ", ".join(sorted(kind.__name__ for kind in kinds))
        check.refuse("data", "batches of tensors", seen, "Convert arrays: torch.from_numpy(x).")
    if batch.size == 0:
        check.refuse("data", "batches with at least one example", "an empty batch", "Leave it out.")
    for tensor in found:
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            check.refuse("data", "finite", "NaN or infinite entries", "Remove or replace them first.")
    # A tensor made in inference mode cannot be part of a graph.
    return batch.each(lambda t: t.clone() if isinstance(t, Tensor) and t.is_inference() else t)


class Batches:
    """The same batches at every pass."""

    def __init__(self, kept: tuple[Batch, ...]):
        self._kept = kept
        self.sizes = tuple(batch.size for batch in kept)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self.sizes)

    def first(self) -> Batch:
        return next(iter(self))


class Streamed(Batches):
    """Batches that do not fit into memory: they are loaded at every pass, and checked to be the same."""

    def __init__(self, load: Callable[[], Iterator[Batch]], prints: Sequence[bytes], sizes: Sequence[int]):
        self._load, self._prints = load, tuple(prints)
        self.sizes = tuple(sizes)

    def __iter__(self) -> Iterator[Batch]:
        for place, batch in enumerate(self._load()):
            if place >= len(self._prints) or fingerprint(batch) != self._prints[place]:
                _refuse_change(place)
            yield batch


def fingerprint(batch: Batch) -> bytes:
    """A digest of all numbers of a batch."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors((batch.args, batch.kwargs, batch.target)):
        plain = tensor.detach().cpu().contiguous()
        digest.update(str((plain.shape, plain.dtype)).encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return digest.digest()


# DataLoaders.


def _of_passes(
    data: Iterable[Any], read: Callable[[Any], Batch], memory: float, undisturbed: Callable[[], Any]
) -> Batches:
    """What two passes yield, which has to be the same; `undisturbed` restores random states."""

    def load() -> Iterator[Batch]:
        for raw in data:
            yield _checked(read(raw))

    kept: list[Batch] | None = []
    prints, sizes, held = [], [], 0
    # Around both: a second pass has to draw other random numbers, if it draws any.
    with undisturbed():
        for batch in load():
            prints.append(fingerprint(batch))
            sizes.append(batch.size)
            held += sum(t.numel() * t.element_size() for t in tensors((batch.args, batch.kwargs, batch.target)))
            kept = None if kept is None or held > memory else [*kept, batch]
        second = 0
        for place, batch in enumerate(load()):
            if place >= len(prints) or fingerprint(batch) != prints[place]:
                _refuse_change(place)
            second += 1
    if second != len(prints):
        _refuse_change(second)
    if not prints:
        _some(())
    if kept is not None:
        return Batches(tuple(kept))

    def again() -> Iterator[Batch]:
        with undisturbed():
            yield from load()

    return Streamed(again, prints, sizes)


def _reader(loader: Any) -> Iterable[Any]:
    """All examples of the dataset in its order, if the sampler only shuffles, divides or drops the last batch; else the
    loader itself."""
    sampler = loader.batch_sampler
    order = None
    # Iterable datasets, and batch samplers of one's own, decide themselves.
    if type(sampler) is loading.BatchSampler and not isinstance(loader.dataset, loading.IterableDataset):
        order = _order(sampler.sampler, loader.dataset)
    if order is None:
        if loader.drop_last or getattr(sampler, "drop_last", False):
            remedy = "Build the loader with drop_last=False: the loss is a mean over all examples."
            check.refuse("data", "a DataLoader that yields every example", "drop_last=True", remedy)
        return loader
    subset = loading.Subset(loader.dataset, order) if order else loader.dataset
    # A generator of its own: the loader would draw from the global one.
    return loading.DataLoader(
        subset, sampler.batch_size, shuffle=False, num_workers=0, collate_fn=loader.collate_fn,
        generator=torch.Generator(),
    )  # fmt: skip


def _order(sampler: Any, dataset: Any) -> list[int] | None:
    """The indices to read in order, none for the whole dataset; None if it is not known what the sampler leaves out."""
    if isinstance(sampler, loading.SequentialSampler | loading.DistributedSampler):
        return []  # the loss of a training on several processes is that of all of them
    if isinstance(sampler, loading.RandomSampler) and not sampler.replacement and sampler.num_samples == len(dataset):
        return []
    if isinstance(sampler, loading.SubsetRandomSampler):
        return list(sampler.indices)
    return None


def _refuse_change(place: int) -> None:
    remedy = "Switch off random augmentation and random samplers, or pass list(loader), one fixed draw of them."
    check.refuse("data", "the same batches at every pass", f"another batch {place} at a second pass", remedy)


@contextmanager
def _kept_generators(loader: Any) -> Iterator[None]:
    """The generators of a loader and of its samplers are as before at the end, as are the global ones."""
    owners = [loader, loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
    found = [getattr(owner, "generator", None) for owner in owners]
    generators = [g for g in found if isinstance(g, torch.Generator)]
    states = [g.get_state() for g in generators]
    with kept_randomness():
        try:
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def whole(kept: Batches, part: Callable[[Batch], Any]) -> Any:
    """A part of all batches, such as the targets, put together."""
    parts = [part(batch) for batch in kept]
    if len(parts) == 1:
        return parts[0]
    if not all(isinstance(p, Tensor) for p in parts) or len({p.shape[1:] for p in parts}) > 1:
        remedy = "These batches cannot be put together; iterate over them."
        check.refuse("data", "batches of tensors of one shape", type(parts[0]).__name__, remedy)
    return torch.cat(parts)
