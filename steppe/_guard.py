"""Errors of a public function that was called with arguments it cannot use.

A function that fails deep inside says what went wrong there, in the words of numpy or JAX. Its room exports it with
this guard, which then names the argument instead. It costs nothing while nothing fails, and the error from inside stays
in the traceback. Errors that the caller's own functions raise pass through.
"""

import functools
import inspect
import math
import os
import re
import sys
import sysconfig
import types
import typing
from collections import abc
from collections.abc import Callable
from typing import Any, Literal, NoReturn

from steppe import _exports, check

# What wrong arguments cause. Other errors, such as those of the system, explain themselves.
_OBSCURE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError, RecursionError)
_CLEAR = (check.ArgumentError, UnicodeError)

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = tuple(os.path.abspath(path) + os.sep for path in set(sysconfig.get_paths().values()))
_LIBRARIES += (os.path.dirname(os.path.abspath(os.__file__)) + os.sep,)  # of the Python behind a virtual environment


def exported(module: str) -> Callable[[], list[str]]:
    """The `__dir__` of that module; its functions, and those of the modules that it shows, get the guard."""
    room = sys.modules[module]
    inside = [value for name, value in vars(room).items() if inspect.ismodule(value) and not name.startswith("_")]
    for home in (room, *(part for part in inside if part.__name__.startswith(f"{module}."))):
        for name, value in list(vars(home).items()):
            if name.startswith("_") or not getattr(value, "__module__", "").startswith(home.__name__):
                continue
            if inspect.isfunction(value):
                guarded = guard(value)
                setattr(home, name, guarded)
                setattr(sys.modules[value.__module__], value.__name__, guarded)  # where pickle finds it
            elif inspect.isclass(value) and inspect.isfunction(vars(value).get("__init__")) and _is_plain(value):
                type.__setattr__(value, "__init__", guard(vars(value)["__init__"]))
    return _exports.exported(module)


def _is_plain(kind: type) -> bool:
    """Whether its constructor can be replaced: not that of an error, a module of Equinox or a class of PyTorch."""
    return all(base.__module__.startswith(("steppe", "builtins", "abc", "typing")) for base in kind.__mro__) and not (
        issubclass(kind, BaseException)
    )


def guard(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose obscure errors name the argument that caused them."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _CLEAR:
            raise
        except _OBSCURE as error:
            if type(error).__module__.startswith("steppe") or _is_of_the_caller(error):
                raise
            explain(call, args, kwargs, error)

    return call


def explain(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> NoReturn:
    """Raises an ArgumentError for the argument that is not what its annotation says, or for all of them together."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        raise error from None  # arguments are missing or unknown: Python names them
    remedy = f"See help({re.sub(r'[.]_[^.]*', '', function.__module__)}.{function.__qualname__})."
    hints = _hints(function)
    given.pop("self", None)
    for name, value in given.items():
        if name in hints and not fits(value, hints[name]):
            try:
                check.refuse(name, described(hints[name]), short(value), remedy)
            except check.ArgumentError as refused:
                raise refused from error
    what = ", ".join(f"{name} = {short(value)}" for name, value in given.items())
    reason = (str(error).splitlines() or [""])[0]
    reason = f"{type(error).__name__}: {reason}"
    raise check.ArgumentError(
        f"the arguments of {function.__qualname__} must fit together; got {what}: {reason}. {remedy}"
    ) from error


def _is_of_the_caller(error: Exception) -> bool:
    """Whether a function of the caller was running, called from inside of ours."""
    trace, inside = error.__traceback__, False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        # Parts of libraries that are compiled have relative names, generated code has none.
        if os.path.isabs(file) or file.startswith(("<stdin", "<ipython")):
            ours = file.startswith(_OURS)
            if inside and not ours and not file.startswith(_LIBRARIES):
                return True
            inside = inside or ours
        trace = trace.tb_next
    return False


def short(value: Any) -> Any:
    """A value, or its shape and type if it has many entries."""
    if getattr(value, "shape", ()) != ():
        return f"{getattr(value, 'dtype', type(value).__name__)} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# What an annotation says of a value.


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name that exists for type checkers only
        return {}


_ABILITIES = (abc.Mapping, abc.Sequence, abc.Iterable, abc.Set, abc.Sized)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value can be what the annotation says; True if that cannot be told.

    >>> fits(1.5, int), fits(1, float), fits(None, int | None), fits("a", list[int])
    (False, True, True, False)
    """
    import numpy as np

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if hint in (int, float, bool):
        if isinstance(value, bool | np.bool_) or hint is bool:
            return hint is bool and isinstance(value, bool | np.bool_)
        number = check._real(value)
        return not math.isnan(number) and (hint is float or number.is_integer())
    if hint is None or hint is type(None):
        return value is None
    kind = origin or hint
    if kind is abc.Callable:
        return callable(value)
    if kind is Any or not inspect.isclass(kind) or getattr(kind, "_is_protocol", False):
        return True
    if kind is np.ndarray or kind.__module__.startswith(("jax", "jaxlib")):
        return getattr(value, "dtype", np.dtype(object)) not in (object,) and np.dtype(value.dtype).kind in "biufV"
    if kind in _ABILITIES:
        return isinstance(value, kind | np.ndarray) and not isinstance(value, str | bytes)
    return isinstance(value, kind)


def described(hint: Any) -> str:
    """An annotation in words.

    >>> described(int | None), described(Literal["a", "b"])
    ('a whole number or None', "'a' or 'b'")
    """
    import numpy as np

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(described, parts)))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", type(None): "None"}
    kind = origin or hint
    if kind in words:
        return words[kind]
    if kind is abc.Callable:
        return "a function"
    if kind is np.ndarray or str(getattr(kind, "__module__", "")).startswith(("jax", "jaxlib")):
        return "an array of numbers"
    if kind is abc.Mapping or kind is dict:
        return "a dictionary"
    if kind in _ABILITIES or kind in (list, tuple):
        return "a list"
    return f"a {getattr(kind, '__name__', kind)}"
