"""PyTorch: sharpness-aware minimisation, and a monitor of the edge of stability. Needs the extra `torch`."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('steppe.torch needs PyTorch. Install the extra: pip install "steppe[torch]"') from error

from steppe.torch._monitor import Monitor as Monitor
from steppe.torch._sam import SAM as SAM
