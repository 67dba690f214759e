"""Comparing a graph with eager, and what it may have frozen."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import refuse_counting
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


class Counts(nn.Module):
    """Adds a number that each call raises, or only notes it."""

    def __init__(self, *, adds: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.adds, self.calls = adds, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.linear(x) + self.calls if self.adds else self.linear(x)


class Collects(nn.Module):
    """Keeps what it saw in a list that is made by the first call."""

    def forward(self, x: Tensor) -> Tensor:
        self.seen = [*getattr(self, "seen", []), x.mean()]
        return x + torch.stack(self.seen).sum()


@pytest.mark.parametrize(("module", "name"), [(Counts(adds=True), "calls"), (Collects(), "seen")])
def test_a_result_that_depends_on_an_attribute_is_named_while_it_is_traced_and_nothing_is_built(module, name) -> None:
    _, report = capture(module, [(torch.randn(2, 4),), (torch.randn(3, 4),)])
    (told,) = [one.what for one in report.warnings if one.code == "changing-attribute"]
    assert f"'{name}'" in told
    with pytest.raises(AceError, match=f"plain attribute '{name}'") as refused:
        refuse_counting(report)
    assert refused.value.problem.code is ErrorCode.NOT_CAPTURED and "buffer" in refused.value.problem.remedy


def test_an_attribute_that_only_counts_is_named_while_it_is_traced() -> None:
    _, report = capture(Counts(adds=False), [(torch.randn(2, 4),), (torch.randn(3, 4),)], by("export"))
    (told,) = [one.what for one in report.warnings if one.code == "attribute-left-out"]
    assert "'calls'" in told
    refuse_counting(report)
