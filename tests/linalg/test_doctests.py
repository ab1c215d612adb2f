"""Every example in the docstrings of steppe.linalg has the answer it states."""

import doctest
import importlib
import pkgutil

import pytest

import steppe.linalg

MODULES = sorted(module.name for module in pkgutil.iter_modules(steppe.linalg.__path__, "steppe.linalg."))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
