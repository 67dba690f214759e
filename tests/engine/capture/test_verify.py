"""Comparing a graph with eager, and what it may have frozen."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.verify import difference
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.capture.captures import WHOLE, assert_helpful, by, capture, failure


def test_a_plain_attribute_that_changes_is_named_instead_of_frozen() -> None:
    error = failure("stateful")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="")
    assert "'calls'" in error.problem.what


class RemembersTheFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = x.mean()
        return x - self.cache


def test_what_a_model_keeps_of_its_first_call_is_found_by_a_second_with_other_numbers() -> None:
    with pytest.raises(AceError, match="plain attribute 'cache'"):
        capture(RemembersTheFirst(), [(torch.arange(6.0).reshape(2, 3) ** 2,), (torch.ones(3, 3),)], by("export"))


class PythonNoise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        import random

        return x * random.random()


def test_random_numbers_from_outside_torch_are_found() -> None:
    with pytest.raises(AceError, match="random numbers outside torch"):
        capture(PythonNoise(), [(torch.ones(2, 3),)], WHOLE)


@pytest.mark.parametrize(
    ("dtype", "rounding", "wrong"),
    [(torch.float64, 1e-8, 1e-5), (torch.float32, 1e-3, 0.1), (torch.bfloat16, 1.0, 20.0)],
)
def test_rounding_is_no_difference_and_a_thousandth_of_a_float32_is_one(
    dtype: torch.dtype, rounding: float, wrong: float
) -> None:
    expected = torch.tensor([1.0, 100.0], dtype=dtype)
    assert difference(expected, expected + rounding) == ""
    assert "where the largest number is 100" in difference(expected, expected + wrong)
