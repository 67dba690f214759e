"""The eager reference, and warnings about the model."""

import pytest
import torch
from torch import Tensor, nn

from tests.engine.capture.captures import capture, capture_tiny


@pytest.mark.parametrize(
    ("name", "code"), [("noisy", "random"), ("dropout_left_on", "dropout-in-eval"), ("mutates_input", "mutates-input")]
)
def test_what_may_surprise_later_is_a_warning(name: str, code: str) -> None:
    _, report = capture_tiny(name)
    assert code in [warning.code for warning in report.warnings]


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
