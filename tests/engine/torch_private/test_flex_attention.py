"""Flex attention is captured as plain ops by every method, and its artifacts open again."""

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

LENGTH = 24
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called")


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
