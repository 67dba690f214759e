"""Examples from rows of the shape table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.gather import gather_examples
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from tests.engine.examples.test_gather import TwoInputs, gather, loaded, never_read, row


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], states: list[Tensor]) -> Tensor:
        return batch["ids"] + states[0] + states[1]


class Variadic(nn.Module):
    def forward(self, first: Tensor, *others: Tensor) -> Tensor:
        return sum(others, first)


def test_rows_become_the_arguments_of_forward_in_its_own_order() -> None:
    (example,) = gather(TwoInputs(), {"state": row(3, values="zeros"), "x": row(3, values="range")})
    assert torch.equal(example.args[0], torch.tensor([0.0, 1.0, 2.0]))
    assert torch.equal(example.args[1], torch.zeros(3))


def test_random_rows_are_the_same_every_time_and_differ_between_examples() -> None:
    cells = [{"x": row(4), "state": row(4)}, {"x": row(4), "state": row(4)}]
    first, again = gather(TwoInputs(), *cells), gather(TwoInputs(), *cells)
    assert torch.equal(first[0].args[0], again[0].args[0])
    assert not torch.equal(first[0].args[0], first[1].args[0])


@pytest.mark.parametrize(("dtype", "low", "high"), [("int64", 0, 99), ("uint8", 0, 99), ("bool", 0, 1)])
def test_random_integers_stay_in_their_range(dtype: str, low: int, high: int) -> None:
    (example,) = gather(TwoInputs(), {"x": row(500, dtype=dtype), "state": row(1)})
    x = example.args[0]
    assert str(x.dtype) == f"torch.{dtype}"
    assert int(x.min()) >= low
    assert int(x.max()) <= high
    assert len(x.unique()) > 1


def test_dotted_row_names_become_dictionaries_and_lists() -> None:
    (example,) = gather(Nested(), {"batch.ids": row(2), "states.0": row(2), "states.1": row(2)})
    batch, states = example.args
    assert list(batch) == ["ids"]
    assert isinstance(states, list)
    assert len(states) == 2


def test_rows_for_variadic_arguments_are_passed_by_position() -> None:
    (example,) = gather(Variadic(), {"first": row(2), "others.0": row(2), "others.1": row(2)})
    assert len(example.args) == 3


def test_a_row_for_an_unknown_input_names_the_nearest_one() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), {"x": row(2), "stat": row(2)})
    problem = caught.value.problem
    assert problem.code is ErrorCode.BAD_INPUT
    assert "'stat'" in problem.what
    assert "'state'" in problem.remedy


def test_a_row_that_lacks_a_required_input_says_which() -> None:
    with pytest.raises(AceError, match="lacks the input 'state'"):
        gather(TwoInputs(), {"x": row(2)})


def test_an_unknown_element_type_names_the_nearest_one() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), {"x": row(2, dtype="flaot32"), "state": row(2)})
    assert "float32" in caught.value.problem.remedy


def test_a_file_in_a_row_is_read_relative_to_the_recipe() -> None:
    asked: list[Path] = []

    def read(path: Path) -> Tensor:
        asked.append(path)
        return torch.ones(2, dtype=torch.float64)

    (example,) = gather(TwoInputs(), {"x": row(2, values="data/x.npy"), "state": row(2)}, read_tensor=read)
    assert asked == [Path("/recipes/data/x.npy")]
    assert example.args[0].dtype is torch.float32


def test_a_file_of_another_shape_than_the_row_is_refused() -> None:
    with pytest.raises(AceError, match="another shape"):
        gather(TwoInputs(), {"x": row(3, values="x.npy"), "state": row(2)}, read_tensor=lambda path: torch.ones(2))


@pytest.mark.parametrize(
    ("values", "dtype", "low", "high"),
    [
        ("random 0..6", "int64", 0, 6),
        ("random -3..-1", "int32", -3, -1),
        ("random -0.5..0.5", "float32", -0.5, 0.5),
        ("constant 3", "float32", 3, 3),
    ],
)
def test_values_stay_within_the_bounds_that_a_row_gives_and_reach_both(values, dtype, low, high) -> None:
    (example,) = gather(TwoInputs(), {"x": row(500, dtype=dtype, values=values), "state": row(1)})
    x = example.args[0]
    assert str(x.dtype) == f"torch.{dtype}"
    assert low <= float(x.min()) <= low + 0.1
    assert high - 0.1 <= float(x.max()) <= high


def test_normal_values_have_the_mean_and_the_deviation_that_a_row_gives() -> None:
    (example,) = gather(TwoInputs(), {"x": row(4000, values="normal 5 0.1"), "state": row(1)})
    assert float(example.args[0].mean()) == pytest.approx(5, abs=0.01)
    assert float(example.args[0].std()) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("values", "wanted"), [("value 2.5", 2.5), ("value 3", 3), ("value True", True), ("value 'fast'", "fast")]
)
def test_a_plain_value_reaches_forward_as_it_is(values, wanted) -> None:
    (example,) = gather(TwoInputs(), {"x": row(2), "state": row(2), "scale": row(values=values)})
    assert example.args[2] == wanted
    assert type(example.args[2]) is type(wanted)


def test_none_reaches_forward_as_none() -> None:
    (example,) = gather(TwoInputs(), {"x": row(2), "state": row(values="none")})
    assert example.args[1] is None


def test_numbered_items_are_a_tuple_where_the_recipe_says_so() -> None:
    cells = {"batch.ids": row(2), "states.0": row(2), "states.1": row(2)}
    recipe = Recipe(inputs=InputsChoice(rows=(cells,), tuples=("states",)))
    (example,) = gather_examples(
        loaded(Nested()), recipe, Path("/recipes"), read_tensor=never_read, read_content=never_read
    )
    assert isinstance(example.args[1], tuple)


def test_values_from_calibration_are_its_examples_in_order_fitted_to_the_shape() -> None:
    data = [(torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3)), (torch.tensor([4.0, 5.0, 6.0]), torch.zeros(3))]
    rows = [{"x": row(5, values="calibration"), "state": row(1)}, {"x": row(2, values="calibration"), "state": row(1)}]
    first, second = gather(TwoInputs(), *rows, calibration=lambda: data)
    assert first.args[0].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0]
    assert second.args[0].tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    ("data", "code"), [(None, ErrorCode.NO_DATA), ([(torch.zeros(2, 2), torch.zeros(2))], ErrorCode.BAD_INPUT)]
)
def test_values_from_calibration_that_cannot_be_had_are_refused(data, code) -> None:
    function = None if data is None else lambda: data
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), {"x": row(2, values="calibration"), "state": row(1)}, calibration=function)
    assert caught.value.problem.code is code


def test_values_that_cannot_be_read_are_refused_with_the_row() -> None:
    with pytest.raises(AceError, match="two numbers") as caught:
        gather(TwoInputs(), {"x": row(2, values="random 1"), "state": row(1)})
    assert caught.value.problem.where == "[[inputs.rows]] 1, x"
