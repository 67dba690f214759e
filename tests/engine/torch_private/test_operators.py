"""What torch says of its operators."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest
import torch

from ace_studio.engine.torch_private import operators
from tests.engine.new_process import call_in_new_process

ATEN = torch.ops.aten


@pytest.mark.parametrize("target", [operator.add, torch.add, "add"])
def test_only_overloads_are_operators(target: object) -> None:
    assert operators.is_operator(ATEN.add.Tensor) and not operators.is_operator(target)
    assert (
        not operators.is_pointwise(target) and not operators.is_random(target) and not operators.writes_in_place(target)
    )
    assert operators.argument_names(target) == []


def test_tags_and_arguments_are_read() -> None:
    assert operators.is_pointwise(ATEN.add.Tensor) and not operators.is_pointwise(ATEN.mm.default)
    assert operators.is_random(ATEN.rand.default) and not operators.is_random(ATEN.mm.default)
    assert operators.argument_names(ATEN.mm.default) == ["self", "mat2"]
    assert operators.is_higher_order(torch.ops.higher_order.cond) and not operators.is_higher_order(ATEN.mm.default)


def test_an_operator_in_place_has_a_functional_form() -> None:
    assert operators.writes_in_place(ATEN.add_.Tensor) and not operators.writes_in_place(ATEN.add.Tensor)
    assert operators.functional_form(ATEN.add_.Tensor) is ATEN.add.Tensor
    assert operators.functional_form(ATEN.mm.default) is ATEN.mm.default
    assert operators.functional_form(operator.add) is operator.add


def test_operators_of_other_libraries_are_named_once() -> None:
    @torch.library.custom_op("ace_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return twice(twice(x)) + 1

    program = torch.export.export(Net(), (torch.ones(2),))
    assert operators.foreign_operators(program) == ["ace_test.twice.default"]


def ask() -> None:
    """Called in a new process."""
    before = hasattr(torch.ops.quantized_decomposed, "dequantize_per_channel")
    operators.register_quantized_ops()
    print(before, torch.ops.quantized_decomposed.dequantize_per_channel.default)


def test_the_ops_of_a_saved_int8_program_are_known_in_a_fresh_process_after_asking(tmp_path: Path) -> None:
    told = call_in_new_process(__name__, "ask", folder=tmp_path)
    assert told.split() == ["False", "quantized_decomposed.dequantize_per_channel.default"], told
