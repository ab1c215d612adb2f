"""Your PyTorch network in one line: `steppe.torch.Problem(model, data, loss)` works with every measure of steppe.

For training: `SAM` around any optimiser, and a `Monitor` of the edge of stability, also as `TrainerCallback` of Hugging
Face and `LightningCallback`. An extra: nothing else in steppe imports PyTorch.
"""

from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "steppe.torch needs PyTorch. Install it with pip install 'steppe[torch]', or in a checkout of steppe with "
        "pip install -e '.[torch]'."
    ) from error

from steppe.torch import _flatten as _flatten  # registers steppe.torch.Problem for steppe.flatten
from steppe.torch._backend import TORCH as _TORCH  # registers the backend of steppe.torch.Problem  # noqa: F401
from steppe.torch._callbacks import CALLBACKS as _CALLBACKS
from steppe.torch._monitor import Monitor as Monitor
from steppe.torch._problem import Problem as Problem
from steppe.torch._sam import SAM as SAM

if TYPE_CHECKING:
    LightningCallback: type
    TrainerCallback: type


def __getattr__(name: str) -> Any:
    if name in _CALLBACKS:
        return _CALLBACKS[name]()
    raise AttributeError(f"module 'steppe.torch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"Monitor", "Problem", "SAM"} | set(_CALLBACKS))
