"""torch's own transformer layers, and flex attention, are captured whole, as ops that every runtime has.

They give what eager gives, and artifacts with flex attention open again.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.engine.capture.captures import by, capture
from tests.engine.targets.conftest import bound, make_job

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:flex_attention called"),
]


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


LENGTH = 24


def is_causal(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key


class Attention(nn.Module):
    """Four heads share two of keys and values; each has a learned slope over distance, and sees no later row."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.slope = nn.Linear(16, 32), nn.Parameter(torch.randn(4))
        self.mask = create_block_mask(is_causal, None, None, LENGTH, LENGTH, device="cpu")

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (one.unflatten(-1, (-1, 4)).transpose(1, 2) for one in self.into(x).split([16, 8, 8], -1))

        def sloped(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + self.slope[head] * (key - query)

        mixed = flex_attention(query, key, value, score_mod=sloped, block_mask=self.mask, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)


class Plain(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        output, beside = flex_attention(x, x, x, return_aux=AuxRequest(lse=True))
        return output, beside.lse


@pytest.fixture(scope="module")
def attention() -> nn.Module:
    torch.manual_seed(0)
    return Attention().eval()


@pytest.fixture(scope="module")
def captured_by(attention):
    """Makes the capture by one method, once."""
    examples = [torch.randn(batch, LENGTH, 16) for batch in (1, 3)]
    return cache(lambda rung: capture(attention, examples, by(rung)))


@pytest.mark.parametrize("rung", ["export", "export-strict", "dynamo"])
def test_a_method_alone_captures_it_without_an_op_that_holds_functions(attention, captured_by, rung):
    captured, report = captured_by(rung)
    assert report.rung == rung
    names = {str(node.target) for node in captured.program.graph.nodes}
    assert "aten.linear.default" in names
    assert not [name for name in names if "flex" in name]
    assert captured.inputs[0].dims[0].symbol
    unseen = torch.randn(5, LENGTH, 16)
    with torch.no_grad():
        assert not difference(attention(unseen), captured.program.module()(unseen))


def test_sums_of_scores_are_returned_as_eager_returns_them():
    example = torch.randn(2, 2, 16, 8)
    captured, _ = capture(Plain().eval(), [example])
    with torch.no_grad():
        assert not difference(Plain()(example), captured.program.module()(example))


@pytest.mark.parametrize("name", ["eager", "onnxruntime", "openvino"])
def test_its_artifact_opens_again_and_gives_eager_s_result(attention, captured_by, name, tmp_path):
    target = TARGETS[name]
    if not target.available().ok:
        pytest.skip(target.available().reason)
    example = torch.randn(2, LENGTH, 16)
    captured, _ = captured_by("export")
    lowered = target.lower(make_job(captured, bound(name, captured, Precision.FP32), tmp_path))
    opened = target.load(lowered.save(tmp_path), threads=1)
    with torch.no_grad():
        expected = attention(example)
    assert torch.allclose(torch.as_tensor(opened(example)[0]), expected, atol=1e-4)
