"""Examples from files of arrays, by the names of the inputs. Nothing in the files is ever run."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.leaves import Parameters, dtype_name, forward_parameters
from ace_studio.engine.examples.rows import call_of, name_problems
from ace_studio.engine.examples.wanted import WantedInput, choose_indices, filled_form
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import Subset

ReadContent = Callable[[Path], Mapping[str, Any]]
"""Reads a file of arrays: name -> tensor, or list of tensors; what has no name stands under an empty one."""
LABEL_NAMES = ("labels", "label", "targets", "target", "y")
"""Names of arrays with the right outputs instead of inputs; the first one in the file counts."""
_FEW = 4
"""Samples of the second example to trace; the first has one, so that the batch is free."""


def _whole_calls(content: Mapping[str, Any]) -> Sequence[object] | None:
    """The calls of a file that holds a list of tuples, dicts or tensors without names; None for any other file."""
    listed = content.get("")
    is_calls = isinstance(listed, list | tuple) and not all(isinstance(one, Tensor) for one in listed)
    return listed if is_calls else None


def examples_from_arrays(
    arrays: Mapping[str, Any],
    form: Example,
    inputs: Sequence[WantedInput],
    *,
    samples: int,
    subset: Subset = Subset.FIRST,
    where: str = "",
) -> tuple[Example, ...]:
    """Calls like ``form`` with tensors out of arrays whose first axis counts the samples.

    An array [N, ...] is cut into batches of the traced size (1 if the batch is free); an array with one dimension more
    than the input, or a list, holds whole inputs. A file of a list holds examples: tuples, dicts or tensors.

    Args:
        arrays: Name -> tensor, or list of tensors; what a file holds without names stands under an empty one.
        form: A call of the model; its tensors are replaced, everything else stays.
        inputs: One per tensor of ``form``, in order.
        samples: At most so many examples.
        subset: Which, if there are more.
        where: The recipe's key that names the file.

    Raises: AceError(BAD_INPUT), with a problem for every array that does not fit its input.
    """
    if (calls := _whole_calls(arrays)) is not None:
        return tuple(Example.of(calls[at]) for at in choose_indices(len(calls), samples=samples, subset=subset))
    given = _by_input(arrays, inputs, where)
    batches, problems = {}, []
    for wanted in inputs:
        problem = _misfit(given[wanted.name], wanted)
        if problem:
            problems.append(_bad_array(wanted, problem, where))
        else:
            batches[wanted.name] = _batches(given[wanted.name], wanted)
    if problems:
        raise AceError(*problems)
    counts = {name: len(one) for name, one in batches.items()}
    if len(set(counts.values())) > 1:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            "The arrays do not hold equally many samples",
            why=", ".join(f"{name}: {count}" for name, count in counts.items()),
            remedy="Give every input as many samples; the first axis counts them.",
            where=where,
        )
    chosen = choose_indices(min(counts.values()), samples=samples, subset=subset)
    return tuple(filled_form(form, [batches[one.name][index] for one in inputs]) for index in chosen)


def _by_input(arrays: Mapping[str, Any], inputs: Sequence[WantedInput], where: str) -> dict[str, Any]:
    """Name of each input -> its array; a model of one input takes the only array under any name."""
    wanted = {one.name for one in inputs}
    usable = {name: value for name, value in arrays.items() if name in wanted or name not in LABEL_NAMES}
    if len(inputs) == 1 and len(usable) == 1:
        return {inputs[0].name: next(iter(usable.values()))}
    lacking = [one for one in inputs if one.name not in usable]
    if lacking:
        raise AceError(
            *(
                Problem(
                    code=ErrorCode.BAD_INPUT,
                    what=f"There is no array '{one.name}' for the input of this name ({one.words})",
                    why="the file holds " + (", ".join(name or "one array" for name in usable) or "nothing"),
                    remedy="Name the arrays like the inputs of the model.",
                    where=where,
                )
                for one in lacking
            )
        )
    return {one.name: usable[one.name] for one in inputs}


def _misfit(value: Any, wanted: WantedInput) -> str:
    """What is wrong with an array for an input; empty if it fits."""
    parts = value if isinstance(value, list | tuple) else [value]
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        return f"it is {type(value).__name__}, not an array" if parts else "it is an empty list"
    if isinstance(value, Tensor) and not value.dim():
        return "it is a single number"
    for part in parts:
        if part.is_floating_point() != wanted.template.is_floating_point() or part.is_complex():
            return f"its numbers are {dtype_name(part)}"
        rank = wanted.template.dim()
        is_whole = isinstance(value, list | tuple) or part.dim() == rank + 1
        shape = part.shape[1:] if is_whole and part.dim() == rank + 1 else part.shape
        wrong = len(shape) != rank or any(
            size != wanted.template.shape[index]
            for index, size in enumerate(shape)
            if index not in wanted.free and (index > 0 or is_whole)
        )
        if wrong:
            return f"its shape is {list(part.shape)}"
        if part.dim() and not len(part):
            return "it is empty"
    return ""


def _bad_array(wanted: WantedInput, problem: str, where: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_INPUT,
        what=f"The array '{wanted.name}' does not fit the input of this name",
        why=f"{problem}; expected is {wanted.words} with the samples along the first axis",
        remedy="Store it in this shape and type, or trace with examples of its size so that the dimension is free.",
        where=where,
    )


def _batches(value: Any, wanted: WantedInput) -> list[Tensor]:
    """The array as inputs of the model, one per sample; samples that fill no batch are left out."""
    dtype = wanted.template.dtype
    if isinstance(value, list | tuple) or value.dim() == wanted.template.dim() + 1:
        return [part.to(dtype) for part in value]
    batch = 1 if 0 in wanted.free else wanted.template.shape[0]
    return [value[start : start + batch].to(dtype) for start in range(0, len(value) - batch + 1, batch)]


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
    if (whole := _whole_calls(content)) is not None:
        return tuple(Example.of(one) for one in whole)
    parameters = forward_parameters(module)
    given = _by_name(content, parameters)
    problems = name_problems(given, parameters, giver=giver, where=where)
    if problems:
        raise AceError(*problems)
    calls = _calls(given, giver, where)
    return tuple(call_of({name: _fitting(one, module) for name, one in call.items()}, parameters) for call in calls)


def _by_name(content: Mapping[str, Any], parameters: Parameters) -> dict[str, Any]:
    """The content without labels; a single array goes to the first argument, whatever its name."""
    given = {name: value for name, value in content.items() if name in parameters or name not in LABEL_NAMES}
    names = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    if len(given) == 1 and names and next(iter(given)).partition(".")[0] not in names:
        return {names[0]: next(iter(given.values()))}
    return given


def _calls(given: Mapping[str, Any], giver: str, where: str) -> list[dict[str, Tensor]]:
    """Name -> tensor, for each call."""
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
    return [{name: value[:size] for name, value in given.items()} for size in (1, min(count, _FEW))]


def _words(value: Any) -> str:
    return f"{len(value)} in a list" if isinstance(value, list | tuple) else f"one {type(value).__name__}"


def _fitting(value: Tensor, module: nn.Module) -> Tensor:
    """float64 arrays, NumPy's default, as float32 if the model has no float64 weights."""
    has_double = any(one.dtype is torch.float64 for one in module.parameters())
    return value.float() if value.dtype is torch.float64 and not has_double else value
