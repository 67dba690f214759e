"""Which source the examples come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.tensors import TensorSpec


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, state: Tensor, scale: float = 1.0) -> Tensor:
        return x + state * scale


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


def test_rows_come_before_the_tracing_callable_and_that_before_the_entrys_examples() -> None:
    ones, twos = torch.ones(1), torch.full((1,), 2.0)
    model = TwoInputs()
    from_callable = gather(model, tracing=lambda: [(ones, ones)], examples=(Example((twos, twos)),))
    from_entry = gather(model, examples=(Example((twos, twos)),))
    assert torch.equal(from_callable[0].args[0], ones)
    assert torch.equal(from_entry[0].args[0], twos)


def test_a_tracing_callable_that_raises_is_reported_by_name() -> None:
    def inputs():
        raise KeyError("pixels")

    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), tracing=inputs)
    assert caught.value.problem.code is ErrorCode.USER_CODE
    assert "inputs() raised KeyError" in caught.value.problem.what


def test_without_any_examples_the_message_says_where_to_add_them() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs())
    assert caught.value.problem.code is ErrorCode.NO_DATA
    assert "tracing" in caught.value.problem.remedy


def test_calibration_data_that_serves_for_tracing_is_also_given_in_another_batch_for_the_metric() -> None:
    loader = lambda: [(torch.ones(8, 4), torch.ones(8)), (torch.ones(8, 4), torch.ones(8))]  # noqa: E731
    batches = lambda **more: [one.args[0].shape[0] for one in gather(nn.Linear(4, 2), calibration=loader, **more)]  # noqa: E731
    assert batches() == [8, 8]
    assert batches(evaluate=lambda predict: 1.0) == [8, 4]


def test_a_batch_that_the_model_does_not_take_is_not_tried_on() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(8, 4)

    found = gather(Fixed(), calibration=lambda: [torch.ones(8, 4)], evaluate=lambda predict: 1.0)
    assert [one.args[0].shape[0] for one in found] == [8]
