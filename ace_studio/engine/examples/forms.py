"""Examples written alike: which arguments are passed by position makes no difference to the model, but to a graph."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from ace_studio.engine.examples.leaves import BY_POSITION, Parameters, forward_parameters, is_same_value, is_variadic
from ace_studio.engine.flow import Example


def in_one_form(examples: Sequence[Example], module: nn.Module) -> tuple[Example, ...]:
    """The same calls, all written alike: what some give by position and others by name, or leave at its default.

    Examples that forward's signature cannot take stay as they are: running them says what is wrong.
    """
    first = examples[0]
    if all(_is_alike(one, first) for one in examples):
        return tuple(_reordered(one, first) for one in examples)
    parameters = forward_parameters(module)
    bound = [_bound(one, parameters) for one in examples]
    if not parameters or any(one is None for one in bound):
        return tuple(examples)
    given = [one for one in bound if one is not None]
    names = [name for name in parameters if any(name in one for one in given)]
    filled = {name: given[0].get(name, parameters[name].default) for name in names}
    signature = inspect.Signature(list(parameters.values()))
    plain = inspect.BoundArguments(signature, _without_empty(filled))
    form = Example(args=plain.args, kwargs=plain.kwargs)
    return tuple(in_form_of(one, form, module) for one in examples)


def in_form_of(example: Example, form: Example, module: nn.Module) -> Example:
    """The same call, written as ``form`` is; as it is if it gives other arguments than ``form``."""
    if _is_alike(example, form):
        return _reordered(example, form)
    parameters = forward_parameters(module)
    given, wanted = _bound(example, parameters), _bound(form, parameters)
    if given is None or wanted is None:
        return example
    chosen = {name: given.get(name, parameters[name].default) for name in wanted}
    surplus = [
        name for name in given if name not in wanted and not is_same_value(given[name], parameters[name].default)
    ]
    if surplus or any(
        value is inspect.Parameter.empty and not is_variadic(parameters[name]) for name, value in chosen.items()
    ):
        return example
    return _reordered(_written_as(form, _without_empty(chosen), parameters), form)


def places_of_forward(module: nn.Module) -> float:
    """How many arguments forward takes by position; infinite with ``*args``, or where its signature is unknown."""
    parameters = forward_parameters(module).values()
    if not parameters or any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        return math.inf
    return sum(one.kind in BY_POSITION for one in parameters)


def _written_as(form: Example, chosen: dict[str, Any], parameters: Parameters) -> Example:
    """Values by name as a call with the arguments of ``form`` by position and by name."""
    named = [name for name, one in parameters.items() if one.kind in BY_POSITION][: len(form.args)]
    args = [chosen.pop(name) for name in named]
    for name, one in parameters.items():
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            args += chosen.pop(name, ())
        elif one.kind is inspect.Parameter.VAR_KEYWORD:
            chosen |= chosen.pop(name, {})
    return Example(args=tuple(args), kwargs=chosen)


def _bound(example: Example, parameters: Parameters) -> dict[str, Any] | None:
    """Name of each parameter -> what the example gives for it; None if forward cannot be called so."""
    try:
        return dict(inspect.Signature(list(parameters.values())).bind(*example.args, **example.kwargs).arguments)
    except TypeError:
        return None


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not inspect.Parameter.empty}


def _is_alike(one: Example, other: Example) -> bool:
    return len(one.args) == len(other.args) and set(one.kwargs) == set(other.kwargs)


def _reordered(example: Example, form: Example) -> Example:
    """Keyword arguments, and the keys of dictionaries inside, in the order of ``form``: order is no difference."""
    args = tuple(_ordered_like(value, model) for value, model in zip(example.args, form.args, strict=False))
    kwargs = _ordered_like(dict(example.kwargs), dict(form.kwargs))
    return Example(args=(*args, *example.args[len(args) :]), kwargs=kwargs)


def _ordered_like(value: Any, model: Any) -> Any:
    if type(value) is dict and type(model) is dict and set(value) == set(model):
        return {key: _ordered_like(value[key], model[key]) for key in model}
    if type(value) is type(model) and type(value) in (list, tuple) and len(value) == len(model):
        return type(value)(_ordered_like(one, other) for one, other in zip(value, model, strict=True))
    return value
