"""Attention as one kernel of ONNX Runtime: equal to torch for every mask and size, or left as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attention

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.onnx import attention as onnx_attention
from ace_studio.engine.targets.onnx.attention import fuse_attention, program_with_attention
from ace_studio.engine.targets.onnx.program import OnnxProgram, export_onnx
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.onnx_cases import capture, job_for
from tests.tiny_models import TinyModel

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Two heads of width 8 around any form of attention; x [n, t, 16] and a mask."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.project = nn.Linear(16, 16)
        self.attend = attend

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        split = [one(x).unflatten(-1, (2, 8)).transpose(1, 2) for one in (self.query, self.key, self.value)]
        return self.project(self.attend(*split, mask).transpose(1, 2).flatten(2)) + 0.0 * (mask != 0).sum()


def model_of(attend: Attend, mask: Callable[[int, int], Tensor]) -> TinyModel:
    torch.manual_seed(0)
    examples = tuple((torch.randn(n, t, 16), mask(n, t)) for n, t in ((2, 5), (3, 9)))
    return TinyModel(Layer(attend).eval(), examples)


@cache
def captured_with(attend: Attend, mask: Callable[[int, int], Tensor]) -> CapturedModel:
    """A layer with that attention, captured (and then exported) once for all tests."""
    return capture(model_of(attend, mask))


def kinds(program: OnnxProgram) -> list[str]:
    return [node.op_type for node in program.model.graph.node]


def padding(n: int, t: int) -> Tensor:
    """Every sample has another length; one has none at all."""
    return torch.arange(t)[None, :] < torch.arange(n)[:, None] * 2


def biases(n: int, t: int) -> Tensor:
    return torch.where(padding(n, t), torch.rand(n, t), float("-inf"))


WHOLE = {
    "without a mask": (lambda q, k, v, m: attention(q, k, v), padding),
    "a boolean row": (lambda q, k, v, m: attention(q, k, v, attn_mask=m[:, None, None, :]), padding),
    "a boolean square": (
        lambda q, k, v, m: attention(q, k, v, attn_mask=m[:, None, None, :] & m[:, None, :, None]), padding
    ),
    "numbers to add": (lambda q, k, v, m: attention(q, k, v, attn_mask=m[:, None, None, :] * 2.0), biases),
    "a mask of two dimensions": (lambda q, k, v, m: attention(q, k, v, attn_mask=m.any(0)[None, :]), padding),
    "causal": (lambda q, k, v, m: attention(q, k, v, is_causal=True), padding),
    "another scale": (lambda q, k, v, m: attention(q, k, v, scale=0.5), padding),
    "keys with a past": (
        lambda q, k, v, m: attention(q, torch.cat([k, k * 0.5], 2), torch.cat([v, v + 1.0], 2)), padding
    ),
}  # fmt: skip
APART = {
    "a mask per head": (
        lambda q, k, v, m: attention(q, k, v, attn_mask=m[:, None, None, :].expand(-1, 2, -1, -1)), padding
    ),
    "numbers to add per head": (
        lambda q, k, v, m: attention(q, k, v, attn_mask=(m[:, None, None, :] * 2.0).expand(-1, 2, -1, -1)), biases
    ),
    "keys shared by heads": (
        lambda q, k, v, m: attention(q, k[:, :1], v[:, :1], attn_mask=m[:, None, None, :], enable_gqa=True), padding
    ),
    "causal with a past": (
        lambda q, k, v, m: attention(q, torch.cat([k, k], 2), torch.cat([v, v], 2), is_causal=True), padding
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_an_attention_becomes_one_kernel_with_the_same_results_at_every_size(name):
    captured = captured_with(*WHOLE[name])
    job = job_for(TARGETS["onnxruntime"], captured)
    lowered = TARGETS["onnxruntime"].lower(job)
    fused = kinds(program_with_attention(job))
    assert fused.count("MultiHeadAttention") == 1
    assert "Softmax" not in fused
    for example in captured.examples:
        torch.testing.assert_close(
            lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5, equal_nan=False
        )
    assert {one.op_id: one.actual for one in lowered.read_back()}["scaled_dot_product_attention"] == Precision.FP32


@pytest.mark.parametrize("name", APART)
def test_an_attention_that_the_kernel_would_do_in_another_way_stays_apart_with_the_same_results(name):
    captured = captured_with(*APART[name])
    job = job_for(TARGETS["onnxruntime"], captured)
    lowered = TARGETS["onnxruntime"].lower(job)
    assert "MultiHeadAttention" not in kinds(program_with_attention(job))
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["a boolean row", "a boolean square", "numbers to add"])
def test_a_query_without_any_key_gets_zeros_also_where_attention_stays_apart(name, monkeypatch):
    monkeypatch.setattr(onnx_attention, "MOST_SCORES", 0)
    captured = captured_with(*WHOLE[name])
    job = job_for(TARGETS["onnxruntime"], captured)
    lowered = TARGETS["onnxruntime"].lower(job)
    assert {"Softmax", "MultiHeadAttention"} & set(kinds(program_with_attention(job))) == {"Softmax"}
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5)


def test_a_result_with_another_reader_stays_apart():
    def attend(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
        found = attention(q, k, v)
        return found + found.amax(1, keepdim=True)

    captured = captured_with(attend, padding)
    plain = export_onnx(captured)
    assert fuse_attention(plain, captured) is plain


def test_the_parts_of_one_projection_are_read_as_they_are():
    torch.manual_seed(0)

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(16, 48)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = (one.unflatten(-1, (2, 8)).transpose(1, 2) for one in self.mix(x).chunk(3, -1))
            return attention(q, k, v).transpose(1, 2).flatten(2)

    captured = capture(TinyModel(Packed().eval(), tuple((torch.randn(n, t, 16),) for n, t in ((2, 5), (3, 9)))))
    job = job_for(TARGETS["onnxruntime"], captured)
    lowered = TARGETS["onnxruntime"].lower(job)
    assert kinds(program_with_attention(job)).count("MultiHeadAttention") == 1
    assert "Transpose" not in kinds(program_with_attention(job))
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5)


def test_layers_share_what_is_made_of_their_mask():
    torch.manual_seed(0)

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (
                Layer(lambda q, k, v, m: attention(q, k, v, attn_mask=m[:, None, None, :])) for _ in range(2)
            )

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            counts = mask > 0
            return self.second(self.first(x, counts), counts)

    examples = tuple((torch.randn(n, t, 16), padding(n, t).long()) for n, t in ((2, 5), (3, 9)))
    captured = capture(TinyModel(Layers().eval(), examples))
    job = job_for(TARGETS["onnxruntime"], captured)
    lowered = TARGETS["onnxruntime"].lower(job)
    fused = kinds(program_with_attention(job))
    assert fused.count("MultiHeadAttention") == 2
    for example in captured.examples:
        torch.testing.assert_close(lowered(*example.args), captured.module(*example.args), rtol=1e-4, atol=1e-5)


def test_an_attention_over_many_positions_stays_apart_because_the_parts_are_faster(monkeypatch):
    captured = captured_with(*WHOLE["a boolean row"])
    plain = export_onnx(captured)
    monkeypatch.setattr(onnx_attention, "MOST_SCORES", 3 * 2 * 9 * 9 - 1)
    assert "MultiHeadAttention" not in kinds(fuse_attention(plain, captured))
    monkeypatch.setattr(onnx_attention, "MOST_SCORES", 3 * 2 * 9 * 9)
    assert "MultiHeadAttention" in kinds(fuse_attention(plain, captured))


def test_the_plain_program_is_left_as_it_was():
    captured = captured_with(*WHOLE["a boolean row"])
    plain = export_onnx(captured)
    before = plain.model.SerializeToString(deterministic=True)
    assert fuse_attention(plain, captured) is not plain
    assert plain.model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("precision", [Precision.INT8_DYNAMIC, Precision.INT8_STATIC, Precision.INT4_WEIGHT])
def test_quantized_projections_feed_the_kernel(precision):
    captured = captured_with(*WHOLE["a boolean row"])
    lowered = TARGETS["onnxruntime"].lower(job_for(TARGETS["onnxruntime"], captured, precision))
    found = {one.op_id: one.actual for one in lowered.read_back()}
    assert found["linear"] == precision
    assert found["scaled_dot_product_attention"] == Precision.FP32
