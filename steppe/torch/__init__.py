"""PyTorch: sharpness-aware minimisation, and a monitor of the edge of stability. Needs the extra `torch`."""

from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('steppe.torch needs PyTorch. Install the extra: pip install "steppe[torch]"') from error

from steppe.torch._callbacks import CALLBACKS as _CALLBACKS
from steppe.torch._monitor import Monitor as Monitor
from steppe.torch._sam import SAM as SAM

if TYPE_CHECKING:
    LightningCallback: type
    TrainerCallback: type


def __getattr__(name: str) -> Any:
    if name in _CALLBACKS:
        return _CALLBACKS[name]()
    raise AttributeError(f"module 'steppe.torch' has no attribute {name!r}")
