"""Maximum pools over a line of dynamic length keep that length free."""

import pytest
import torch
from torch import nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program

POOLS = [
    nn.MaxPool1d(2),
    nn.MaxPool1d(3, 2, padding=1),
    nn.MaxPool1d(3, stride=1, dilation=2),
    nn.MaxPool1d((4,), stride=(3,), padding=(2,)),
]


def _export(module, x, strict):
    shapes = ({0: DYNAMIC, x.dim() - 1: DYNAMIC},)
    with torch.no_grad():
        return export_program(module, (x,), {}, dynamic_shapes=shapes, strict=strict).module()


@pytest.mark.parametrize(("pool", "strict"), [(pool, at % 2 == 1) for at, pool in enumerate(POOLS)], ids=str)
def test_the_length_stays_free(pool, strict):
    exported = _export(pool, torch.randn(2, 3, 20), strict)
    for batch, length in ((1, 7), (2, 20), (5, 33)):
        x = torch.randn(batch, 3, length)
        assert torch.equal(exported(x), pool(x))


def test_a_call_of_torch_with_one_line_a_channel_is_free_too():
    class Pool(nn.Module):
        def forward(self, x):
            return torch.max_pool1d(x, 2, padding=1)

    exported = _export(Pool(), torch.randn(3, 20), False)
    x = torch.randn(4, 31)
    assert torch.equal(exported(x), Pool()(x))


def test_a_pool_of_a_known_length_is_left_to_torch():
    with torch.no_grad():
        program = export_program(POOLS[0], (torch.randn(2, 3, 20),), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    assert torch.ops.aten.max_pool1d.default in {node.target for node in program.graph.nodes}
