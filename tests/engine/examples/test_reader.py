"""One reader for the user's example functions."""

import dataclasses
import functools

import pytest
import torch
from torch import Tensor

from ace_studio.engine.examples.reader import limit_examples, read_examples, split_pair
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import LimitsChoice


@dataclasses.dataclass
class Held:
    x: Tensor


def read(function, limit=3):
    return read_examples(function, role="tracing", where="[inputs] tracing", limit=limit, remedy="Return one.")


def test_an_endless_generator_is_read_up_to_the_limit() -> None:
    def rows():
        while True:
            yield torch.ones(1)

    assert len(read(rows)) == 3


def test_beyond_the_number_that_a_job_may_read_the_function_is_named_with_its_line() -> None:
    def rows():
        while True:
            yield torch.ones(1)

    limit_examples(5)
    try:
        assert len(read(rows, limit=5)) == 5
        with pytest.raises(AceError) as caught:
            read(functools.wraps(rows)(lambda: iter(rows())), limit=6)
    finally:
        limit_examples(LimitsChoice().examples)
    problem = caught.value.problem
    assert "function rows() gave more than 5 examples" in problem.what and "[limits] examples" in problem.remedy
    assert problem.where == f"{__file__}:{rows.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (torch.ones(3, 2), 1),
        ((torch.ones(3), torch.ones(3)), 1),
        ({"x": torch.ones(3)}, 1),
        ([torch.ones(3), torch.ones(3)], 2),
        (((torch.ones(3),), (torch.ones(4),)), 2),
    ],
)
def test_one_tensor_one_tuple_of_tensors_or_one_dictionary_is_one_example(value: object, count: int) -> None:
    assert len(read(lambda: value)) == count


def test_tensors_inside_of_a_dataclass_are_seen() -> None:
    (example,) = read(lambda: [(Held(torch.ones(2)),)])
    assert len(example.tensors()) == 1


@pytest.mark.parametrize(
    ("function", "code"),
    [(list, ErrorCode.NO_DATA), (lambda: 3, ErrorCode.BAD_INPUT), (lambda: 1 / 0, ErrorCode.USER_CODE)],
)
def test_what_is_no_list_of_examples_is_told_with_the_key_and_what_to_do(function, code) -> None:
    with pytest.raises(AceError) as caught:
        read(function)
    problem = caught.value.problem
    assert (problem.code, problem.where) == (code, "[inputs] tracing")
    assert problem.remedy


def test_a_pair_may_be_a_tuple_a_list_or_an_example():
    x, y = torch.ones(2), torch.zeros(2)
    for value in ((x, y), [x, y], Example(args=(x, y))):
        inputs, label = split_pair(value)
        assert inputs.args == (x,) and label is y
    inputs, label = split_pair(({"ids": x}, 3))
    assert inputs.kwargs["ids"] is x and label == 3
    assert all(split_pair(value) is None for value in (x, (x,), (x, y, x), {"x": x, "y": y}, Example(kwargs={"x": x})))


def test_an_example_of_lists_without_end_is_refused() -> None:
    nested: list[object] = [torch.zeros(1)]
    for _ in range(64):
        nested = [nested, nested]
    with pytest.raises(AceError, match="have no end"):
        read_examples(lambda: [(nested,)], role="tracing", where="[inputs] tracing", limit=4, remedy="Return one.")
