"""What calls change in a module is put back, also when the block raises."""

import pytest
import torch
from torch import nn

from ace_studio.engine.flow.module_state import ModuleState, state_put_back


class Changes(nn.Module):
    """Changes a buffer, two attributes and its hooks; x [n]."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0
        self.seen = {"shapes": []}

    def forward(self, x):
        self.total += x
        self.calls += 1
        self.seen["shapes"].append(tuple(x.shape))
        self.extra = x
        self.register_forward_hook(lambda *_: None)
        return self.total


def test_everything_is_put_back_when_the_block_raises():
    module = Changes()
    total, seen = module.total, module.seen
    with pytest.raises(ZeroDivisionError), state_put_back(module):
        module(torch.ones(2))
        module(torch.ones(2))
        _ = 1 / 0
    assert module.total is total and torch.equal(total, torch.zeros(2))
    assert module.seen is seen and seen == {"shapes": []}
    assert module.calls == 0 and not hasattr(module, "extra") and not module._forward_hooks


def test_changes_are_named():
    module = nn.Sequential(Changes())
    state = ModuleState(module)
    module(torch.ones(2))
    assert state.changes() == ["0.calls", "0.seen", "0.extra"]
    assert state.buffer_changes() == ["0.total"]
