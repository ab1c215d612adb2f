"""`dir` of a public module shows what a user calls, and nothing else."""

import importlib.util
import inspect
import pkgutil

import pytest

import steppe

# The commands are called by the shell, and a paper's modules are found by the name of the paper. PyTorch is an extra.
NOT_FOR_IMPORT = {"cli", "papers"} | (set() if importlib.util.find_spec("torch") else {"torch"})


def submodules(module):
    return [name for _, name, _ in pkgutil.iter_modules(getattr(module, "__path__", []))]


def shown(module):
    return {name: getattr(module, name) for name in dir(module)}


def public_modules():
    """steppe, its modules and rooms, and the modules that their `dir` shows."""
    names = [name for name in submodules(steppe) if not name.startswith("_") and name not in NOT_FOR_IMPORT]
    rooms = [steppe, *(importlib.import_module(f"steppe.{name}") for name in names)]
    inside = [value for room in rooms[1:] for value in shown(room).values() if inspect.ismodule(value)]
    return {module.__name__: module for module in [*rooms, *inside]}


MODULES = public_modules()


def test_all_rooms_are_found():
    assert {"steppe", "steppe.dynamics", "steppe.check", "steppe.linalg.dense"} <= MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_what_dir_shows(name):
    module = MODULES[name]
    assert [n for n in dir(module) if n.startswith("_")] == [n for n in dir(module) if n == "__version__"]
    for value in shown(module).values():
        if inspect.ismodule(value):
            assert value.__name__ in MODULES
            assert value.__name__.startswith(name)
        elif inspect.isclass(value) or inspect.isroutine(value):
            assert value.__module__.split(".")[0] == "steppe"


@pytest.mark.parametrize("name", MODULES)
def test_no_function_shadows_a_module(name):
    module = MODULES[name]
    own = [n for n in submodules(module) if n in dir(module)]
    assert all(inspect.ismodule(getattr(module, n)) for n in own)
