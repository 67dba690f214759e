"""A module that came without examples gets inputs that its first layer takes, if one of them runs."""

import pytest
import torch
from torch import nn

from ace_studio.engine.load.first_layers import propose_rows


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 8)

    def forward(self, input_ids, attention_mask):
        return self.table(input_ids) * attention_mask[..., None]


class Refuses(nn.Linear):
    def forward(self, x):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("module", "shapes"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1)), [(1, 3, 224, 224), (2, 3, 224, 224)]),
        (nn.Sequential(nn.Conv2d(1, 4, 28), nn.Flatten(), nn.Linear(4, 2)), [(1, 1, 28, 28), (2, 1, 28, 28)]),
        (nn.Sequential(nn.Linear(7, 2)), [(1, 7), (2, 7)]),
        (nn.LSTM(5, 3, batch_first=True), [(1, 16, 5), (2, 16, 5)]),
        (Tokens(), [(1, 16), (2, 16)]),
        (Refuses(3, 3), []),
        (nn.ReLU(), []),
    ],
)  # fmt: skip
def test_the_shape_is_the_first_that_runs_in_two_batches(module, shapes):
    assert [row[0].shape for row in propose_rows(module.eval()).rows] == shapes


def test_tokens_are_integers_and_masks_are_ones():
    ids, mask = propose_rows(Tokens()).rows[0]
    assert (ids.dtype, ids.below, mask.dtype, str(mask.values)) == (torch.int64, 50, torch.int64, "ones")


class Counts(nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_trying_leaves_the_module_as_it_was():
    module = Counts(7, 2)
    assert propose_rows(module).rows
    assert module.calls == 0


def test_if_none_runs_the_error_of_the_likeliest_is_given():
    module = nn.Sequential(nn.Linear(16, 32), nn.Linear(31, 4))
    rows, refused, error = propose_rows(module)
    assert (rows, refused[0].shape) == ((), (1, 16))
    assert "mat1 and mat2" in str(error)
