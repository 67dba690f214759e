"""Examples from the rows of the shape table, and calls from named tensors."""

import difflib
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.examples import leaves
from ace_studio.engine.examples.reader import read_examples
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.tensors import TensorSpec, Values, ValueSource, read_values

ReadTensor = Callable[[Path], Tensor]
_LARGEST_RANDOM_INTEGER = 100
_SEED = 20240607
_MOST_CALLS = 64
_ReadCalls = Callable[[], list[dict[str, Any]]]


def examples_from_rows(
    loaded: LoadedModel, recipe: Recipe, folder: Path, read_tensor: ReadTensor
) -> tuple[Example, ...]:
    """One example per row of the recipe. Raises: AceError(BAD_INPUT), with a problem for every name that is wrong."""
    parameters = leaves.forward_parameters(loaded.module)
    problems = [
        problem
        for number, row in enumerate(recipe.inputs.rows, start=1)
        for problem in name_problems(row, parameters, giver=f"row {number}", where=f"[[inputs.rows]] {number}")
    ]
    if problems:
        raise AceError(*problems)
    calls = cache(partial(_calibration_calls, loaded.data.calibration, parameters))
    return tuple(
        call_of(
            {name: _make(spec, number, name, folder, read_tensor, calls) for name, spec in row.items()},
            parameters,
            tuples=recipe.inputs.tuples,
        )
        for number, row in enumerate(recipe.inputs.rows)
    )


def _calibration_calls(
    function: Callable[[], Iterable[object]] | None, parameters: leaves.Parameters
) -> list[dict[str, Any]]:
    """The inputs of every calibration example by name. Raises: AceError(NO_DATA) if there is none."""
    where, remedy = "[calibration] inputs", "Name a calibration function or file, or choose other values."
    if function is None:
        what = "Values are to come from the calibration data, but there is none"
        raise AceError.of(ErrorCode.NO_DATA, what, remedy=remedy, where=where)
    found = read_examples(function, role="calibration", where=where, limit=_MOST_CALLS, remedy=remedy)
    return [{leaf.name: leaf.value for leaf in leaves.named_leaves(one, parameters)} for one in found]


def name_problems(names: Iterable[str], parameters: leaves.Parameters, *, giver: str, where: str) -> list[Problem]:
    """Names that forward does not take, and inputs that it needs and that are not among them.

    Args:
        names: Names of inputs, dotted inside of containers.
        parameters: Those of forward; if there are none, every name is accepted.
        giver: What gives them, for messages: ``row 1``, ``a.npz``.
        where: The recipe's key.
    """
    if not parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return []
    given = [name.partition(".")[0] for name in names]
    takes = list(parameters)
    problems = []
    for name in dict.fromkeys(given):
        if name in takes or (name == "args" and leaves.variadic_name(parameters)):
            continue
        close = difflib.get_close_matches(name, takes, n=1)
        problems.append(
            Problem(
                code=ErrorCode.BAD_INPUT,
                what=f"forward has no input '{name}'",
                why="it takes " + (", ".join(takes) or "nothing"),
                remedy=f"Did you mean '{close[0]}'?" if close else "Use one of these names.",
                where=where,
            )
        )
    lacking = [
        name
        for name, one in parameters.items()
        if one.default is inspect.Parameter.empty and not leaves.is_variadic(one) and name not in given
    ]
    if lacking and not problems:
        problems.append(
            Problem(
                code=ErrorCode.BAD_INPUT,
                what=f"{giver[0].upper() + giver[1:]} lacks the input {', '.join(repr(name) for name in lacking)}",
                why="forward takes it and has no default for it",
                remedy=f"Add it to {giver}.",
                where=where,
            )
        )
    return problems


def call_of(values: Mapping[str, Any], parameters: leaves.Parameters, *, tuples: Collection[str] = ()) -> Example:
    """A call with these values: dotted names become containers, positional parameters are passed by position.

    Numbered items become a list, and a tuple where ``tuples`` names the input.
    """
    nested = _nest(values, tuples)
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    variadic = nested.pop(leaves.variadic_name(parameters) or "args", [])
    args: list[Any] = []
    for name, kind in kinds.items():
        if kind not in leaves.BY_POSITION or name not in nested:
            break
        args.append(nested.pop(name))
    extra = variadic if isinstance(variadic, list) else [variadic]
    ordered = [name for name in kinds if name in nested] + [name for name in nested if name not in kinds]
    return Example(args=(*args, *extra), kwargs={name: nested[name] for name in ordered})


def _nest(values: Mapping[str, Any], tuples: Collection[str]) -> dict[str, Any]:
    """``{"batch.ids": t, "state.0": u}`` -> ``{"batch": {"ids": t}, "state": [u]}``."""
    nested: dict[str, Any] = {}
    for name, tensor in values.items():
        *parents, last = name.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = tensor
    return {name: _lists(value, name, tuples) for name, value in nested.items()}


