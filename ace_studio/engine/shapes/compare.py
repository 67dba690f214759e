"""Compares examples leaf by leaf: which dimensions differ, and which the recipe makes dynamic or static."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ace_studio.engine.examples import leaves
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.tensors import DimChoice

_PLAIN = (bool, int, float, complex, str, bytes, type(None), Tensor, torch.dtype, torch.device)


@dataclass(frozen=True)
class InputDims:
    """One tensor input over all examples."""

    name: str
    dtype: str
    sizes: tuple[tuple[int, ...], ...]
    """Per dimension: its size in every example, in order."""
    choices: tuple[DimChoice, ...]
    """Per dimension: the choice of the recipe."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    def is_dynamic(self, index: int) -> bool:
        """Whether the dimension must stay dynamic: it differs, or the recipe asks for it."""
        if self.choices[index] is DimChoice.AUTO:
            return len(set(self.sizes[index])) > 1
        return self.choices[index] is DimChoice.DYNAMIC

    def dynamic_dims(self) -> list[int]:
        """Indices of the dynamic dimensions."""
        return [index for index in range(self.rank) if self.is_dynamic(index)]


def compare_examples(
    module: nn.Module, examples: Sequence[Example], *, choices: Mapping[str, DimChoice]
) -> tuple[InputDims, ...]:
    """The tensor inputs with the sizes that every dimension takes, in the order of ``Example.tensors``.

    Raises: AceError(BAD_INPUT) with every difference that no graph can hold: nesting, rank, dtype, plain values;
        AceError(RECIPE) for a choice that names no dimension or contradicts the examples.
    """
    parameters = leaves.forward_parameters(module)
    rows = [leaves.named_leaves(example, parameters) for example in examples]
    _check_structures(examples, rows)
    columns = list(zip(*rows, strict=True))
    problems = [problem for column in columns if (problem := _difference(column)) is not None]
    if problems:
        raise AceError(*problems)
    found = tuple(_input_dims(column, choices) for column in columns if column[0].tensor is not None)
    _check_choices(found, choices)
    return found


def _check_structures(examples: Sequence[Example], rows: Sequence[list[leaves.Leaf]]) -> None:
    first = leaves.structure(examples[0])
    for number, example in enumerate(examples[1:], start=2):
        if leaves.structure(example) == first:
            continue
        names, others = [leaf.name for leaf in rows[0]], [leaf.name for leaf in rows[number - 1]]
        lacking = [name for name in names if name not in others]
        extra = [name for name in others if name not in names]
        why = "; ".join(
            text
            for text in (
                f"example {number} has no {', '.join(lacking)}" if lacking else "",
                f"example 1 has no {', '.join(extra)}" if extra else "",
            )
            if text
        )
        raise AceError.of(
            ErrorCode.BAD_INPUT,
            f"Example {number} does not have the same inputs as example 1",
            why=why or "the same inputs are nested, ordered or passed (by position or by name) in different ways",
            remedy="Give every example the same inputs, in the same nesting; only sizes and numbers may differ.",
            where="[inputs]",
        )


def _difference(column: Sequence[leaves.Leaf]) -> Problem | None:
    """Why the values of one leaf cannot be one input of one graph; None if they can."""
    first = column[0]
    for number, leaf in enumerate(column[1:], start=2):
        if text := _pair_difference(first, leaf, number):
            what, why, remedy = text
            return Problem(code=ErrorCode.BAD_INPUT, what=what, why=why, remedy=remedy, where=f"[inputs] {first.name}")
    return None


def _pair_difference(first: leaves.Leaf, leaf: leaves.Leaf, number: int) -> tuple[str, str, str] | None:
    one, other = first.tensor, leaf.tensor
    if one is None or other is None:
        if one is other is None and leaves.is_same_value(first.value, leaf.value):
            return None
        if (first.value is None) != (leaf.value is None):
            return _optional_difference(first, leaf, number)
        if not isinstance(first.value, _PLAIN):
            return (
                f"Input '{first.name}' is {_article(type(first.value).__name__)}, and another one in every example",
                "torch does not see into objects of this class, so a graph would hold the first one fixed",
                "Pass what it holds as a dictionary, a tuple, a named tuple or a dataclass.",
            )
        return (
            f"Input '{first.name}' is {_kind(first)} in example 1 and {_kind(leaf)} in example {number}",
            "a graph fixes everything that is not a tensor at the value it was traced with",
            "Use the same value in all examples and make one recipe per value, or pass it as a tensor.",
        )
    if one.dim() != other.dim():
        return (
            f"Input '{first.name}' has {one.dim()} dimensions in example 1 and {other.dim()} in example {number}",
            "the size of a dimension may change from call to call, the number of dimensions may not",
            "Give it the same number of dimensions in every example.",
        )
    if one.dtype != other.dtype:
        own, others = leaves.dtype_name(one), leaves.dtype_name(other)
        return (
            f"Input '{first.name}' is {own} in example 1 and {others} in example {number}",
            "a graph is made for one element type",
            "Convert the examples to one type.",
        )
    return None


def _optional_difference(first: leaves.Leaf, leaf: leaves.Leaf, number: int) -> tuple[str, str, str]:
    """One example gives the input, the other leaves it out or gives None."""
    with_it, without = (1, number) if leaf.value is None else (number, 1)
    why = f"without it '{first.name}' is None, forward may take another path then, and a graph holds one path"
    remedy = (
        "Give it in all examples (a mask that hides nothing is all ones) or in none. If you need both, make two "
        "recipes that differ in it: they give two graphs."
    )
    return f"Input '{first.name}' is given by example {with_it} and not by example {without}", why, remedy


def _article(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"


def _kind(leaf: leaves.Leaf) -> str:
    return "a tensor" if leaf.tensor is not None else repr(leaf.value)[:60]


def _input_dims(column: Sequence[leaves.Leaf], choices: Mapping[str, DimChoice]) -> InputDims:
    tensors = [leaf.tensor for leaf in column if leaf.tensor is not None]
    name = column[0].name
    rank = tensors[0].dim()
    return InputDims(
        name=name,
        dtype=leaves.dtype_name(tensors[0]),
        sizes=tuple(tuple(tensor.shape[index] for tensor in tensors) for index in range(rank)),
        choices=tuple(choices.get(f"{name}.{index}", DimChoice.AUTO) for index in range(rank)),
    )


def _check_choices(inputs: Sequence[InputDims], choices: Mapping[str, DimChoice]) -> None:
    known = {f"{one.name}.{index}": one.sizes[index] for one in inputs for index in range(one.rank)}
    problems = []
    for name, choice in choices.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            problems.append(
                Problem(
                    code=ErrorCode.RECIPE,
                    what=f"There is no dimension '{name}'",
                    why="the inputs have the dimensions " + ", ".join(known),
                    remedy=f"Did you mean '{close[0]}'?" if close else "Use one of them.",
                    where=f"[inputs.dims] {name}",
                )
            )
        elif choice is DimChoice.STATIC and len(set(known[name])) > 1:
            sizes = ", ".join(map(str, sorted(set(known[name]))))
            problems.append(
                Problem(
                    code=ErrorCode.RECIPE,
                    what=f"Dimension '{name}' is to be static, but the examples differ in it",
                    why=f"it has the sizes {sizes}",
                    remedy="Give it one size in all examples, or make it auto.",
                    where=f"[inputs.dims] {name}",
                )
            )
    if problems:
        raise AceError(*problems)
