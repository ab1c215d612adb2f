"""CIFAR-10's Python version: pickles of numpy arrays, read without running what else a pickle may hold."""

import io
import pickle
from typing import Any

import numpy as np

from steppe.problems.data.files.errors import DataError

# All that an array of numbers needs. numpy has moved its inner modules since these files were written.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy._core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}


class _Arrays(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no table of images needs")
        return _ALLOWED[module, name]


def records(content: bytes, where: str) -> bytes:
    """A batch of the Python version as the binary version has it: for each image a label byte and its 3,072 pixels."""
    try:
        batch = _Arrays(io.BytesIO(content), encoding="bytes").load()
        # Keys are bytes in the published files, which Python 2 wrote, and texts in those written again since.
        named = {key.encode() if isinstance(key, str) else key: value for key, value in batch.items()}
        labels, pixels = np.asarray(named[b"labels"], np.uint8), np.asarray(named[b"data"], np.uint8)
        return np.concatenate([labels[:, None], pixels], axis=1).tobytes()
    except Exception as error:  # a pickle can fail in any way
        remedy = "Take the published cifar-10-python.tar.gz, or the binary version."
        raise DataError(f"{where} is not a batch of CIFAR-10's Python version: {error}. {remedy}") from error