def _lists(value: Any, name: str, tuples: Collection[str]) -> Any:
    """Turn dictionaries whose keys are 0, 1, 2, ... into lists, which is how states are passed, or into tuples."""
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(item, f"{name}.{key}", tuples) for key, item in value.items()}
    if set(inner) == {str(index) for index in range(len(inner))}:
        items = [inner[str(index)] for index in range(len(inner))]
        return tuple(items) if name in tuples else items
    return inner


def _make(
    spec: TensorSpec, number: int, name: str, folder: Path, read_tensor: ReadTensor, calls: _ReadCalls
) -> Tensor | bool | int | float | str | None:
    """The value of one cell: a tensor, or a plain value."""
    where = f"[[inputs.rows]] {number + 1}, {name}"
    try:
        values = read_values(spec.values)
    except ValueError as error:
        what = f"The values of '{name}' cannot be read: {error}"
        raise AceError.of(ErrorCode.BAD_INPUT, what, remedy="Correct the row.", where=where) from error
    if values.is_plain:
        return values.plain
    dtype = _dtype(spec.dtype, where)
    if any(size < 0 for size in spec.shape):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The shape {'x'.join(map(str, spec.shape))} has a negative size",
            remedy="Give every dimension a size; a second row with another size makes it dynamic.",
            where=where,
        )
    if values.source is ValueSource.CALIBRATION:
        given = calls()
        return _fitted(given[number % len(given)], spec.shape, name, where).to(dtype)
    if values.source is ValueSource.FILE:
        return _from_file(spec, dtype, folder, read_tensor, where=where)
    return made_up_tensor(spec, number=number)


def made_up_tensor(spec: TensorSpec, *, number: int) -> Tensor:
    """The tensor of a cell in the row of this number, for values of `MADE_UP`; the same one at every call."""
    values, dtype = read_values(spec.values), _dtype(spec.dtype, "")
    match values.source:
        case ValueSource.ZEROS | ValueSource.ONES:
            return torch.full(spec.shape, int(values.source is ValueSource.ONES), dtype=dtype)
        case ValueSource.CONSTANT:
            return torch.full(spec.shape, values.numbers[0]).to(dtype)
        case ValueSource.RANGE:
            return torch.arange(math.prod(spec.shape)).reshape(spec.shape).to(dtype)
    return _random(spec.shape, dtype, values, seed=_SEED + number)


def _fitted(given: Mapping[str, Any], shape: tuple[int, ...], name: str, where: str) -> Tensor:
    """The input of a call, cropped, or repeated from its start, to a shape; as it is for an empty one."""
    tensor = given.get(name)
    if not isinstance(tensor, Tensor) or (shape and len(shape) != tensor.dim()):
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"The calibration data have no tensor '{name}' of {len(shape)} dimensions",
            why="they give "
            + (", ".join(f"{key} {list(getattr(one, 'shape', ()))}" for key, one in given.items()) or "nothing"),
            remedy="Give the row as many sizes, or choose other values for this input.",
            where=where,
        )
    for dim, size in enumerate(shape):
        tensor = leaves.resized(tensor, dim, size)
    return tensor.contiguous()


def _random(shape: tuple[int, ...], dtype: torch.dtype, values: Values, *, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if values.source is ValueSource.NORMAL:
        mean, deviation = values.numbers
        return (torch.randn(shape, generator=generator) * deviation + mean).to(dtype)
    if values.numbers:
        low, high = values.numbers
        if dtype.is_floating_point:
            return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
        return torch.randint(math.ceil(low), math.floor(high) + 1, shape, generator=generator).to(dtype)
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        base = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(shape, generator=generator, dtype=base).to(dtype)
    return torch.randint(0, _LARGEST_RANDOM_INTEGER, shape, generator=generator).to(dtype)


def _from_file(spec: TensorSpec, dtype: torch.dtype, folder: Path, read_tensor: ReadTensor, *, where: str) -> Tensor:
    tensor = read_tensor(folder / spec.values)
    if spec.shape and tuple(tensor.shape) != spec.shape:
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"{spec.values} holds a tensor of another shape than the row says",
            why=f"it is {'x'.join(map(str, tensor.shape))}, the row says {'x'.join(map(str, spec.shape))}",
            remedy="Correct the row's shape or name another file.",
            where=where,
        )
    return tensor.to(dtype)


def _dtype(name: str, where: str) -> torch.dtype:
    found = getattr(torch, name.removeprefix("torch."), None) if re.fullmatch(r"[\w.]+", name) else None
    if isinstance(found, torch.dtype):
        return found
    known = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
    close = difflib.get_close_matches(name, known, n=1)
    why, remedy = "known are " + ", ".join(known), f"Did you mean '{close[0]}'?" if close else "Use one of these."
    raise AceError.of(ErrorCode.BAD_INPUT, f"'{name}' is no element type", why=why, remedy=remedy, where=where)
