"""Functions replaced for a while wherever the user's code finds them, and put back."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from torch import nn

from ace_studio.engine.capture.places import is_user_file

AnyFunction = Callable[..., Any]
_ABSENT = object()


@contextmanager
def replaced(module: nn.Module, substitutes: Mapping[AnyFunction, AnyFunction]) -> Iterator[None]:
    """Let the user's code find the substitutes under every name that means one of the functions.

    Looked through are the modules that were loaded from files of the user, installed packages included. Python's
    built-in functions have no name in a module; they get one where the model's own classes and functions are.
    """
    by_id = {id(function): substitute for function, substitute in substitutes.items()}
    kept = list(substitutes)  # so that no id is used a second time meanwhile
    with ExitStack() as stack:
        for space in _user_modules():
            names = [(name, by_id[id(value)]) for name, value in list(vars(space).items()) if id(value) in by_id]
            for name, substitute in names:
                stack.enter_context(_attribute(space, name, substitute))
        built_in = [one for one in kept if getattr(builtins, getattr(one, "__name__", ""), None) is one]
        for function in built_in:
            for space in _model_modules(module):
                stack.enter_context(_attribute(space, function.__name__, substitutes[function]))
        yield


@contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner).get(name, _ABSENT)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


replaced_attribute = _attribute


def _user_modules() -> list[ModuleType]:
    found = [one for one in list(sys.modules.values()) if isinstance(one, ModuleType)]
    return [one for one in found if is_user_file(str(getattr(one, "__file__", None) or ""))]


def _model_modules(module: nn.Module) -> list[ModuleType]:
    """Where the classes of the model are defined, and every user module outside the installed packages."""
    names = {type(child).__module__ for child in module.modules()}
    return [
        one
        for one in _user_modules()
        if one.__name__ in names or not any(part in str(one.__file__) for part in ("site-packages", "dist-packages"))
    ]


def model_modules(module: nn.Module) -> list[ModuleType]:
    """Modules of the user in which a control may find its function without being told where."""
    return _model_modules(module)
