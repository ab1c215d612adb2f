"""Tests of steppe.torch: skipped without PyTorch, on one thread, since the tests run in several processes."""

import importlib.util

import pytest

# Without PyTorch `import torch` finds this very folder, as a package without a file.
if getattr(importlib.util.find_spec("torch"), "origin", None) is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread():
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
