"""Examples to trace with out of what a file holds: nobody has called the model yet, so only names can be compared."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.data_files import LABEL_NAMES
from ace_studio.engine.examples.leaves import Parameters, forward_parameters
from ace_studio.engine.examples.rows import call_of, name_problems
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode

BATCH = 4
"""Samples of the second example; the first has one, so that the batch is free."""


def stored_examples(content: Mapping[str, Any], module: nn.Module, *, giver: str, where: str) -> tuple[Example, ...]:
    """Calls of a model with what a file holds.

    Arrays whose first axes are equally long hold samples: one call gets the first of them, another the first few.
    Arrays whose first axes differ are one call as they are. Lists hold whole inputs, one per call; a list of tuples,
    dicts or tensors without a name holds the calls themselves. float64 becomes float32 if the model has none.

    Args:
        content: Name of forward's argument -> tensor, or list of tensors; what has no name stands under an empty one.
        module: The model.
        giver: The file, for messages.
        where: The recipe's key.

    Raises: AceError(BAD_INPUT), with a problem for every name that does not fit.
    """
    listed = content.get("")
    if isinstance(listed, list | tuple) and not all(isinstance(one, Tensor) for one in listed):
        return tuple(Example.of(one) for one in listed)
    parameters = forward_parameters(module)
    given = _by_name(content, parameters)
    problems = name_problems(given, parameters, giver=giver, where=where)
    if problems:
        raise AceError(*problems)
    calls = _calls(given, giver, where)
    return tuple(call_of({name: _fitting(one, module) for name, one in call.items()}, parameters) for call in calls)


def _by_name(content: Mapping[str, Any], parameters: Parameters) -> dict[str, Any]:
    """Without labels; the only array goes to the first argument, whatever its name."""
    given = {name: value for name, value in content.items() if name in parameters or name not in LABEL_NAMES}
    names = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    if len(given) == 1 and names and next(iter(given)).partition(".")[0] not in names:
        return {names[0]: next(iter(given.values()))}
    return given


def _calls(given: Mapping[str, Any], giver: str, where: str) -> list[dict[str, Tensor]]:
    """One table of names and tensors per call."""
    lists = {name: value for name, value in given.items() if isinstance(value, list | tuple)}
    if lists:
        lengths = {len(value) for value in lists.values()}
        is_whole = all(isinstance(one, Tensor) for value in lists.values() for one in value)
        if len(lists) != len(given) or len(lengths) != 1 or not is_whole:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"The lists in {giver} are not one per input, equally long, of tensors",
                why=", ".join(f"{name}: {_words(value)}" for name, value in given.items()),
                remedy="Store a list of tensors for every input, one per call, or one array for each.",
                where=where,
            )
        return [{name: value[index] for name, value in lists.items()} for index in range(lengths.pop())]
    counts = {len(value) if value.dim() else 0 for value in given.values()}
    if len(counts) != 1 or counts <= {0, 1}:
        return [dict(given)]
    count = counts.pop()
    return [{name: value[:size] for name, value in given.items()} for size in (1, min(count, BATCH))]


def _words(value: Any) -> str:
    return f"{len(value)} in a list" if isinstance(value, list | tuple) else f"one {type(value).__name__}"


def _fitting(value: Tensor, module: nn.Module) -> Tensor:
    """Numbers of NumPy's usual type in the type of the model's."""
    has_double = any(one.dtype is torch.float64 for one in module.parameters())
    return value.float() if value.dtype is torch.float64 and not has_double else value
