"""Replaces functions for a while wherever the user's code finds them."""

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any

from torch import nn

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.user_files import is_user_file

AnyFunction = Callable[..., Any]
KeepWhole = Callable[[type], bool]
"""Whether modules of a class are kept as one call."""
ApplyControls = Callable[[], AbstractContextManager[KeepWhole]]
"""Applies the recipe's controls while the user's own code is traced."""
_OWN_PACKAGE = __name__.partition(".")[0]


@contextmanager
def replaced(
    module: nn.Module, substitutes: Mapping[AnyFunction, AnyFunction], *, owner: ModuleType | None = None
) -> Iterator[None]:
    """Let the user's code find the substitutes under every name that means one of the functions.

    The names are those in modules loaded from the user's files, installed packages included, and in ``owner``. Python's
    built-in functions have no name in a module; they get one in the modules of the model's own classes and functions.
    """
    by_id = {id(function): substitute for function, substitute in substitutes.items()}
    kept = list(substitutes)  # so that no id is used a second time meanwhile
    with ExitStack() as stack:
        spaces = [*_user_modules(), *([owner] if owner not in (None, builtins) else [])]
        for space in spaces:
            names = [(name, by_id[id(value)]) for name, value in list(vars(space).items()) if id(value) in by_id]
            for name, substitute in names:
                stack.enter_context(replaced_attribute(space, name, substitute))
        built_in = [one for one in kept if getattr(builtins, getattr(one, "__name__", ""), None) is one]
        for function in built_in:
            for space in [one for one in model_modules(module) if function.__name__ not in vars(one)]:
                stack.enter_context(replaced_attribute(space, function.__name__, substitutes[function]))
        yield


def _user_modules() -> list[ModuleType]:
    found = [
        one
        for name, one in list(sys.modules.items())
        if isinstance(one, ModuleType) and name.partition(".")[0] != _OWN_PACKAGE
    ]
    # Read from the dictionary: some modules of torch answer to every name.
    return [one for one in found if is_user_file(str(vars(one).get("__file__") or ""))]


def model_modules(module: nn.Module) -> list[ModuleType]:
    """The modules that define the model's classes, and every user module outside the installed packages."""
    names = {type(child).__module__ for child in module.modules()}
    return [
        one
        for one in _user_modules()
        if one.__name__ in names or not any(part in str(one.__file__) for part in ("site-packages", "dist-packages"))
    ]
