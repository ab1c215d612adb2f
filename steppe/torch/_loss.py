"""The user's loss: whether it is a mean or a sum over examples, what a batch counts, and which targets it takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steppe import check
from steppe.curvature._backend import Scores
from steppe.torch._data import Batch, tensors

# Functions that are what these modules are.
_MODULES: dict[Any, nn.Module] = {
    functional.cross_entropy: nn.CrossEntropyLoss(),
    functional.nll_loss: nn.NLLLoss(),
    functional.mse_loss: nn.MSELoss(),
    functional.binary_cross_entropy: nn.BCELoss(),
    functional.binary_cross_entropy_with_logits: nn.BCEWithLogitsLoss(),
}
_CLASSES = nn.CrossEntropyLoss | nn.NLLLoss


@dataclass(frozen=True)
class Loss:
    """A loss of (outputs, target). `sums` says that it is a sum over the examples, not their mean; `splits` that the
    loss of a batch is the mean or sum of those of its examples."""

    function: Callable[[Any, Any], Any]
    weight: Callable[[Any], float] | None = None
    sums: bool = False
    splits: bool = True

    def __call__(self, outputs: Any, target: Any) -> Tensor:
        if takes_target_apart(self) and not isinstance(outputs, Tensor):
            remedy = "Pass a function, such as lambda outputs, y: loss(outputs.logits, y), or loss(outputs[0], y)."
            check.refuse("model", "a module that returns one tensor, for this loss", type(outputs).__name__, remedy)
        value = self.function(outputs, target)
        if not isinstance(value, Tensor) or value.numel() != 1:
            seen = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            check.refuse("loss", "one number for a batch", seen, "Use reduction='mean' or reduction='sum'.")
        return value.reshape(())

    def count(self, batch: Batch) -> float:
        """What a batch counts in the mean: its examples, or the class weights of its targets that are not ignored."""
        if self.weight is not None:
            return float(self.weight(batch.target))
        y, loss = batch.target, self.function
        if not isinstance(loss, _CLASSES) or not isinstance(y, Tensor) or y.is_floating_point():
            return float(batch.size)
        seen = y != loss.ignore_index
        # Label smoothing with class weights is normalised by the weights of the targets, too.
        if loss.weight is None:
            return float(seen.sum())
        return float(loss.weight.to(y.device)[y[seen]].sum())

    @property
    def natural(self) -> bool:
        """Whether it is the negative log-likelihood of a distribution whose natural parameters are the outputs."""
        loss = self.function
        if isinstance(loss, nn.CrossEntropyLoss | nn.BCEWithLogitsLoss) and loss.weight is not None:
            return False
        if isinstance(loss, nn.BCEWithLogitsLoss) and loss.pos_weight is not None:
            return False
        return isinstance(loss, nn.CrossEntropyLoss | nn.BCEWithLogitsLoss | nn.MSELoss)

    def scores(self, f: np.ndarray, y: np.ndarray) -> Scores:
        loss = self.function
        if isinstance(loss, _CLASSES) and y.shape != f.shape:
            # PyTorch has the classes on the second axis.
            f = np.moveaxis(f, 1, -1) if f.ndim > 1 else f
            seen = y != loss.ignore_index
            return Scores(f, y, False) if seen.all() else Scores(f[seen], y[seen], False)
        if isinstance(loss, nn.BCEWithLogitsLoss):
            return Scores(f, 2 * y - 1, True)
        if isinstance(loss, nn.BCELoss):
            return Scores(f - 0.5, 2 * y - 1, True)
        return Scores(f, y, isinstance(loss, nn.SoftMarginLoss) or f.ndim == 1 or f.shape[-1] == 1)


def read(loss: Any, weight: Any) -> Loss:
    """The loss that the user passed, before it has seen data."""
    if not callable(loss) or isinstance(loss, type):
        remedy = "Pass for instance torch.nn.CrossEntropyLoss(), or a function of (outputs, target)."
        check.refuse("loss", "a loss of PyTorch or a function of (outputs, target)", loss, remedy)
    if weight is not None and not callable(weight):
        check.refuse("weight", "a function of the target of a batch", weight, "Pass for instance len.")
    function = _MODULES.get(loss, loss) if getattr(loss, "__hash__", None) else loss
    reduction = getattr(function, "reduction", "mean")
    if reduction == "none":
        check.refuse("loss", "one number for a batch", "reduction='none'", "Use reduction='mean' or 'sum'.")
    return Loss(function, weight, sums=reduction == "sum")


def takes_target_apart(loss: Loss) -> bool:
    """Whether it is one of PyTorch's, which take the labels and not a whole dictionary."""
    return isinstance(loss.function, nn.Module) and type(loss.function).__module__.startswith("torch.nn.")


