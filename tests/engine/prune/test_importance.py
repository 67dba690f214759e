import pytest
import torch
from torch import nn

from ace_studio.engine.prune.importance import TaylorData
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Importance
from tests import tiny_models
from tests.engine.prune.pruned_models import examples_of, prune


class Deaf(nn.Module):
    """Its first inputs are large weights on inputs that never come; size alone would keep them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(torch.tensor([[9.0, 9.0, 0.1, 0.2]] * 2))

    def forward(self, x):
        return self.linear(x * torch.tensor([0.0, 0.0, 1.0, 1.0]))


def test_taylor_keeps_what_the_outputs_hear():
    tiny = tiny_models.TinyModel(Deaf().eval(), [(torch.ones(1, 4),)])
    data = TaylorData(batches=lambda: [(one, None) for one in examples_of(tiny)])
    by_size = prune(tiny, amount=0.5).module.linear.weight
    by_gradient = prune(tiny, amount=0.5, importance=Importance.TAYLOR, taylor=data).module.linear.weight
    assert by_size[0].tolist() == pytest.approx([9.0, 9.0, 0.0, 0.0])
    assert by_gradient[0].tolist() == pytest.approx([0.0, 0.0, 0.1, 0.2])


def test_taylor_needs_data_and_a_loss_needs_to_be_a_scalar():
    tiny = tiny_models.mlp()
    with pytest.raises(AceError) as caught:
        prune(tiny, importance=Importance.TAYLOR)
    assert caught.value.problem.code is ErrorCode.NO_DATA
    bad = TaylorData(batches=lambda: [(one, 0) for one in examples_of(tiny)], loss=lambda output, label: output)
    with pytest.raises(AceError) as caught:
        prune(tiny, importance=Importance.TAYLOR, taylor=bad)
    assert caught.value.problem.code is ErrorCode.USER_CODE
