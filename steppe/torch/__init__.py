"""Your PyTorch network in one line: `steppe.torch.Problem(model, data, loss)` works with every measure of steppe.

An extra: nothing else in steppe imports PyTorch.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "steppe.torch needs PyTorch. Install it with pip install 'steppe[torch]', or in a checkout of steppe with "
        "pip install -e '.[torch]'."
    ) from error

from steppe.torch._backend import TORCH as _TORCH  # registers the backend of steppe.torch.Problem  # noqa: F401
from steppe.torch._problem import Problem as Problem