def measured(loss: Loss, batch: Batch, outputs: Callable[[Batch], Any], several: bool) -> Loss:
    """The loss with `sums`, `splits` and `weight` as passes show them: for a batch with each example twice a mean stays
    the same and a sum doubles; and both are made of those of two parts. PyTorch's own modules say it themselves.

    A function can hide a cross-entropy that leaves labels of −100 out, as the losses of transformers: its mean is over
    the others, of which language models count all but the first. `several` says whether there are other batches.
    """
    if takes_target_apart(loss):
        return loss
    half = (batch.size + 1) // 2
    parts = [batch.doubled(), batch.rows(0, half), batch.rows(half, batch.size)]
    parts = [part for part in parts if part.size]
    try:
        once, again, *halves = (float(loss(outputs(b), b.target).detach()) for b in [batch, *parts])
    except (RuntimeError, ValueError, TypeError, IndexError):
        # The model or the loss takes batches of this size only.
        return replace(loss, splits=False)
    close = 1e-3 * abs(once)
    if abs(again - 2 * once) <= close < abs(again - once):
        return replace(loss, sums=True, splits=abs(sum(halves) - once) <= close)
    counts = ignored(batch.target)
    hides = loss.weight is None and counts is not None and bool(counts.any())
    # The counts of the labels that are seen can be nearly equal.
    near = 1e-2 * close if hides else close
    for weight in (_seen, _seen_by_next, None) if hides else (loss.weight,):
        found = replace(loss, weight=weight)
        total = found.count(batch)
        shares = [found.count(part) / total if total else 0.0 for part in parts[1:]]
        # A part without any label that counts is 0/0.
        values = [share * value for share, value in zip(shares, halves, strict=True) if share]
        if abs(sum(values) - once) <= near and abs(again - once) <= close:
            return found
    if several and hides:
        remedy = "Pass weight, a function of the target: for instance lambda batch: (batch['labels'] != -100).sum()."
        check.refuse("weight", "given for labels of -100 and a loss of one's own", None, remedy)
    return replace(loss, splits=False)


def _labels(target: Any) -> Tensor | None:
    labels = target.get("labels") if isinstance(target, Mapping) else target
    return labels if isinstance(labels, Tensor) and not labels.is_floating_point() else None


def ignored(target: Any) -> Tensor | None:
    """The number of labels of −100 in each row; None without integer labels."""
    labels = _labels(target)
    return None if labels is None or labels.ndim == 0 else (labels == -100).reshape(labels.shape[0], -1).sum(1)


def _seen(target: Any) -> float:
    labels = _labels(target)
    assert labels is not None
    return float((labels != -100).sum())


def _seen_by_next(target: Any) -> float:
    """A language model predicts the next label: the first one is no target."""
    labels = _labels(target)
    assert labels is not None
    return float((labels[:, 1:] != -100).sum()) if labels.ndim == 2 else 0.0


def check_labels(loss: Loss, outputs: Any, target: Any) -> None:
    """Refuses labels out of range before they reach a kernel; the outputs can be those of another batch."""
    y = target
    if not isinstance(loss.function, _CLASSES) or not isinstance(outputs, Tensor) or not isinstance(y, Tensor):
        return
    classes = outputs.shape[1 if outputs.ndim > 1 else 0]
    used = y[y != loss.function.ignore_index]
    if y.is_floating_point() or used.numel() == 0:
        return
    if int(used.min()) < 0 or int(used.max()) >= classes:
        seen = f"labels from {int(used.min())} to {int(used.max())}"
        remedy = "The model has one output a class: count them from 0, or widen its last layer."
        check.refuse("data", f"labels from 0 to {classes - 1}", seen, remedy)


def check_shape(loss: Loss, outputs: Any, target: Any) -> None:
    """Refuses targets whose shape does not belong to the outputs of the same batch."""
    y = target
    if isinstance(loss.function, _CLASSES) and isinstance(outputs, Tensor) and isinstance(y, Tensor):
        shape = tuple(outputs.shape[:1] + outputs.shape[2:])
        if not y.is_floating_point() and (y.dtype == torch.bool or y.shape != shape):
            seen = f"{y.dtype} of shape {tuple(y.shape)}"
            check.refuse("data", f"class numbers of shape {shape} as targets", seen, "Reshape them.")
        if y.is_floating_point() and y.shape != outputs.shape:
            rule = f"class probabilities of shape {tuple(outputs.shape)}"
            check.refuse("data", rule, tuple(y.shape), "Pass class numbers as integers, or one probability a class.")
    elementwise = isinstance(loss.function, nn.MSELoss | nn.L1Loss | nn.SmoothL1Loss | nn.HuberLoss)
    if elementwise and isinstance(outputs, Tensor) and isinstance(y, Tensor) and y.shape != outputs.shape:
        # (n, 1) against (n,) would broadcast to (n, n) and train on wrong targets silently.
        remedy = "Reshape the targets, or squeeze the last axis of the outputs."
        check.refuse("data", f"targets of the shape of the outputs, {tuple(outputs.shape)}", tuple(y.shape), remedy)


def refuse_without_slope(outputs: Any) -> None:
    attached = any(t.requires_grad for t in tensors(outputs))
    seen = "a constant" if not attached else "a number that no derivative reaches"
    remedy = (
        "Do not detach, round or compare in the loss; take for instance cross-entropy instead of the error rate."
        if attached
        else "The outputs do not depend on the chosen parameters by derivatives: does forward run under no_grad?"
    )
    check.refuse("loss", "differentiable by the parameters", seen, remedy)
