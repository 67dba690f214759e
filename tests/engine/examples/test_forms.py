"""By position or by name: the same call, and examples that mix both are compared by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.forms import in_form_of, in_one_form
from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.shapes import compare_examples
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Recipe


class Masked(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None, scale: float = 1.0) -> Tensor:
        return x * scale if mask is None else x * mask * scale


class Variadic(nn.Module):
    def forward(self, first: Tensor, *others: Tensor, **named: Tensor) -> Tensor:
        return sum((*others, *named.values()), first)


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape)


def gathered(*values: object) -> tuple[Example, ...]:
    loaded = LoadedModel(module=Masked(), source=Path(), sha256="", data=DataSources(tracing=lambda: list(values)))
    return gather_examples(loaded, Recipe(), Path(), read_tensor=lambda path: ones(1), read_content=lambda path: {})


def compared(*values: object):
    return compare_examples(Masked(), gathered(*values), choices={})


def test_examples_by_position_and_by_name_are_compared_by_name() -> None:
    x, mask = compared((ones(1, 4), ones(1, 4)), {"mask": ones(3, 4), "x": ones(3, 4)})
    assert (x.name, x.sizes) == ("x", ((1, 3), (4, 4)))
    assert (mask.name, mask.dynamic_dims()) == ("mask", [0])


def test_a_default_that_one_example_writes_out_is_no_difference() -> None:
    examples = gathered((ones(2, 4), ones(2, 4)), {"x": ones(3, 4), "mask": ones(3, 4), "scale": 1.0})
    assert [len(one.tensors()) for one in examples] == [2, 2]
    assert len(compare_examples(Masked(), examples, choices={})) == 2


def test_an_optional_input_that_only_some_examples_give_is_told_with_both_ways_out() -> None:
    with pytest.raises(AceError) as caught:
        compared((ones(2, 4),), {"x": ones(3, 4), "mask": ones(3, 4)})
    problem = caught.value.problem
    assert problem.code is ErrorCode.BAD_INPUT
    assert problem.what == "Input 'mask' is given by example 2 and not by example 1"
    assert "two recipes" in problem.remedy
    assert "all ones" in problem.remedy


def test_the_order_of_keys_inside_of_dictionaries_is_no_difference() -> None:
    class Nested(nn.Module):
        def forward(self, batch):
            return batch["a"] + batch["b"]

    first = Example(({"a": ones(1), "b": ones(2)},))
    second = Example(({"b": ones(3), "a": ones(4)},))
    _, again = in_one_form((first, second), Nested())
    assert [one.numel() for one in again.tensors()] == [4, 3]


def test_variadic_arguments_keep_their_places() -> None:
    first = Example((ones(1), ones(2)), {"extra": ones(3)})
    second = Example((), {"extra": ones(5), "first": ones(4)})
    given, other = in_one_form((first, second), Variadic())
    assert [one.numel() for one in given.tensors()] == [1, 2, 3]
    assert [one.numel() for one in other.tensors()] == [4, 5]


def test_a_call_takes_the_form_of_another_one() -> None:
    form = Example(kwargs={"mask": ones(1), "x": ones(2)})
    call = in_form_of(Example((ones(3), ones(4))), form, Masked())
    assert list(call.kwargs) == ["mask", "x"]
    assert [one.numel() for one in call.tensors()] == [4, 3]


def test_a_call_with_other_arguments_stays_as_it_is() -> None:
    call = Example((ones(3), ones(3)))
    assert in_form_of(call, Example((ones(1),)), Masked()) is call
    unknown = Example(kwargs={"y": ones(3)})
    assert in_one_form((call, unknown), Masked())[1] is unknown


def test_objects_that_torch_cannot_see_into_are_named_with_what_to_pass_instead() -> None:
    class Opaque:
        def __init__(self) -> None:
            held = ones(2)
            self.read = lambda: held

    with pytest.raises(AceError) as caught:
        compared((Opaque(),), (Opaque(),))
    assert "an Opaque" in caught.value.problem.what
    assert "dataclass" in caught.value.problem.remedy
