"""Controls of the recipe: how tracers treat single functions and module classes.

While a capture method runs that the control concerns, a substitute that counts its calls stands wherever the user's
code finds the function. The count tells afterwards whether the control did anything.
"""

import builtins
import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ace_studio.engine.capture.methods import recorded
from ace_studio.engine.capture.namespaces import AnyFunction, KeepWhole, model_modules, replaced
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.subgraphs.run_pieces import is_autograd_function, stand_in
from ace_studio.engine.torch_private.dynamo import traced_without_analysis
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind


@dataclass(frozen=True)
class ControlRow:
    """What one kind of control means."""

    methods: frozenset[str]
    """The capture methods that it changes."""
    mark: Callable[[AnyFunction], AnyFunction] | None = None
    """Makes the tracer treat a function in this way; None for the kinds of fx, which has no such marks."""


CONTROL_ROWS: dict[ControlKind, ControlRow] = {
    ControlKind.NONSTRICT_TRACE: ControlRow(frozenset({"dynamo", "partial"}), traced_without_analysis),
    ControlKind.ALLOW_IN_GRAPH: ControlRow(
        frozenset({"export-strict", "dynamo", "partial"}), torch.compiler.allow_in_graph
    ),
    ControlKind.FX_WRAP: ControlRow(frozenset({"fx"})),
    ControlKind.LEAF: ControlRow(frozenset({"fx"})),
    ControlKind.DISABLE: ControlRow(frozenset({"export-strict", "dynamo", "partial"}), torch.compiler.disable),
}


@dataclass
class Control:
    """One control whose function was found."""

    choice: CaptureControl
    owner: Any
    """Module or class that has the function."""
    name: str
    target: Any
    used_by: set[str] = field(default_factory=set)
    """The capture methods in which it did something."""

    @property
    def row(self) -> ControlRow:
        """What its kind means."""
        return CONTROL_ROWS[self.choice.treat_as]

    @contextmanager
    def applied(self, method: str, module: nn.Module) -> Iterator[None]:
        """Replace the function by its substitute wherever the user's code finds it, while the block runs."""
        substitute = stand_in(self.target, lambda function: self._marked(function, method))
        if inspect.isclass(self.owner):
            # A static method stays one: a plain function in its place would be given the object.
            is_static = isinstance(inspect.getattr_static(self.owner, self.name), staticmethod | classmethod)
            with replaced_attribute(self.owner, self.name, staticmethod(substitute) if is_static else substitute):
                yield
        else:
            with replaced(module, {self.target: substitute}, owner=self.owner):
                yield

    def _marked(self, function: AnyFunction, method: str) -> AnyFunction:
        if self.row.mark is None:
            return recorded(function, noticed=lambda: self.used_by.add(method))

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.used_by.add(method)
            return function(*args, **kwargs)

        return self.row.mark(counted)

    @property
    def reference(self) -> str:
        """``module:name`` of the function, also where the recipe gives the name alone."""
        if inspect.isclass(self.owner) and "<" not in self.owner.__qualname__:
            return f"{self.owner.__module__}:{self.owner.__qualname__}.{self.name}"
        if not inspect.isclass(self.owner) and self.owner.__name__ in sys.modules:
            return f"{self.owner.__name__}:{self.name}"
        return self.choice.function

    def keeps_whole(self, kind: type, method: str) -> bool:
        """Whether it makes modules of this class leaves."""
        if self.choice.treat_as is not ControlKind.LEAF or not issubclass(kind, self.target):
            return False
        self.used_by.add(method)
        return True


