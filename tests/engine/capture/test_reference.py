"""The eager reference, and warnings about the model."""

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.targets.onnx.program import export_onnx
from ace_studio.records.errors import AceError
from tests.engine.capture.captures import capture, capture_tiny


@pytest.mark.parametrize(
    ("name", "code"), [("noisy", "random"), ("dropout_left_on", "dropout-in-eval"), ("mutates_input", "mutates-input")]
)
def test_what_may_surprise_later_is_a_warning(name: str, code: str) -> None:
    _, report = capture_tiny(name)
    assert code in [warning.code for warning in report.warnings]


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(8, 4))
        self.register_buffer("values", torch.zeros(8, 4))
        self.register_buffer("table", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        self.keys[: x.shape[0]] = x
        self.values.copy_(self.keys + 1)
        return self.values.sum(0) + x * self.table


def test_a_model_that_changes_its_buffers_is_told_once_in_the_words_of_every_target() -> None:
    module = Remembers()
    captured, report = capture(module, [torch.randn(2, 4), torch.randn(3, 4)])
    (warning,) = [one for one in report.warnings if one.code == "changes-buffers"]
    assert warning.what.startswith("The model changes keys and values while it runs: ")
    assert not module.keys.any() and not captured.first_state["values"].any()
    module(torch.ones(8, 4))
    assert not captured.program.state_dict["keys"].any()
    with pytest.raises(AceError, match="The model changes keys and values while it runs"):
        export_onnx(captured)


class Cast(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = super().forward(x).relu()
        return y.float()


def test_layers_that_autocast_in_forward_hides_are_a_warning_with_their_line() -> None:
    _, report = capture(Cast(4, 4).eval(), [torch.randn(2, 4), torch.randn(3, 4)])
    (warning,) = [one for one in report.warnings if one.code == "autocast"]
    assert warning.what.startswith("forward() computes 2 ops in bfloat16 under torch.autocast")
    assert warning.where.endswith(f"test_reference.py:{Cast.forward.__code__.co_firstlineno + 2}")
