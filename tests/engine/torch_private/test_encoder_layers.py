"""torch's own transformer layers are captured whole, as ops that every runtime has, and give what eager gives."""

import pytest
import torch
from torch import nn

from ace_studio.engine.capture.verify import difference
from tests.engine.capture.captures import capture

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def _layer(**options):
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(_layer(), 1)

    def forward(self, x):
        return self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


class Padded(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.encoder = nn.TransformerEncoder(_layer(), 1, norm=norm)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Transformer(16, 4, 1, 1, 32, batch_first=True)

    def forward(self, x, y):
        return self.both(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(y.shape[1]))


def _numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _padding(rows, length):
    padding = torch.zeros(rows, length, dtype=torch.bool)
    padding[0, length - 2 :] = True
    return padding


CASES = {
    "causal mask": (Causal, lambda rows, length: (_numbers(rows, length, 16),)),
    "padding": (Padded, lambda rows, length: (_numbers(rows, length, 16), _padding(rows, length))),
    "padding, norm": (
        lambda: Padded(nn.LayerNorm(16)), lambda rows, length: (_numbers(rows, length, 16), _padding(rows, length))
    ),
    "encoder and decoder": (
        Translator, lambda rows, length: (_numbers(rows, length, 16), _numbers(rows, length + 1, 16))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name == "padding")) for name in CASES])
def test_the_layers_are_captured_whole_and_as_plain_ops(name):
    make, inputs = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    captured, report = capture(module, [inputs(2, 8), inputs(3, 12)])
    assert report.rung == "export"
    names = {str(node.target) for node in captured.program.graph.nodes}
    assert "aten.scaled_dot_product_attention.default" in names
    assert not [one for one in names if "_fwd" in one or "nested" in one]
    unseen = inputs(4, 9)
    with torch.no_grad():
        assert not difference(module(*unseen), captured.program.module()(*unseen))


def test_torch_fuses_the_layers_again_after_the_trace():
    was_fast, forward = torch.backends.mha.get_fastpath_enabled(), nn.TransformerEncoder.forward
    capture(Causal().eval(), [(_numbers(2, 8, 16),)])
    assert torch.backends.mha.get_fastpath_enabled() is was_fast
    assert nn.TransformerEncoder.forward is forward