class Controls:
    """The controls of one capture."""

    def __init__(self, choices: Sequence[CaptureControl], module: nn.Module) -> None:
        """Find every function.

        Raises: AceError(NOT_FOUND) with one problem per function that does not exist, AceError(RECIPE) for a kind
            that does not fit what was found.
        """
        self._module = module
        self._controls: list[Control] = []
        problems: list[Problem] = []
        for choice in choices:
            found = _find(choice, module)
            if isinstance(found, Problem):
                problems.append(found)
            else:
                self._controls.append(found)
        if problems:
            raise AceError(*problems)

    @contextmanager
    def applied(self, method: str) -> Iterator[KeepWhole]:
        """Apply the controls that concern a capture method, while it runs."""
        own = [control for control in self._controls if method in control.row.methods]
        with ExitStack() as stack:
            for control in own:
                if control.choice.treat_as is not ControlKind.LEAF:
                    stack.enter_context(control.applied(method, self._module))
            yield lambda kind: any([control.keeps_whole(kind, method) for control in own])  # noqa: C419 - all are asked

    def marks(self) -> tuple[tuple[str, str], ...]:
        """``module:name`` and treatment of every control."""
        return tuple((control.reference, str(control.choice.treat_as)) for control in self._controls)

    def unused(self) -> Iterator[CaptureControl]:
        """The controls that did nothing in any capture method."""
        return (control.choice for control in self._controls if not control.used_by)

    def idle(self, method: str) -> Iterator[tuple[CaptureControl, str]]:
        """Every control that did nothing for the graph of a capture method, and the cause."""
        for control in self._controls:
            if method in control.used_by:
                continue
            if method not in control.row.methods:
                concerned = " and ".join(name for name in sorted(control.row.methods) if name != "partial")
                yield (
                    control.choice,
                    f"it concerns {concerned or 'no capture method here'}, and {method} was taken without it",
                )
            else:
                yield control.choice, f"the model never reached it while {method} traced"


def _find(choice: CaptureControl, module: nn.Module) -> Control | Problem:
    space_name, _, dotted = choice.function.rpartition(":")
    spaces = _spaces(space_name, module)
    if not spaces:
        known = sorted(one.__name__ for one in model_modules(module))
        return _missing(choice, f"no module '{space_name}' is loaded", _nearest(space_name, known))
    for space in spaces:
        found = _resolve(choice, space, dotted)
        if found is not None:
            return _checked(found)
    names = {name: f"{space_name}:{name}" if space_name else name for space in spaces for name in _callables(space)}
    nearest = _nearest(dotted.rpartition(".")[2], sorted(names))
    where = f"{space_name} has no such name" if space_name else "no file of the model has such a name"
    return _missing(choice, where, names.get(nearest, ""))


def _spaces(name: str, module: nn.Module) -> list[Any]:
    """The modules that ``name`` may mean; without a name those of the model, and Python's own functions."""
    own = model_modules(module)
    if not name:
        classes = [type(child) for child in module.modules()]
        by_name = ModuleType("classes of the model")
        vars(by_name).update({kind.__name__: kind for kind in classes})
        return [*own, by_name, builtins]
    if name in sys.modules:
        return [sys.modules[name]]
    return [one for one in own if Path(str(one.__file__)).stem == name]


def _resolve(choice: CaptureControl, space: Any, dotted: str) -> Control | None:
    owner, *path = space, *dotted.split(".")
    if len(path) > 1 and not hasattr(owner, path[0]) and path[0] in sys.modules:
        owner, path = sys.modules[path[0]], path[1:]
    for name in path[:-1]:
        owner = getattr(owner, name, None)
    if path[-1] == "apply" and is_autograd_function(owner):
        return _resolve(choice, space, dotted.removesuffix(".apply"))
    target = getattr(owner, path[-1], None) if owner is not None else None
    return Control(choice, owner, path[-1], target) if callable(target) else None


def _checked(control: Control) -> Control | Problem:
    is_module_class = inspect.isclass(control.target) and issubclass(control.target, nn.Module)
    if (control.choice.treat_as is ControlKind.LEAF) == is_module_class:
        return control
    wanted = "a module class" if not is_module_class else "a function; for a module class there is 'leaf'"
    return Problem(
        code=ErrorCode.RECIPE,
        what=f"The control '{control.choice.treat_as}' does not fit {control.choice.function}",
        why=f"it needs {wanted}",
        remedy="Choose another treatment, or name another function.",
        where="[[capture.controls]]",
    )


def _missing(choice: CaptureControl, why: str, nearest: str) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        what=f"The control {choice.function} names a function that does not exist",
        why=why,
        remedy=f"Did you mean '{nearest}'?" if nearest else "Write it as 'module:name', such as 'model:get_number'.",
        where="[[capture.controls]]",
    )


def _callables(space: Any) -> list[str]:
    return [name for name, value in list(vars(space).items()) if callable(value) and not name.startswith("_")]


def _nearest(name: str, known: Sequence[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), "")
