"""The settings in which a network can be differentiated twice, and random states that are as before at the end."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode


class _Composed(TorchFunctionMode):  # type: ignore[misc]
    """Weight normalisation and bags of embeddings from their formulas: the second derivative of PyTorch's fused ones is
    wrong on CPU (2.13: not even symmetric), or missing."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.embedding_bag and (bags := _bags(*args, **kwargs)) is not None:
            return bags
        if function is not torch._weight_norm:
            return function(*args, **kwargs)
        v, g, *rest = args
        dim = rest[0] if rest else 0
        others = [k for k in range(v.ndim) if k != dim]
        return v * (g / torch.linalg.vector_norm(v, dim=others, keepdim=True))


def _bags(
    indices: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor | None:
    """Sums or means of the rows of each bag; None for the modes that change weights or gradients, and for maxima."""
    if max_norm is not None or scale_grad_by_freq or mode not in ("sum", "mean"):
        return None
    if indices.ndim == 2:
        bags = indices.shape[0]
        of = torch.arange(bags, device=indices.device).repeat_interleave(indices.shape[1])
    else:
        assert offsets is not None
        starts = offsets[:-1] if include_last_offset else offsets
        bags = starts.numel()
        places = torch.arange(indices.numel(), device=indices.device)
        of = torch.searchsorted(starts.contiguous(), places.to(starts.dtype), right=True) - 1
    flat = indices.reshape(-1)
    counts = torch.ones_like(flat, dtype=weight.dtype)
    if padding_idx is not None:
        counts = (flat != padding_idx % weight.shape[0]).to(weight.dtype)
    shares = counts if per_sample_weights is None else counts * per_sample_weights.reshape(-1)
    total = weight.new_zeros(bags, weight.shape[1]).index_add(0, of, shares[:, None] * weight[flat])
    if mode == "sum":
        return total
    return total / weight.new_zeros(bags).index_add(0, of, counts).clamp(min=1.0)[:, None]


def _is_composed(module: nn.Module) -> bool:
    hooks = [*module._forward_pre_hooks.values(), module]
    return isinstance(module, nn.EmbeddingBag) or any(
        type(hook).__name__ in ("WeightNorm", "_WeightNorm") for hook in hooks
    )


class _Direct:
    """Stands for torch.utils.checkpoint.CheckpointFunction, which cannot be differentiated twice: no checkpoint."""

    @staticmethod
    def apply(run: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        return run(*args)


@contextmanager
def exact_products(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The settings in which a network can be differentiated twice, whatever those of the caller are; and all random
    states as before."""
    fast = torch.backends.mha.get_fastpath_enabled()
    checkpoint = torch.utils.checkpoint.CheckpointFunction
    with ExitStack() as stack, kept_randomness(device):
        enter = stack.enter_context
        enter(torch.inference_mode(False))
        enter(torch.enable_grad())
        enter(torch.autocast(device.type, enabled=False))
        # The fused kernels of attention have no second derivative.
        enter(sdpa_kernel(SDPBackend.MATH))
        if device.type == "cuda" and any(isinstance(m, nn.RNNBase) for m in model.modules()):
            enter(torch.backends.cudnn.flags(enabled=False))
        if any(map(_is_composed, model.modules())):
            enter(_Composed())
        if "torch._dynamo" in sys.modules:
            # Compiled code is not differentiated twice, or wrongly.
            enter(torch.compiler.set_stance("force_eager"))
        torch.backends.mha.set_fastpath_enabled(False)
        torch.utils.checkpoint.CheckpointFunction = _Direct
        try:
            yield
        finally:
            torch.utils.checkpoint.CheckpointFunction = checkpoint
            torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def kept_randomness(device: torch.device | None = None) -> Iterator[None]:
    """All random states are as before at the end: of PyTorch, numpy and Python."""
    python, numpys, state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state(device) if device is not None and device.type == "cuda" else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpys)
        torch.set_rng_state(state)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)


def seed(number: int, device: torch.device) -> None:
    """Every random state from one number; inside of `kept_randomness`."""
    random.seed(number)
    np.random.seed(number)
    # Not torch.manual_seed, which sets the states of all devices.
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(number)
