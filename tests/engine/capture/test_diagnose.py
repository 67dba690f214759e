"""Explanations of failed traces."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.capture.captures import HoldsScript, assert_helpful, by, capture, failure


def test_a_branch_on_a_value_is_named_with_its_line_and_its_module() -> None:
    error = failure("data_dependent")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="if x.mean() > 0:")
    assert "chooses a branch by a tensor's value" in error.problem.what
    assert error.problem.where.endswith(", module blocks.1")


class Packed(nn.Module):
    """Packs rows of different lengths, or masks what lies behind their ends as the remedy says."""

    def __init__(self, *, packs: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm, self.packs = nn.LSTM(4, 8, batch_first=True), packs

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        if self.packs:
            rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.lstm(rows)[0], batch_first=True)[0]
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        return torch.where(inside[..., None], self.lstm(x)[0], 0.0)


class PackedAtOnce(Packed):
    """Fails at its last line, with a message that does not speak of packing."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(rows)[0], batch_first=True)[0]


def test_packed_rows_are_named_by_the_line_that_fails() -> None:
    calls = [(torch.randn(2, 6, 4), torch.tensor([6, 4])), (torch.randn(3, 9, 4), torch.tensor([9, 5, 2]))]
    with pytest.raises(AceError) as caught:
        capture(PackedAtOnce(packs=True).eval(), calls)
    whats = [one.what for one in caught.value.problems]
    assert any("packs rows of different lengths" in what for what in whats)
    assert not any("does something that cannot be recorded" in what for what in whats)


def test_packed_rows_are_named_and_the_remedy_gives_the_same() -> None:
    calls = [(torch.randn(2, 6, 4), torch.tensor([6, 4])), (torch.randn(3, 9, 4), torch.tensor([9, 5, 2]))]
    with pytest.raises(AceError, match="packs rows of different lengths"):
        capture(Packed(packs=True).eval(), calls, by("export"))
    padded = Packed(packs=False).eval()
    assert torch.allclose(padded(*calls[1]), Packed(packs=True)(*calls[1]), atol=1e-6)
    assert capture(padded, calls)[1].rung == "export"


def test_a_scripted_part_is_named_as_the_cause() -> None:
    with pytest.raises(AceError, match="compiled with TorchScript"):
        capture(HoldsScript(), [(torch.ones(2, 4),), (torch.ones(3, 4),)], by("export", "export-strict"))


class Cache:
    def __init__(self, keys: Tensor) -> None:
        self.read = lambda: keys


class WithCache(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Cache]:
        return x * 2, Cache(x + 1)


def test_the_class_is_named_and_no_innocent_line_is_blamed() -> None:
    loaded = LoadedModel(module=WithCache().eval(), source=Path(), sha256="")
    examples = [Example((torch.ones(n, 4),)) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",), cache=False))
    with pytest.raises(AceError) as caught:
        capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
    problem = caught.value.problem
    assert problem.what == "forward() of WithCache returns Cache, an object that torch does not see into"
    assert "use_cache=False" in problem.remedy
    assert problem.where == ""
