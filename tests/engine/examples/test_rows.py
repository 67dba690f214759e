"""Examples from rows of the shape table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.flow import DataSources, LoadedModel
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import TensorSpec


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, state: Tensor, scale: float = 1.0) -> Tensor:
        return x + state * scale


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], states: list[Tensor]) -> Tensor:
        return batch["ids"] + states[0] + states[1]


class Variadic(nn.Module):
    def forward(self, first: Tensor, *others: Tensor) -> Tensor:
        return sum(others, first)


def loaded(module: nn.Module, **fields: object) -> LoadedModel:
    return LoadedModel(module=module, source=Path(), sha256="", data=DataSources(**fields))


def never_read(path: Path) -> Tensor:
    raise AssertionError(f"nobody asked for {path}")


def gather(module: nn.Module, *rows: dict[str, TensorSpec], read_tensor=never_read, **fields: object):
    recipe = Recipe(inputs=InputsChoice(rows=rows))
    return gather_examples(
        loaded(module, **fields), recipe, Path("/recipes"), read_tensor=read_tensor, read_content=never_read
    )


def row(*shape: int, **fields: str) -> TensorSpec:
    return TensorSpec(shape=shape, **fields)


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
